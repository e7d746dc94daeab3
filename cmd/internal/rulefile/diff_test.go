package rulefile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func ruleOf(t *testing.T, settings string) *File {
	t.Helper()
	f, err := Parse("weir.yaml", []byte("rules: [{name: a, "+settings+"}]"))
	require.NoError(t, err)
	return f
}

func TestWhatBecomesOfALimiter(t *testing.T) {
	tiers := func(rest string) string { return "rate: 10/s, tiers: {header: X-Plan, values: {" + rest + "}}" }
	for _, c := range []struct {
		before, after string
		want          Continuity
		reason        string
	}{
		{"rate: 1/s", "rate: 1/s", Keep, ""},
		{"rate: 60/m", "rate: 1/s", Adjust, ""},
		{"rate: 1/s", "rate: 1/s, burst: 7", Adjust, ""},
		{"rate: 1/s", "rate: 1/s, burst: 1, shadow: true, match: {path: /a}, refund_status: 2xx", Keep, ""},
		{"rate: 1/s", "rate: 1/s, algorithm: fixed-window", Carry,
			"the algorithm was token-bucket and is fixed-window"},
		{"rate: 1/s, algorithm: fixed-window", "rate: 9/m, algorithm: fixed-window", Adjust, ""},
		{
			"rate: 1/s, algorithm: fixed-window", "rate: 1/s, algorithm: fixed-window, aligned: true", Carry,
			"the limiter does not accept the new numbers: SetPolicy(fixed window 1/1s, aligned): the limiter is a " +
				"fixed window 1/1s, and stays of that kind",
		},
		{"rate: 1/s", "rate: 1/s, key: path", Replace, "the key was ip and is path"},
		{"rate: 1/s", "rate: 1/s, max_keys: 5", Carry, "max_keys was 1000000 and is 5"},
		{"rate: 1/s", "rate: 1/s, overflow: refuse", Carry, "overflow was evict and is refuse"},
		{"rate: 10/s", tiers("b: {rate: 1/s}"), Carry, "there were 0 tiers and are 1"},
		{tiers("b: {rate: 1/s}"), tiers("b: {rate: 2/s}"), Adjust, ""},
		{tiers("b: {rate: 1/s}"), tiers("c: {rate: 1/s}"), Keep, ""},
		{"rate: 1/s", "rate: 0", Adjust, ""},
		{"rate: 0", "rate: unlimited", Adjust, ""},
		{"rate: 0", "rate: 1/s", Carry, "the limit was none: every request is refused and is token bucket 1/s burst 1"},
		{tiers("b: {rate: 0}"), tiers("b: {rate: unlimited}"), Keep, ""},
		{tiers("b: {rate: 0}"), tiers("b: {rate: 1/s}"), Carry, "there were 0 tiers and are 1"},
		{"rate: 1/s", "rate: 1/s, max_wait: 1s", Keep, ""},
		{"rate: 10/m, algorithm: sliding-log", "rate: 9/m, algorithm: sliding-log", Adjust, ""},
		{
			"rate: 10/m, algorithm: sliding-log", "rate: 11/m, algorithm: sliding-log", Carry,
			"the limiter does not accept the new numbers: SetPolicy(sliding log 11/1m0s) with 0 tiers: want limits of 1 to 10, " +
				"the largest at New",
		},
	} {
		changes := Diff(ruleOf(t, c.before), ruleOf(t, c.after))
		require.Len(t, changes.Rules, 1)
		got := changes.Rules[0]
		assert.Equal(t, c.want, got.Limit, "%s -> %s: %s", c.before, c.after, got.Reason)
		assert.Contains(t, got.Reason, c.reason)
		assert.Equal(t, c.want == Keep, changes.Empty())
		changes.Rules[0].ChangedKeys = nil // tested below
		assert.Equal(t, c.want != Keep, len(changes.Lines()) == 1)
	}
}

func TestWhatElseChanged(t *testing.T) {
	before := ruleOf(t, "rate: 1/s, match: {path: /a}")
	after, err := Parse("weir.yaml", []byte(`
headers: both
routes: [{match: {path: "/b/"}, upstream: "http://127.0.0.1:3000"}]
server: {idle_timeout: 1s}
trusted_proxies: 10.0.0.0/8
rules: [{name: a, rate: 1/s, match: {path: /b}, shadow: true, refund_status: 2xx}]`))
	require.NoError(t, err)
	changes := Diff(before, after)
	assert.True(t, changes.Empty())
	assert.Equal(t, []string{
		"rule a: changed: match, refund_status, shadow",
		"changed: routes, trusted_proxies, client_ip, headers, server",
	}, changes.Lines())
	assert.Empty(t, Diff(after, after).Lines())
}

