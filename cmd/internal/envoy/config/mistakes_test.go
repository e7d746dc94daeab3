package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// load compiles the files in a text. Each file begins with a line "-- name --".
func load(t *testing.T, text string, options Options) (*Config, []*yamlfile.Error, error) {
	t.Helper()
	var documents []*Document
	var warnings []*yamlfile.Error
	parts := strings.Split("\n"+strings.TrimLeft(text, "\n"), "\n-- ")
	if len(parts) == 1 {
		parts = []string{"", "a.yaml --" + parts[0]}
	}
	for _, part := range parts[1:] {
		name, body, _ := strings.Cut(part, " --\n")
		document, err := Parse(name, []byte(body))
		if err != nil {
			return nil, nil, err
		}
		documents = append(documents, document)
		warnings = append(warnings, document.Warnings...)
	}
	config, err := Compile(documents, options)
	return config, warnings, err
}

func limited(lines ...string) string {
	return "domain: d\ndescriptors:\n  - key: k\n    rate_limit:\n      " + strings.Join(lines, "\n      ")
}

var mistakes = []struct{ name, text, want string }{
	{"an empty file", "", "a.yaml: config file cannot have empty domain"},
	{"no domain", "descriptors: []", "a.yaml:1:1: config file cannot have empty domain"},
	{"an empty domain", "domain: ''", "a.yaml:1:9: config file cannot have empty domain"},
	{"not YAML", "domain: [", "a.yaml:2:1: error loading config file: did not find expected node content"},
	{"not a mapping", "- domain: d", "a.yaml:1:1: error loading config file: want a mapping, not a list"},
	{"an unknown key", "domain: d\nrate_limits: {}", "a.yaml:2:1: config error, unknown key 'rate_limits'"},
	{"an unknown key below", limited("unit: second", "burts: 5"), "a.yaml:6:7: config error, unknown key 'burts'"},
	{"a key that is a number", "domain: d\n5: x", `a.yaml:2:1: config error, key is not of type string: "5"`},
	{"a key that is a list", "domain: d\n? [a]\n: x", "a.yaml:2:3: config error, key is not of type string: a list"},
	{"a list of texts", "domain: d\ndescriptors: [a]",
		`a.yaml:2:15: config error, yaml file contains list of type other than map: "a"`},
	{"descriptors that are a text", "domain: d\ndescriptors: a",
		`a.yaml:2:14: error loading config file: want a list, not "a"`},
	{"a domain that is a list", "domain: [a]", "a.yaml:1:9: error loading config file: want a text, not a list"},
	{"an empty key", "domain: d\ndescriptors:\n  - value: v", "a.yaml:3:5: descriptor has empty key"},
	{"a key of null", "domain: d\ndescriptors:\n  - key: ~", "a.yaml:3:5: descriptor has empty key"},
	{"two of one key", "domain: d\ndescriptors:\n  - key: k\n  - key: k",
		"a.yaml:4:5: duplicate descriptor composite key 'd.k'"},
	{"two of one key and value", "domain: d\ndescriptors:\n  - {key: k, value: v}\n  - {key: k, value: v}",
		"a.yaml:4:5: duplicate descriptor composite key 'd.k_v'"},
	{"two that are one when joined", "domain: d\ndescriptors:\n  - {key: a, value: b_c}\n  - {key: a_b, value: c}",
		"a.yaml:4:5: duplicate descriptor composite key 'd.a_b_c'"},
	{"two below", "domain: d\ndescriptors:\n  - key: a\n    descriptors:\n    - key: b\n    - key: b",
		"a.yaml:6:7: duplicate descriptor composite key 'd.a.b'"},
	{"no unit", limited("requests_per_unit: 5"), "a.yaml:5:7: invalid rate limit unit ''"},
	{"an unknown unit", limited("unit: fortnight"), "a.yaml:5:13: invalid rate limit unit 'fortnight'"},
	{"the unit UNKNOWN", limited("unit: unknown"), "a.yaml:5:13: invalid rate limit unit 'unknown'"},
	{"unlimited with a unit", limited("unit: second", "unlimited: true"),
		"a.yaml:5:13: should not specify rate limit unit when unlimited"},
	{"quotas of nothing", limited("unit: second", "requests_per_unit: 1", "quotas: {}"), "a.yaml:7:15: quotas: want either a file or a hash"},
	{"quotas of two", limited("unit: second", "requests_per_unit: 1", "quotas: {file: a, hash: b}"), "a.yaml:7:15: quotas: want either a file or a hash"},
	{"quotas that are a text", limited("unit: second", "requests_per_unit: 1", "quotas: a"), "a.yaml:7:15: error loading config file: want a mapping, not \"a\""},
	{"quotas for unknown values", limited("unit: second", "requests_per_unit: 1", "quotas: {file: a, unknown: open}"),
		"a.yaml:7:15: quotas: unknown 'open': want default or refuse"},
	{"quotas too often", limited("unit: second", "requests_per_unit: 1", "quotas: {file: a, every: 1ms}"), "a.yaml:7:15: quotas: every 1ms: want 1s to 24h"},
	{"quotas of 0 tokens", limited("unit: second", "requests_per_unit: 1", "quotas: {file: a, max: 0}"), "a.yaml:7:15: quotas: max 0: want 1 to 4294967295"},
	{"quotas of what is unlimited", limited("unlimited: true", "quotas: {file: a}"), "a.yaml:6:15: quotas of a limit that is unlimited: leave one of them out"},
	{"quotas of a limit of 0", limited("unit: second", "requests_per_unit: 0", "algorithm: token-bucket", "quotas: {file: a}"),
		"a.yaml:8:15: quotas of a limit of 0: write a limit, and unknown: refuse"},
	{"a plan of another period", limited("unit: second", "requests_per_unit: 1", "quotas: {file: a, plans: {free: {rate: 5/m}}}"),
		"a.yaml:7:15: quotas: plan \"free\": all limits of a fixed-window have one period: write the rate as so many in the period of 1/s"},
	{"a plan without numbers", limited("unit: second", "requests_per_unit: 1", "quotas: {file: a, plans: {free: {}}}"),
		"a.yaml:7:15: quotas: plan \"free\": neither rate nor burst"},
	{"a plan without a rate", limited("unit: second", "requests_per_unit: 1", "quotas: {file: a, plans: {free: {rate: x}}}"),
		`a.yaml:7:46: plan free: rate "x": want tokens/period, such as 100/s or 10/1500ms`},
	{"a plan with too much", limited("unit: second", "requests_per_unit: 1", "quotas: {file: a, max: 4, plans: {free: {rate: 5/s}}}"),
		"a.yaml:7:15: quotas: plan \"free\": limit of 5 tokens: want at most 4, the max"},
	{"an empty replaces", limited("unit: second", "replaces: [{name: ''}]"),
		"a.yaml:6:17: should not have an empty replaces entry"},
	{"replaces itself", limited("unit: second", "name: n", "replaces: [{name: n}]"),
		"a.yaml:7:17: replaces should not contain name of same descriptor"},
	{"a multiplier of 0", limited("unit: second", "unit_multiplier: 0"), "a.yaml:6:24: invalid unit multiplier of 0"},
	{"a multiplier too large", limited("unit: year", "unit_multiplier: 300"),
		"a.yaml:6:24: 300 times year is longer than 365 days, the longest window"},
	{"a zone that is none", limited("unit: month", "zone: Mars/Base"),
		"a.yaml:6:13: zone 'Mars/Base': want a name of the tz database, such as UTC or Europe/Berlin"},
	{"an empty zone", limited("unit: month", "zone: ''"),
		"a.yaml:6:13: zone '': want a name of the tz database, such as UTC or Europe/Berlin"},
	{"a zone of a year", limited("unit: year", "zone: UTC"),
		"a.yaml:6:13: zone 'UTC': want it with a unit of day, week or month, which begin with a date"},
	{"a zone of several units", limited("unit: day", "unit_multiplier: 2", "zone: UTC"),
		"a.yaml:7:13: zone 'UTC': a day of the calendar has no multiplier and no period: leave them out"},
	{"a zone of a bucket", limited("unit: day", "algorithm: token-bucket", "zone: UTC"),
		"a.yaml:7:13: zone 'UTC': a day of the calendar is of a fixed-window, without a burst"},
	{"two of one month", "domain: d\ndescriptors: [{key: k, rate_limits: [{unit: month, zone: UTC}, {unit: month, zone: Etc/UTC}, {unit: month, zone: UTC}]}]",
		"a.yaml:2:94: two limits of the descriptor are of the same algorithm and time: leave one of them out"},
	{"a fraction", limited("unit: second", "requests_per_unit: 1.5"),
		"a.yaml:6:26: error checking config: want a whole number, not 1.5"},
	{"less than nothing", limited("unit: second", "requests_per_unit: -1"),
		`a.yaml:6:26: error loading config file: want a whole number from 0 to 4294967295, not "-1"`},
	{"too many", limited("unit: second", "requests_per_unit: 4294967296"),
		`a.yaml:6:26: error loading config file: want a whole number from 0 to 4294967295, not "4294967296"`},
	{"a number in quotes", limited("unit: second", "requests_per_unit: '5'"),
		`a.yaml:6:26: error loading config file: want a whole number from 0 to 4294967295, not "5"`},
	{"a value that is a fraction", "domain: d\ndescriptors:\n  - {key: k, value: 1.5}",
		"a.yaml:3:21: error checking config: 1.5 is a fraction; write it in quotes if it is a text"},
	{"a truth value in quotes", limited("unlimited: 'true'"),
		`a.yaml:5:18: error loading config file: want true or false, not "true"`},
	{"share_threshold without a wildcard",
		"domain: d\ndescriptors:\n  - {key: k, value: v, share_threshold: true}",
		"a.yaml:3:5: share_threshold needs a key or a value with '*': 'k_v' has none"},
	{"metadata that is a text", "domain: d\ndescriptors:\n  - {key: k, metadata: m}",
		`a.yaml:3:24: error loading config file: want a mapping, not "m"`},
	{"metadata with a key that is a number", "domain: d\ndescriptors:\n  - {key: k, metadata: {a: {5: x}}}",
		`a.yaml:3:29: config error, key is not of type string: "5"`},
	{"an unknown algorithm", limited("unit: second", "algorithm: leaky"),
		`a.yaml:6:18: algorithm "leaky": want token-bucket, batch-refill, fixed-window, sliding-window or sliding-log`},
	{"a burst without a bucket", limited("unit: second", "requests_per_unit: 5", "burst: 5"),
		"a.yaml:5:7: burst 5: a fixed-window has none, because all of its limit, 5/s, may come at once: leave it out, " +
			"or use the algorithm token-bucket"},
	{"a burst of a limit that refuses all", limited("unit: second", "burst: 5", "algorithm: token-bucket"),
		"a.yaml:5:7: burst 5: a rate of 0 has none: leave it out"},
	{"a log that is too long", limited("unit: second", "requests_per_unit: 5000", "algorithm: sliding-log"),
		"a.yaml:5:7: sliding log 5000/1s: limit of 5000 tokens every 1s: want 1 to 4096 tokens"},
	{"overdraw where nothing is charged", "all_or_nothing: true\n" + limited("unit: second", "overdraw: true"),
		"a.yaml:7:17: overdraw in a domain with all_or_nothing, which counts nothing of what is refused: leave one of them out"},
	{"overdraw without a limit", limited("unlimited: true", "overdraw: true"),
		"a.yaml:6:17: should not specify overdraw when unlimited"},
	{"a range of addresses that is none", "domain: d\ndescriptors:\n  - {key: k, cidr: 10.0.0.0}",
		`a.yaml:3:20: cidr: want a range of addresses, such as 10.0.0.0/8 or 2001:db8::/32, not "10.0.0.0"`},
	{"a range with bits behind it", "domain: d\ndescriptors:\n  - {key: k, cidr: 10.0.0.1/8}",
		`a.yaml:3:20: cidr: "10.0.0.1/8" has bits after the prefix: did you mean 10.0.0.0/8?`},
	{"an expression that is none", "domain: d\ndescriptors:\n  - {key: k, regex: 'a('}",
		"a.yaml:3:21: regex: error parsing regexp: missing closing ): `a(`"},
	{"an expression that closes what weir opens", "domain: d\ndescriptors:\n  - {key: k, regex: 'a)|(b'}",
		"a.yaml:3:21: regex: error parsing regexp: unexpected ): `a)|(b`"},
	{"a range and an expression", "domain: d\ndescriptors:\n  - {key: k, cidr: 10.0.0.0/8, regex: a}",
		"a.yaml:3:5: cidr and regex of one descriptor: leave one of them out"},
	{"a range and a value", "domain: d\ndescriptors:\n  - {key: k, cidr: 10.0.0.0/8, value: a}",
		"a.yaml:3:5: value 'a' next to a cidr or a regex: leave one of them out"},
	{"a range under a pattern", "domain: d\ndescriptors:\n  - {key: 'k*', cidr: 10.0.0.0/8}",
		"a.yaml:3:5: key 'k*' has a '*', and its values have a cidr or a regex: leave one of them out"},
	{"a range twice", "domain: d\ndescriptors:\n  - {key: k, cidr: 10.0.0.0/8}\n  - {key: k, cidr: 10.0.0.0/8}",
		"a.yaml:4:5: duplicate descriptor composite key 'd.k_cidr:10.0.0.0/8'"},
	{"a burst of 0", limited("unit: second", "algorithm: token-bucket", "burst: 0"),
		`a.yaml:7:14: burst: want 1 to 4294967295, not "0"`},
	{"a unit and a period", limited("unit: second", "period: 90s"),
		"a.yaml:5:13: unit 'second' beside a period of 1m30s: leave one of them out"},
	{"a period that is too short", limited("period: 100us", "requests_per_unit: 5"),
		"a.yaml:5:7: a period of 100µs is too short for a fixed window: 1ms is long enough"},
	{"a period that is none", limited("period: 90"),
		`a.yaml:5:15: period: want a time such as 90s or 1h30m, not "90"`},
	{"a domain twice", "-- a.yaml --\ndomain: d\n-- b.yaml --\ndomain: d\n",
		"b.yaml:1:9: duplicate domain 'd' in config file"},
}

