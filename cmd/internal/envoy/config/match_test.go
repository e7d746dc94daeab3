package config

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testalloc"
)

func itoa(i int) string { return strconv.Itoa(i) }

// asked parses a descriptor written as "key=value,key=value".
func asked(text string) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for _, entry := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(entry, "=")
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d
}

const tree = `
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: second, requests_per_unit: 1}
  - key: user
    value: alice
    rate_limit: {unit: second, requests_per_unit: 2}
  - key: user
    value: a*
    rate_limit: {unit: second, requests_per_unit: 3}
  - key: user
    value: "*ice"
    rate_limit: {unit: second, requests_per_unit: 4}
  - key: user
    value: b*c*d
    rate_limit: {unit: second, requests_per_unit: 5}
  - key: path
    value: /login
    descriptors:
      - key: addr
        rate_limit: {unit: minute, requests_per_unit: 6}
      - key: addr
        value: 10.*
        share_threshold: true
        rate_limit: {unit: minute, requests_per_unit: 7}
  - key: path
    value: /*
    rate_limit: {unit: HOUR, requests_per_unit: 8}
  - key: path
    rate_limit: {unit: day, requests_per_unit: 9}
    descriptors:
      - key: addr
        rate_limit: {unit: week, requests_per_unit: 10}
  - key: a_b
    rate_limit: {unit: month, requests_per_unit: 11}
  - key: free
    rate_limit: {unlimited: yes}
  - key: shut
    rate_limit: {unit: year, requests_per_unit: 0}
  - key: outer
    descriptors:
      - key: inner
  - key: foo*
    rate_limit: {unit: second, requests_per_unit: 12}
    descriptors:
      - key: "*"
        share_threshold: true
        rate_limit: {unit: second, requests_per_unit: 13}
  - key: fo*bar
    value: v*
    rate_limit: {unit: second, requests_per_unit: 14}
  - key: foot
    value: ball
    rate_limit: {unit: second, requests_per_unit: 15}
  - key: foot
    rate_limit: {unit: second, requests_per_unit: 16}
`

func only(rules []*Rule) *Rule {
	if len(rules) == 0 {
		return nil
	}
	return rules[0]
}

// TestMatch: each descriptor finds the right rule. The number of requests in the rule's limit identifies the rule. -1
// means no rule.
func TestMatch(t *testing.T) {
	config, warnings, err := load(t, tree, Options{})
	require.NoError(t, err)
	require.Empty(t, warnings)
	for asks, want := range map[string]int{
		"user=":                             1,
		"user=carol":                        1,
		"user=alice":                        2,
		"user=alicf":                        3,
		"user=a":                            3,
		"user=justice":                      4,
		"user=ice":                          4,
		"user=bcd":                          5,
		"user=bxxcyyd":                      5,
		"user=bccdd":                        5,
		"user=bd":                           1,
		"user=bdc":                          1,
		"User=alice":                        1 - 2,
		"user=alice,addr=1":                 -1,
		"path=/login":                       -1, // only its children have limits
		"path=/login,addr=1.2.3.4":          6,
		"path=/login,addr=10.2.3.4":         7,
		"path=/login,addr=":                 6,
		"path=/login,user=x":                -1,
		"path=/other":                       8,
		"path=/other,addr=1":                -1, // the wildcard has no children, and no other child is tried
		"path=x":                            9,
		"path=x,addr=1":                     10,
		"path=x,addr=1,addr=1":              -1,
		"a=b":                               11, // the key and the value are joined, as in envoyproxy/ratelimit
		"a_b=":                              11,
		"a_b=c":                             11,
		"free=x":                            0,
		"shut=x":                            0,
		"outer=1,inner=2":                   -1,
		"outer=1":                           -1,
		"":                                  -1,
		"path=/login,addr=10.1,user=":       -1,
		"user=*":                            1,
		"path=/*":                           8,
		"path=/login,addr=10.":              7,
		"path=/login,addr=10":               6,
		"user=" + strings.Repeat("x", 1000): 1,
		// A pattern in a key is tried after an exact key_value, and before a key without a value.
		"foo=":           12,
		"foobar=x":       12,
		"foo*=x":         12,
		"fo=o":           -1,
		"fo=bar_v":       14, // the joined text is "fo_bar_v"
		"fobar=vx":       14,
		"fobar=x":        -1,
		"foobar=vx":      12,
		"foot=ball":      15,
		"foot=print":     12,
		"xfoo=x":         -1,
		"foobar=x,a=b":   13,
		"foot=ball,a=b":  -1,
		"foot=print,a=b": 13,
	} {
		got := -1
		if rule := only(config.Match("shop", asked(asks))); rule != nil {
			got = int(rule.Limit.Requests)
		}
		assert.Equal(t, want, got, asks)
	}
	assert.Nil(t, only(config.Match("shop", &commonv3.RateLimitDescriptor{})), "no entries")
	assert.Nil(t, only(config.Match("other", asked("user=alice"))), "another domain")
	assert.True(t, only(config.Match("shop", asked("free=x"))).Limit.Unlimited)
}

