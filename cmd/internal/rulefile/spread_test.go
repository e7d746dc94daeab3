package rulefile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestASpreadRule(t *testing.T) {
	f, err := Parse("weir.yaml", []byte("store: redis://127.0.0.1:6379\nrules:\n"+
		"  - {name: a, rate: 1/s, key: global, spread: true, store: false, cost: 1, shadow: true}\n"+
		"  - {name: b, rate: 0, key: global, spread: true}\n  - {name: c, rate: 1/s, concurrency: 3, key: global, spread: true, store: false}"))
	require.NoError(t, err)
	assert.True(t, f.Rules[0].Spread)
	assert.True(t, f.Rules[2].Spread)
	assert.False(t, f.Rules[3].Spread, "what is in flight is not")
	memory, err := f.Rules[0].Memory()
	require.NoError(t, err)
	assert.Zero(t, memory)
	var out strings.Builder
	require.NoError(t, f.Describe(&out))
	assert.Contains(t, out.String(), "  limit   token bucket 1/s burst 1\n  bucket  on all processors\n")
}

func TestAReloadThatSpreads(t *testing.T) {
	plain, spread := "key: global, rate: 9/s", "key: global, rate: 9/s, spread: true"
	for _, c := range []struct {
		before, after string
		want          Continuity
		line          string
	}{
		{spread, spread, Keep, ""},
		{spread, "key: global, rate: 5/s, spread: true", Adjust, "rule a: token bucket 5/s burst 5, was token bucket 9/s burst 9; " +
			"the tokens that a key has used still count, and what exceeds a lower limit must come back first"},
		{plain, spread, Carry, "rule a: token bucket 9/s burst 9, was token bucket 9/s burst 9; it has a new limiter, because its bucket is " +
			"divided among all processors now; what keys have used still counts"},
		{spread, plain, Carry, "rule a: token bucket 9/s burst 9, was token bucket 9/s burst 9; it has a new limiter, because its bucket is " +
			"no longer divided among processors; what keys have used still counts"},
		{"rate: 9/s", spread, Replace, "rule a: starts over with full buckets, because the key was ip and is global"},
	} {
		changes := Diff(ruleOf(t, c.before), ruleOf(t, c.after))
		assert.Equal(t, c.want, changes.Rules[0].Limit, "%s, %s", c.before, c.after)
		assert.Equal(t, c.line, strings.Join(changes.Lines(), "\n"))
	}
}
