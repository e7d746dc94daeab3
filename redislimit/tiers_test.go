//go:build unix

package redislimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/redislimit"
)

// If a key changes its tier, its tokens still count.
func TestTiers(t *testing.T) {
	perDay := func(n uint64) engine.Policy { return engine.TokenBucket(engine.Per(float64(n), 24*time.Hour), n) }
	for name, of := range map[string]func(uint64) engine.Policy{
		"token bucket": func(n uint64) engine.Policy { return engine.TokenBucket(engine.Per(float64(n), time.Hour), n) },
		"other rates": func(n uint64) engine.Policy {
			return map[uint64]engine.Policy{2: perDay(2), 5: engine.TokenBucket(engine.Per(1, time.Minute), 5), 9: perDay(9)}[n]
		},
		"fixed window":   func(n uint64) engine.Policy { return engine.FixedWindow(n, 24*time.Hour) },
		"sliding window": func(n uint64) engine.Policy { return engine.SlidingWindow(n, 24*time.Hour) },
		"sliding log":    func(n uint64) engine.Policy { return engine.SlidingLog(n, 24*time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			_, store := miniAs(t, true)
			l := limiter(t, store, of(2), redislimit.Tiers(of(5), of(9), engine.Unlimited(), engine.Blocked()),
				redislimit.InMode(redislimit.Strict), redislimit.OnLoss(redislimit.FailClosed))
			tier := 0
			made := limitOf("a", l)
			made.Tier = func(errand) int { return tier }
			other := limitOf("b", limiter(t, store, engine.FixedWindow(1000, time.Hour), redislimit.InMode(redislimit.Strict)))
			set, err := limits.New([]limits.Limit[errand]{made, other}, limits.Options[errand]{})
			require.NoError(t, err)
			admits := func(of int, want int, key string) {
				t.Helper()
				tier = of
				for range want {
					before := store.Health().Calls
					res := set.Decide(t.Context(), errand{"a": key, "b": "all"})
					require.Equal(t, limits.Admitted, res.Verdict())
					require.EqualValues(t, 1, store.Health().Calls-before)
				}
				res := set.Decide(t.Context(), errand{"a": key, "b": "all"})
				require.Equal(t, limits.Limited, res.Verdict(), "tier %d", of)
			}
			admits(1, 5, "x")
			admits(2, 4, "x")
			admits(1, 0, "x")
			admits(0, 0, "x")
			admits(0, 2, "y")
			admits(1, 3, "y")
			before := store.Health().Calls
			for _, of := range []int{4, 5, -1, 1 << 30} {
				admits(of, 0, "z")
			}
			assert.Zero(t, store.Health().Calls-before)
			admits(2, 9, "z")
			tier = 3
			res := set.Decide(t.Context(), errand{"a": "x", "b": "all"})
			assert.True(t, res.Allowed())
		})
	}
}

// New returns an error for tiers that cannot share their keys, or that the store cannot keep.
func TestBadTiers(t *testing.T) {
	bucket := engine.TokenBucket(engine.PerSecond(1), 1)
	many := make([]engine.Policy, 65)
	for want, c := range map[string]struct{ own, tier engine.Policy }{
		"test: tier 1 of 1 is a fixed window 1/1s and the limit a token bucket 1/s burst 1: want the same algorithm and window": {
			bucket, engine.FixedWindow(1, time.Second)},
		"tier 1 of 1 is a fixed window 1/1m0s and the limit a fixed window 1/1s": {
			engine.FixedWindow(1, time.Second), engine.FixedWindow(1, time.Minute)},
		"(tier 1 of 1)": {bucket, engine.BatchRefill(1, time.Second, 1)},
	} {
		assert.ErrorContains(t, redislimit.Check("test", c.own, redislimit.Tiers(c.tier)), want)
	}
	assert.ErrorContains(t, redislimit.Check("test", bucket, redislimit.Tiers(many...)), "Tiers: 65 policies: want at most 64")
}

// The statistics include the tokens in hand of tiers, and Close gives them back.
func TestTiersInTheStatistics(t *testing.T) {
	fast := func(n uint64) engine.Policy { return engine.TokenBucket(engine.PerSecond(float64(n)), n) }
	_, store := miniAs(t, true)
	l := limiter(t, store, fast(10_000), redislimit.Tiers(fast(20_000)), redislimit.Nodes(2))
	made := limitOf("a", l)
	made.Tier = func(errand) int { return 1 }
	set, err := limits.New([]limits.Limit[errand]{made}, limits.Options[errand]{})
	require.NoError(t, err)
	require.Equal(t, redislimit.Leased, l.Mode())
	require.Eventually(t, func() bool {
		set.Decide(t.Context(), errand{"a": "x"})
		return l.Stats().Leases == 1
	}, backSoon, time.Millisecond)
}
