package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSeveralLimits checks which combinations of limits in rate_limits are valid, and the name of each limit.
func TestSeveralLimits(t *testing.T) {
	of := func(limits string) string { return "domain: d\ndescriptors:\n  - key: k\n    rate_limits: " + limits }
	const second = "{unit: second, requests_per_unit: 1}"
	for limits, want := range map[string]string{
		"[]": "a.yaml:4:18: rate_limits: want 1 to 8 limits, not 0",
		"[" + strings.Repeat("{unit: second}, ", 9) + "]": "rate_limits: want 1 to 8 limits, not 9",
		"{unit: second}":                                           "want a list, not",
		"[" + second + ", {unlimited: true}]":                      "a.yaml:4:57: unlimited next to other limits of the descriptor: leave one of them out",
		"[" + second + ", {unit: second, requests_per_unit: 2}]":   "two limits of the descriptor are of the same algorithm and time: leave one of them out",
		"[" + second + ", {period: 1s}]":                           "two limits of the descriptor are of the same algorithm and time",
		second[:0] + "[" + second + "]\n    rate_limit: " + second: "rate_limit and rate_limits of one descriptor: leave one of them out",
		"[{unit: moon}]":                                           "invalid rate limit unit 'moon'",
	} {
		_, _, err := load(t, of(limits), Options{})
		assert.ErrorContains(t, err, want, limits)
	}
	config, _, err := load(t, of(`[{unit: second}, {unit: minute, unit_multiplier: 2}, {period: 1.5s, algorithm: sliding-window}, {unit: second, algorithm: token-bucket, requests_per_unit: 1}]`)+
		"\n  - {key: one, rate_limits: [{unit: day}]}\n  - {key: named, value_to_metric: true, rate_limits: [{unit: day}, {unit: week}]}", Options{})
	require.NoError(t, err)
	var names []string
	for _, r := range config.Rules() {
		names = append(names, r.Stat)
	}
	assert.Equal(t, []string{"d.k_per_second", "d.k_per_2_minutes", "d.k_per_1_5s", "d.k_per_second_token_bucket", "d.one", "d.named_per_day", "d.named_per_week"}, names)
	assert.Equal(t, "d.named_x_per_week", config.Match("d", asked("named=x"))[1].StatOf(asked("named=x")))
	assert.Contains(t, config.Differences(), "d.k_per_second: rate_limits is weir's own: the reference refuses the file")
}

// TestOwnKeys: every key that the reference does not have is named, also if it changes nothing.
func TestOwnKeys(t *testing.T) {
	config, _, err := load(t, `domain: d
descriptors:
  - {key: plain, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: zone, rate_limit: {unit: day, requests_per_unit: 1, zone: UTC}}
  - {key: quotas, rate_limit: {unit: day, requests_per_unit: 1, quotas: {hash: plans}}}
  - {key: same, rate_limit: {unit: day, requests_per_unit: 1, algorithm: fixed-window}}
  - {key: list, rate_limits: [{unit: day, requests_per_unit: 1}]}
  - {key: more, rate_limit: {period: 90s, requests_per_unit: 1, algorithm: token-bucket, burst: 2, overdraw: true}}
  - {key: addr, cidr: 10.0.0.0/8, descriptors: [{key: name, regex: a.*, rate_limit: {unit: day, requests_per_unit: 1}}]}
`, Options{})
	require.NoError(t, err)
	const refuses = " weir's own: the reference refuses the file"
	assert.Equal(t, []string{
		"d.addr_cidr_10_0_0_0/8.name_regex_a_*: cidr and regex are" + refuses,
		"d.list: rate_limits is" + refuses,
		"d.more: algorithm, burst, period, and overdraw are" + refuses,
		"d.quotas: quotas is" + refuses,
		"d.same: algorithm is" + refuses,
		"d.zone: zone is" + refuses,
	}, config.Differences())
}

// TestTheLargestLimit: the reference accepts any number of 32 bits in any unit.
func TestTheLargestLimit(t *testing.T) {
	for _, unit := range []string{"second", "minute", "hour", "day", "week", "month", "year"} {
		_, _, err := load(t, "domain: d\ndescriptors: [{key: a, rate_limit: {unit: "+unit+", requests_per_unit: 4294967295}}]", Options{})
		assert.NoError(t, err, unit)
	}
}