// TestOtherKeys: a reload reports the changes that give some requests another key.
func TestOtherKeys(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"rules: [{name: a, rate: 1/s}]", "client_ip: {ipv4_prefix: 24}\nrules: [{name: a, rate: 1/s}]",
			"addresses were grouped by /32 (IPv4) and /64 (IPv6), and are grouped by /24 and /64"},
		{"rules: [{name: a, rate: 1/s}]", "client_ip: {ipv6_prefix: 48}\nrules: [{name: a, rate: 2/s}]", "/32 and /48"},
		{"rules: [{name: a, rate: 1/s, key: global}]", "client_ip: {ipv4_prefix: 24}\nrules: [{name: a, rate: 1/s, key: global}]", ""},
		{"rules: [{name: a, rate: 1/s, key: path}]", "rules: [{name: a, rate: 1/s, key: path, match: {path: /b/}}]", "paths has changed"},
		{"rules: [{name: a, rate: 1/s, key: path, match: {path: /b/}}]",
			"rules: [{name: a, rate: 1/s, key: path, match: {path: /b/, case: sensitive}}]", "paths has changed"},
		{"rules: [{name: a, rate: 1/s, key: path, match: {path: /b/}}]",
			"rules: [{name: a, rate: 1/s, key: path, match: {path: /b/, method: GET}}]", ""},
		{"rules: [{name: a, rate: 1/s, match: {path: /b/}}]", "rules: [{name: a, rate: 1/s, match: {path: /c/}}]", ""},
	} {
		before, err := Parse("weir.yaml", []byte(c.before))
		require.NoError(t, err)
		after, err := Parse("weir.yaml", []byte(c.after))
		require.NoError(t, err)
		changes := Diff(before, after)
		assert.Contains(t, changes.Rules[0].Rekeyed, c.want, c.after)
		assert.Equal(t, c.want != "", strings.Contains(strings.Join(changes.Lines(), "\n"), "have another key"), c.after)
	}
}

// TestAnAdjustedLimiterKeepsItsBuckets: if Diff calls a change an adjustment, the limiter accepts the change, and no
// key gets a full bucket from it.
func TestAnAdjustedLimiterKeepsItsBuckets(t *testing.T) {
	before, after := ruleOf(t, "rate: 1/h, burst: 10"), ruleOf(t, "rate: 2/h, burst: 20")
	limiter, err := before.Rules[0].NewLimiter()
	require.NoError(t, err)
	defer limiter.Close()
	require.True(t, limiter.Take("k", 10).Allowed)
	require.Equal(t, Adjust, Diff(before, after).Rules[0].Limit)
	require.NoError(t, limiter.SetPolicy(after.Rules[0].Policy))
	assert.EqualValues(t, 10, limiter.Peek(limiter.Key("k"), 1).Remaining, "ten are taken")

	// The tiers stay when the rule's own burst changes.
	tiered := func(burst int) *File {
		return ruleOf(t, fmt.Sprintf("rate: 1/h, burst: %d, tiers: {header: X-Plan, values: {paid: {rate: 100/h, burst: 100}}}", burst))
	}
	before, after = tiered(1000), tiered(10)
	limiter, err = before.Rules[0].NewLimiter()
	require.NoError(t, err)
	defer limiter.Close()
	paid := limiter.Key("k").Tier(1)
	require.True(t, limiter.TakeKey(paid, 100).Allowed)
	require.Equal(t, Adjust, Diff(before, after).Rules[0].Limit)
	require.NoError(t, limiter.SetPolicy(after.Rules[0].Policy, after.Rules[0].TierPolicies()...))
	assert.False(t, limiter.AllowKey(paid))
	assert.InDelta(t, time.Hour, limiter.Peek(paid, 100).RetryAfter, float64(time.Minute))
}

func TestDiffOfListenersAndRules(t *testing.T) {
	parse := func(text string) *File {
		f, err := Parse("weir.yaml", []byte(text))
		require.NoError(t, err)
		return f
	}
	before := parse(`
listen: [":1", {address: ":2", h2c: true}, {address: ":3", tls: {cert: a, key: b}}]
rules: [{name: a, rate: 1/s}, {name: b, rate: 1/s, tiers: {header: X-Plan, values: {free: {burst: 1}}}}, {name: c, rate: 1/s}]
`)
	after := parse(`
listen: [":1", ":2", {address: ":3", tls: {cert: a, key: b}}]
admin: {address: 127.0.0.1:9}
rules: [{name: d, rate: 1/s}, {name: b, rate: 2/s, tiers: {header: X-Plan, values: {free: {burst: 2}}}}, {name: a, rate: 1/s, key: global}]
`)
	assert.Equal(t, []string{
		"rule d: new, token bucket 1/s burst 1",
		"rule b: token bucket 2/s burst 2; free: token bucket 2/s burst 2, was token bucket 1/s burst 1; free: " +
			"token bucket 1/s burst 1; the tokens that a key has used still count, and what exceeds a lower limit must come back first",
		"rule a: starts over with full buckets, because the key was ip and is global",
		"rule c: gone",
		"listening on :2 (HTTP/1.1)",
		"no longer listening on :2 (HTTP/1.1 and HTTP/2 without TLS)",
		"the admin listener changes",
	}, Diff(before, after).Lines())
	assert.True(t, Diff(before, before).Empty())
	assert.True(t, Diff(after, after).Empty())
	assert.False(t, Diff(after, before).Empty())
}