// TestMistakes: each wrong file is refused. The error has the place of the mistake, and envoyproxy/ratelimit's reason
// if envoyproxy/ratelimit has one.
func TestMistakes(t *testing.T) {
	for _, test := range mistakes {
		t.Run(test.name, func(t *testing.T) {
			config, _, err := load(t, test.text, Options{})
			require.Error(t, err)
			assert.Nil(t, config)
			first, _, _ := strings.Cut(err.Error(), "\n")
			assert.Equal(t, test.want, first)
		})
	}
}

func TestAllMistakesAreTold(t *testing.T) {
	_, _, err := load(t, "domain: d\nx: 1\ndescriptors:\n  - key: k\n    y: 2\n  - [z]\n", Options{})
	assert.EqualError(t, err, "a.yaml:2:1: config error, unknown key 'x'\n"+
		"a.yaml:5:5: config error, unknown key 'y'\n"+
		"a.yaml:6:5: config error, yaml file contains list of type other than map: a list")

	_, _, err = load(t, "domain: d\n"+strings.Repeat("x: 1\n", 1000), Options{})
	assert.Len(t, err, yamlfile.MaxErrors)
}

// TestShortFilesThatStandForEndlessOnes: nested aliases make a short file stand for a huge one. Each use of an alias
// counts towards maxNodes, so such a file is refused.
func TestShortFilesThatStandForEndlessOnes(t *testing.T) {
	bomb := "domain: d\ndescriptors:\n  - key: k0\n    descriptors: &a0 [{key: x}]\n"
	for i := 1; i < 24; i++ {
		bomb += strings.ReplaceAll(strings.ReplaceAll(
			"  - key: kN\n    descriptors: &aN [{key: l, descriptors: *aP}, {key: r, descriptors: *aP}]\n",
			"N", itoa(i)), "P", itoa(i-1))
	}
	_, _, err := load(t, bomb, Options{})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "more than 2000000 values")

	bomb = "domain: d\ndescriptors:\n  - key: k0\n    metadata: &a0 {x: [1, 2]}\n"
	for i := 1; i < 24; i++ {
		bomb += strings.ReplaceAll(strings.ReplaceAll(
			"  - key: kN\n    metadata: &aN {l: *aP, r: *aP}\n", "N", itoa(i)), "P", itoa(i-1))
	}
	_, _, err = load(t, bomb, Options{})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "more than 2000000 values")
}

// TestWarnings: some values cannot be intended, although envoyproxy/ratelimit accepts them. They get a warning.
func TestWarnings(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"a known key in another place", "domain: d\nunit: second", "a.yaml:2:1: 'unit' has no effect here"},
		{"a key twice", "domain: c\ndomain: d", "a.yaml:2:1: 'domain' occurs twice here: the last one counts"},
		{"an octal number", limited("unit: second", "requests_per_unit: 010"), "a.yaml:6:26: 010 is octal: 8"},
		{"two documents", "domain: d\n---\ndomain: e", "a.yaml:1:1: only the first document of the file is read"},
	} {
		t.Run(test.name, func(t *testing.T) {
			config, warnings, err := load(t, test.text, Options{})
			require.NoError(t, err)
			assert.True(t, config.HasDomain("d"))
			require.Len(t, warnings, 1)
			assert.Equal(t, test.want, warnings[0].Error())
		})
	}
}
