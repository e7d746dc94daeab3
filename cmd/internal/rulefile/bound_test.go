package rulefile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testclock"
)

// TestBound checks the terms of docs/budgets.md with the numbers of each kind of rule.
func TestBound(t *testing.T) {
	for rule, want := range map[string][]string{
		"rate: 100000/m, tokens: {}": {"at most 100000 + 100000/m * T",
			"an answer above 1024 tokens if the request does not bound it, at most 60000000 each",
			"owes 1000000 tokens"},
		"rate: 10/m, burst: 70, tokens: {clamp: true}":                    {"at most 70 + 10/m * T", ": by how much a prompt exceeds its estimate or the limit", "owes 700 tokens"},
		"rate: 10/m, algorithm: sliding-log, tokens: {estimate: learned}": {"at most 10 in each 1m0s", "for one in 20 requests, the part above the usual cost, at most 60000000 each", "owes 10 tokens"},
		"rate: 10/h, algorithm: fixed-window, tokens: {estimate: none, count: output}": {"at most 10 for each 1h0m0s that T touches",
			": all but one token, at most 20000000 each", "owes 10 tokens"},
		"rate: 5000/month, algorithm: fixed-window, zone: Europe/Berlin, tokens: {scale: 1000, estimate: 7, count: {input: 3, models: {a: {output: 15}}}}": {
			"at most 5000 for each month of Europe/Berlin that T touches, in tokens of 1000 units", ": what is above 1, at most 300000 each", "owes 5000 tokens"},
		"rate: 5/s, cost: {estimate: 50, from: json:total}": {"at most 5 + 5/s * T", "at most 10000000 each, of which 50 are held", "owes 50 tokens"},
		"rate: 5/s, tokens: {}, tiers: {header: P, values: {a: {rate: 9/s}}}": {"at most 5 + 5/s * T", "", "owes 50 tokens",
			"with the numbers of its tier or quota, if it has one"},
	} {
		f, err := Parse("weir.yaml", []byte("rules: [{name: a, "+rule+"}]"))
		require.NoError(t, err, rule)
		got := f.Rules[0].Bound()
		require.Len(t, got, len(want), rule)
		for i := range want {
			assert.True(t, strings.HasSuffix(got[i], want[i]), "%s: %q", rule, got[i])
		}
		var b strings.Builder
		require.NoError(t, f.Describe(&b))
		assert.Contains(t, b.String(), "  bound   "+got[0]+"\n          "+got[1]+"\n")

		l, err := f.Rules[0].NewLimiter(engine.ClockFunc(testclock.New().Now)) // a clock that stands still
		require.NoError(t, err)
		l.Charge(l.Key("k"), 1<<40)
		owed, _ := l.Owed(l.Key("k"))
		assert.Contains(t, got[2], fmt.Sprintf("owes %d tokens", owed), "what the engine does: %s", rule)
		require.NoError(t, l.Close())
	}
	f, err := Parse("weir.yaml", []byte("rules: [{name: a, rate: 1/s}]"))
	require.NoError(t, err)
	assert.Nil(t, f.Rules[0].Bound())
}
