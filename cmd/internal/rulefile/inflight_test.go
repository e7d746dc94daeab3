package rulefile

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

const year = 365 * 24 * time.Hour

// TestConcurrencies: if a rule has only a concurrency, it is one rule. If it also has a rate, it becomes two rules for
// the same requests and keys.
func TestConcurrencies(t *testing.T) {
	f, err := Parse("weir.yaml", []byte(`
store: redis://127.0.0.1:6379
rules:
  - {name: alone, concurrency: 5, cost: 2, key: global, store: false}
  - name: both
    match: {path: /files/}
    key: header:X-Key
    rate: 10/s
    concurrency: 3
    store: false
    cost: 4
    refund_status: 5xx
    shadow: true
    max_keys: 70
    tiers:
      header: X-Plan
      values: {fast: {rate: 20/s}, wide: {concurrency: 9}, paid: {rate: 30/s, concurrency: 7}}
  - {name: unlimited, rate: unlimited, concurrency: 2, store: false}`))
	require.NoError(t, err)
	require.Len(t, f.Rules, 5)
	alone, rate, both, constant, beside := &f.Rules[0], &f.Rules[1], &f.Rules[2], &f.Rules[3], &f.Rules[4]
	assert.Equal(t, engine.Concurrency(5, year), alone.Policy)
	assert.Equal(t, Cost{Default: 2, Max: 2}, alone.Cost)
	assert.Nil(t, alone.Store, "on this machine alone")
	assert.Equal(t, "both.concurrency", both.Name)
	assert.Equal(t, engine.Concurrency(3, year), both.Policy)
	assert.Equal(t, []any{rate.Match, rate.Key, true, 70, rate.Line}, []any{both.Match, both.Key, both.Shadow, both.MaxKeys, both.Line})
	assert.Equal(t, Cost{Default: 1, Max: 1}, both.Cost, "the cost is in tokens of the rate")
	assert.Empty(t, both.Refund)
	assert.Equal(t, &Tiers{Header: "X-Plan", Values: []string{"wide", "paid"},
		Policies: []engine.Policy{engine.Concurrency(9, year), engine.Concurrency(7, year)}}, both.Tiers)
	assert.Equal(t, []string{"fast", "paid"}, rate.Tiers.Values)
	assert.False(t, rate.IsInFlight())
	assert.Equal(t, Unlimited, constant.Constant)
	assert.Equal(t, Counted, beside.Constant)
	assert.True(t, beside.IsInFlight())
	assert.Nil(t, beside.Store)
	var out strings.Builder
	require.NoError(t, f.Describe(&out))
	assert.Contains(t, out.String(), "  limit   3 at a time\n          9 at a time for X-Plan: wide\n          7 at a time for X-Plan: paid\n")
}

// TestAReloadKeepsWhatIsInFlight: if only the number of a concurrency changes, the limiter stays.
func TestAReloadKeepsWhatIsInFlight(t *testing.T) {
	file := func(text string) *File {
		f, err := Parse("weir.yaml", []byte("rules: [{name: a, "+text+"}]"))
		require.NoError(t, err)
		return f
	}
	changes := Diff(file("rate: 1/s, concurrency: 5"), file("rate: 1/s, concurrency: 50000"))
	assert.Equal(t, Keep, changes.Rules[0].Limit)
	assert.Equal(t, Adjust, changes.Rules[1].Limit)
	assert.Equal(t, []string{"rule a.concurrency: 50000 at a time, was 5 at a time; the tokens that a key has used still count, and what exceeds a lower limit must come back first"}, changes.Lines())
	changes = Diff(file("concurrency: 5"), file("rate: 1/s"))
	assert.Equal(t, []string{"rule a: starts over with full buckets, because the algorithm was concurrency and is token-bucket"}, changes.Lines())
	changes = Diff(file("rate: 1/s, concurrency: 5"), file("rate: 1/s"))
	assert.Equal(t, []string{"a.concurrency"}, changes.Removed)
}