func TestWindows(t *testing.T) {
	config, _, err := load(t, tree, Options{})
	require.NoError(t, err)
	for asks, want := range map[string]time.Duration{
		"user=": time.Second, "path=/login,addr=1": time.Minute, "path=/x": time.Hour, "path=x": 24 * time.Hour,
		"path=x,addr=1": 7 * 24 * time.Hour, "a_b=": 30 * 24 * time.Hour, "shut=": 365 * 24 * time.Hour,
	} {
		rule := only(config.Match("shop", asked(asks)))
		assert.Equal(t, want, rule.Limit.Window, asks)
		assert.Equal(t, engine.AlgorithmFixedWindow, rule.Limit.Algorithm)
	}
	for lines, want := range map[string]Limit{
		"{unit: minute, unit_multiplier: 5, requests_per_unit: 3}": {engine.AlgorithmFixedWindow, 3, 0, 5 * time.Minute, 2, 5, false, nil, 0},
		"{period: 90s, requests_per_unit: 3}":                      {engine.AlgorithmFixedWindow, 3, 0, 90 * time.Second, 0, 1, false, nil, 0},
		"{unit: second, requests_per_unit: 3, algorithm: token-bucket}": {
			engine.AlgorithmTokenBucket, 3, 3, time.Second, 1, 1, false, nil, 0},
		"{unit: second, requests_per_unit: 3, algorithm: token-bucket, burst: 9}": {
			engine.AlgorithmTokenBucket, 3, 9, time.Second, 1, 1, false, nil, 0},
		"{unit: second, requests_per_unit: 3, algorithm: sliding-log}": {
			engine.AlgorithmSlidingLog, 3, 0, time.Second, 1, 1, false, nil, 0},
	} {
		config, _, err := load(t, "domain: d\ndescriptors: [{key: k, rate_limit: "+lines+"}]", Options{})
		require.NoError(t, err, lines)
		assert.Equal(t, want, only(config.Match("d", asked("k=v"))).Limit, lines)
	}
}

func TestMergedDomains(t *testing.T) {
	const files = "-- a.yaml --\ndomain: d\ndescriptors: [{key: a, rate_limit: {unit: second}}]\n" +
		"-- b.yaml --\ndomain: d\ndescriptors: [{key: b, rate_limit: {unit: second}}]\n"
	config, _, err := load(t, files, Options{MergeDomains: true})
	require.NoError(t, err)
	assert.NotNil(t, only(config.Match("d", asked("a=1"))))
	assert.NotNil(t, only(config.Match("d", asked("b=1"))))

	_, _, err = load(t, files+"-- c.yaml --\ndomain: d\ndescriptors: [{key: a}]\n", Options{MergeDomains: true})
	assert.EqualError(t, err, "c.yaml:2:15: duplicate descriptor composite key 'd.a'")
}

// TestAnchors: aliases and merges have their YAML meaning.
func TestAnchors(t *testing.T) {
	config, warnings, err := load(t, `
domain: d
descriptors:
  - key: a
    rate_limit: &limit {unit: second, requests_per_unit: 5, name: n}
  - key: b
    rate_limit: *limit
  - key: c
    rate_limit:
      requests_per_unit: 7
      <<: *limit
  - key: e
    rate_limit:
      <<: [{requests_per_unit: 8}, *limit]
`, Options{})
	require.NoError(t, err)
	assert.Empty(t, warnings)
	for key, want := range map[string]uint32{"a": 5, "b": 5, "c": 7, "e": 8} {
		rule := only(config.Match("d", asked(key+"=x")))
		assert.Equal(t, want, rule.Limit.Requests, key)
		assert.Equal(t, time.Second, rule.Limit.Window, key)
		assert.Equal(t, "n", rule.Name, key)
	}
}

func TestMetadata(t *testing.T) {
	config, _, err := load(t, `
domain: d
descriptors:
  - key: a
    rate_limit: {unit: second}
    metadata: {tier: gold, share: 0.5, list: [1, x, ~], deep: {on: true}}
`, Options{})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"tier": "gold", "share": 0.5, "list": []any{1.0, "x", nil}, "deep": map[string]any{"on": true},
	}, only(config.Match("d", asked("a=1"))).Metadata.AsMap())
}

// TestXDS: an xDS resource gives the same rules as a file with the same content.
func TestXDS(t *testing.T) {
	resource := &configv3.RateLimitConfig{Name: "r", Domain: "d", Descriptors: []*configv3.RateLimitDescriptor{{
		Key: "a", Value: "v", ShadowMode: true, DetailedMetric: true,
		RateLimit: &configv3.RateLimitPolicy{
			Unit: configv3.RateLimitUnit_HOUR, RequestsPerUnit: 3, Name: "n",
			Replaces: []*configv3.RateLimitReplace{{Name: "m"}},
		},
		Descriptors: []*configv3.RateLimitDescriptor{{
			Key: "b", RateLimit: &configv3.RateLimitPolicy{Unlimited: true},
		}},
	}}}
	fromXDS, err := Compile([]*Document{FromXDS(resource)}, Options{})
	require.NoError(t, err)
	fromFile, _, err := load(t, `
domain: d
descriptors:
  - key: a
    value: v
    shadow_mode: true
    detailed_metric: true
    rate_limit: {unit: hour, requests_per_unit: 3, name: n, replaces: [{name: m}]}
    descriptors: [{key: b, rate_limit: {unlimited: true}}]
`, Options{})
	require.NoError(t, err)
	assert.Equal(t, fromFile, fromXDS)

	resource.Descriptors[0].RateLimit.Unit = configv3.RateLimitUnit_UNKNOWN
	_, err = Compile([]*Document{FromXDS(resource)}, Options{})
	assert.EqualError(t, err, "r: invalid rate limit unit ''")
}

