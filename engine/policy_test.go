package engine_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testalloc"
)

// TestPolicyNumbers: policies return their limit, and the time in which the complete limit comes back.
func TestPolicyNumbers(t *testing.T) {
	for _, c := range []struct {
		policy engine.Policy
		limit  uint64
		window time.Duration
	}{
		{engine.TokenBucket(engine.PerSecond(1), 5), 5, 5 * time.Second},
		{engine.TokenBucket(engine.PerSecond(100), 10), 10, 100 * time.Millisecond},
		{engine.TokenBucket(engine.Per(10, time.Minute), 100), 100, 10 * time.Minute},
		{engine.TokenBucket(engine.Per(0.5, time.Second), 3), 3, 6 * time.Second},
		{engine.TokenBucket(engine.Per(1, math.MaxInt64), 1<<32), 1 << 32, math.MaxInt64},
		{engine.BatchRefill(10, time.Second, 100), 100, 10 * time.Second},
		{engine.BatchRefill(10, time.Second, 101), 101, 11 * time.Second},
		{engine.BatchRefill(10, time.Second, 1), 1, time.Second},
		{engine.FixedWindow(100, time.Minute), 100, time.Minute},
		{engine.FixedWindow(100, time.Minute).Aligned(), 100, time.Minute},
		{engine.SlidingWindow(7, time.Hour), 7, time.Hour},
		{engine.SlidingLog(7, time.Hour), 7, time.Hour},
		{engine.Policy{}, 0, 0},
		// Policies that New refuses also return their numbers, or 0.
		{engine.TokenBucket(engine.Rate{}, 5), 5, math.MaxInt64},
		{engine.BatchRefill(0, time.Second, 5), 5, 0},
	} {
		assert.Equal(t, c.limit, c.policy.Limit(), c.policy)
		assert.Equal(t, c.window, c.policy.Window(), c.policy)
	}
}

// follows reports whether a limiter of the policy base can change to p.
func TestTheWindowIsWhenTheLimitIsBack(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, policy := range []engine.Policy{
		engine.TokenBucket(engine.PerSecond(1), 5), engine.TokenBucket(engine.Per(10, time.Minute), 100),
		engine.BatchRefill(10, time.Second, 95), engine.FixedWindow(5, time.Minute), engine.SlidingLog(5, time.Minute),
	} {
		l, err := engine.New(policy, engine.MaxKeys(100), engine.ClockFunc(func() time.Time { return now }))
		require.NoError(t, err)
		assert.Equal(t, policy.Window(), l.Take("a", policy.Limit()).ResetAfter, policy)
		l.Close()
	}
}

// TestLimiterPolicy: Policy returns what New or SetPolicy has set for each tier, even during a change.
func TestLimiterPolicy(t *testing.T) {
	small, large := engine.FixedWindow(5, time.Minute), engine.FixedWindow(50, time.Minute)
	l, err := engine.New(small, engine.MaxKeys(100), engine.Tiers(large))
	require.NoError(t, err)
	defer l.Close()
	assert.Equal(t, small, l.Policy(0))
	assert.Equal(t, large, l.Policy(1))
	for _, tier := range []int{-1, 2, 15, math.MaxInt} {
		assert.Equal(t, engine.Policy{}, l.Policy(tier))
	}
	assert.Error(t, l.SetPolicy(engine.FixedWindow(0, time.Minute), large))
	assert.Equal(t, small, l.Policy(0), "an error changes nothing")

	var wg sync.WaitGroup
	wg.Go(func() {
		for range 100 {
			assert.NoError(t, l.SetPolicy(large, small))
			assert.NoError(t, l.SetPolicy(small, large))
		}
	})
	for range 100 {
		assert.Contains(t, []engine.Policy{small, large}, l.Policy(0))
	}
	wg.Wait()
	require.NoError(t, l.SetPolicy(large, small))
	assert.Equal(t, []engine.Policy{large, small}, []engine.Policy{l.Policy(0), l.Policy(1)})
	assert.Zero(t, testalloc.PerCall(func() { l.Policy(1) }))
}

func TestPolicyTellsItsTerms(t *testing.T) {
	for _, c := range []struct {
		policy    engine.Policy
		algorithm string
		rate      engine.Rate
	}{
		{engine.TokenBucket(engine.Per(3, time.Minute), 7), "token bucket", engine.Per(3, time.Minute)},
		{engine.BatchRefill(10, time.Second, 100), "batch refill", engine.Per(10, time.Second)},
		{engine.FixedWindow(5, time.Hour).Aligned(), "fixed window", engine.Per(5, time.Hour)},
		{engine.SlidingWindow(5, time.Hour), "sliding window", engine.Per(5, time.Hour)},
		{engine.SlidingLog(5, time.Hour), "sliding log", engine.Per(5, time.Hour)},
		{engine.Policy{}, "", engine.Rate{}},
	} {
		assert.Equal(t, c.algorithm, c.policy.Algorithm().String())
		assert.Equal(t, c.rate, c.policy.Rate())
		assert.Equal(t, c.rate.Tokens, c.policy.Rate().Tokens)
		assert.Equal(t, c.rate.Period, c.policy.Rate().Period)
		assert.Equal(t, c.algorithm == "fixed window", c.policy.IsAligned())
	}
}
