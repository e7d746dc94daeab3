package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testalloc"
)

// TestClasses: a rule may select values by cidr or regex. A rule for the exact value comes first. Then come classes, in
// the order of the file.
func TestClasses(t *testing.T) {
	config, _, err := load(t, `
domain: d
descriptors:
  - key: addr
    rate_limit: {unit: second, requests_per_unit: 1}
  - key: addr
    cidr: 10.1.0.0/16
    rate_limit: {unit: second, requests_per_unit: 2}
  - key: addr
    cidr: 10.0.0.0/8
    share_threshold: true
    rate_limit: {unit: second, requests_per_unit: 3}
  - key: addr
    value: 10.0.0.1
    rate_limit: {unit: second, requests_per_unit: 4}
  - key: addr
    cidr: 2001:db8::/32
    rate_limit: {unit: second, requests_per_unit: 5}
  - key: path
    regex: /api/v[0-9]+/users|/me
    descriptors:
      - key: user
        rate_limit: {unit: second, requests_per_unit: 6}
  - key: path
    regex: (?i)/LOGIN
    value_to_metric: true
    rate_limit: {unit: second, requests_per_unit: 7}
`, Options{})
	require.NoError(t, err)
	for entries, want := range map[string]uint32{
		"addr=10.1.2.3": 2, "addr=10.2.0.1": 3, "addr=::ffff:10.2.0.1": 3, "addr=10.0.0.1": 4, "addr=2001:db8::1": 5,
		"addr=11.0.0.1": 1, "addr=10.0.0.0/8": 1, "addr=10.1": 1, "addr=x": 1, "addr=": 1, "addr_cidr:10.0.0.0/8=": 0, "other=10.1.2.3": 0,
		"path=/api/v12/users,user=a": 6, "path=/me,user=a": 6, "path=/api/v12/users/x,user=a": 0, "path=x/me,user=a": 0,
		"path=/me\n,user=a": 0, "path=/me": 0, "path=/Login": 7,
	} {
		rule := only(config.Match("d", asked(entries)))
		if want == 0 {
			assert.Nil(t, rule, entries)
			continue
		}
		require.NotNil(t, rule, entries)
		assert.Equal(t, want, rule.Limit.Requests, entries)
	}
	key := func(entries string) string {
		return string(AppendKey(nil, only(config.Match("d", asked(entries))), "d", asked(entries)))
	}
	assert.Equal(t, key("addr=10.2.0.1"), key("addr=10.3.0.1"), "they share a counter")
	assert.NotEqual(t, key("addr=10.1.0.1"), key("addr=10.1.0.2"))

	rule := only(config.Match("d", asked("addr=10.2.0.1")))
	assert.Equal(t, "d.addr_cidr_10_0_0_0/8", rule.StatOf(asked("addr=10.2.0.1")))
	assert.Equal(t, []Entry{{"addr", "cidr:10.0.0.0/8"}}, rule.Entries())
	rule = only(config.Match("d", asked("path=/me,user=a")))
	assert.Equal(t, "d.path_regex_/api/v[0-9]+/users_/me.user", rule.StatOf(asked("path=/me,user=a")))
	assert.Equal(t, "d.path_/Login", only(config.Match("d", asked("path=/Login"))).StatOf(asked("path=/Login")))
	assert.Contains(t, config.Differences(), "d.addr_cidr_10_1_0_0/16: cidr is weir's own: the reference refuses the file")
	one, other := asked("addr=10.1.2.3"), asked("path=/api/v12/users,user=a")
	assert.Zero(t, testalloc.PerCall(func() {
		config.Match("d", one)
		config.Match("d", other)
	}))
}