func override(requests uint32, unit int32, fields []byte) *commonv3.RateLimitDescriptor_RateLimitOverride {
	o := &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: requests, Unit: typev3.RateLimitUnit(unit)}
	o.ProtoReflect().SetUnknown(fields)
	return o
}

func TestOverride(t *testing.T) {
	limit, err := Override(override(7, 2, nil))
	require.NoError(t, err)
	assert.Equal(t, Limit{engine.AlgorithmFixedWindow, 7, 0, time.Minute, 2, 1, false, nil, 0}, limit)
	for _, unit := range []int32{-1, 0, 8, 1 << 30} {
		_, err := Override(override(7, unit, nil))
		assert.EqualError(t, err, fmt.Sprintf("unit %d: want 1 to 7", unit))
	}
}

// TestMultiplierOfAnOverride: the multiplier is read from the bytes of the message, even among other unknown fields.
func TestMultiplierOfAnOverride(t *testing.T) {
	other := protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 7)
	multiplier := func(value ...byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(append([]byte(nil), other...), 3, protowire.BytesType), value)
	}
	for _, test := range []struct {
		name   string
		fields []byte
		window time.Duration
		err    string
	}{
		{"none", other, time.Minute, ""},
		{"5", multiplier(8, 5), 5 * time.Minute, ""},
		{"two, the last wins", append(multiplier(8, 5), multiplier(8, 6)...), 6 * time.Minute, ""},
		{"two, the last without a value", append(multiplier(8, 5), multiplier()...), 5 * time.Minute, ""},
		{"0", multiplier(8, 0), 0, "unit_multiplier 0 of a minute: want 1 to 525600, which is 365 days"},
		{"an empty message", multiplier(), 0, "unit_multiplier 0 of a minute: want 1 to 525600, which is 365 days"},
		{"more than a year", multiplier(8, 0xa1, 0x8a, 0x20), 0, "unit_multiplier 525601 of a minute: want 1 to 525600, which is 365 days"},
		{"no message", multiplier(8), 0, "unit_multiplier: proto:"},
	} {
		wire, err := proto.Marshal(override(7, 2, test.fields))
		require.NoError(t, err)
		received := &commonv3.RateLimitDescriptor_RateLimitOverride{}
		require.NoError(t, proto.Unmarshal(wire, received))
		limit, err := Override(received)
		if test.err != "" {
			assert.ErrorContains(t, err, test.err, test.name)
			continue
		}
		assert.NoError(t, err, test.name)
		assert.Equal(t, test.window, limit.Window, test.name)
		assert.EqualValues(t, test.window/time.Minute, limit.Multiplier, test.name)
	}
	assert.Nil(t, Limit{Multiplier: 1}.EncodedMultiplier())
	assert.Equal(t, []byte{0x22, 3, 8, 0xac, 2}, Limit{Multiplier: 300}.EncodedMultiplier())
}

func TestMatchDoesNotAllocate(t *testing.T) {
	config, _, err := load(t, tree, Options{})
	require.NoError(t, err)
	key := make([]byte, 0, 200)
	for _, asks := range []string{"user=alice", "user=bxxcyyd", "path=/login,addr=10.1", "nobody=x"} {
		d := asked(asks)
		assert.Zero(t, testalloc.PerCall(func() {
			rule := only(config.Match("shop", d))
			key = AppendKey(key[:0], rule, "shop", d)
		}), asks)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(tree))
	for _, m := range mistakes {
		f.Add([]byte(m.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		document, err := Parse("a.yaml", text)
		if err != nil {
			return
		}
		config, err := Compile([]*Document{document}, Options{})
		if err != nil {
			return
		}
		for name := range config.domains {
			walk(t, config, name, &config.domains[name].node, nil)
		}
	})
}

// walk checks that Match finds each rule below n by the entries of its path. It leaves out wildcards.
func walk(t *testing.T, config *Config, domain string, n *node, entries []string) {
	for name, child := range n.children {
		if child.pattern != nil || strings.ContainsAny(name, "_=,") || name == "" {
			continue
		}
		path := append(entries[:len(entries):len(entries)], name)
		if len(n.wildcards) == 0 && len(entries) == 0 && child.rules != nil {
			d := asked(strings.Join(path, ","))
			if only(config.Match(domain, d)) != child.rules[0] {
				t.Errorf("%q does not find its rule", path)
			}
		}
		walk(t, config, domain, child, path)
	}
}
