package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOwed: for all algorithms but token buckets, Owed returns the tokens used, also those above the limit.
func TestOwed(t *testing.T) {
	for _, c := range []struct{ policy, lower Policy }{
		{FixedWindow(10, time.Hour), FixedWindow(3, time.Hour)},
		{SlidingWindow(10, time.Hour), SlidingWindow(3, time.Hour)},
		{SlidingLog(10, time.Hour), SlidingLog(3, time.Hour)},
		{BatchRefill(10, time.Hour, 10), BatchRefill(3, time.Hour, 3)},
	} {
		now := time.Unix(1_700_000_000, 0)
		l := pinned(t, &now, c.policy)
		k := l.Key("ann")
		owed := func(want uint64) {
			t.Helper()
			for _, k := range []Key{k, k.Tier(3)} {
				tokens, under := l.Owed(k)
				assert.Equal(t, want, tokens, "%v", c.policy)
				assert.Equal(t, k, under)
			}
		}
		owed(0)
		require.True(t, l.TakeKey(k, 7).Allowed)
		owed(7)
		owed(7)
		require.NoError(t, l.SetPolicy(c.lower))
		owed(7)
		now = now.Add(3 * time.Hour)
		owed(0)
	}
}

// TestOwedOfATokenBucket: Owed counts the debt in tokens of the tier or quota under which the key took.
func TestOwedOfATokenBucket(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	hourly := func(n uint64) Policy { return TokenBucket(Per(float64(n), time.Hour), n) }
	l := pinned(t, &now, hourly(10), Tiers(hourly(5), hourly(100)))
	k := l.Key("ann")
	owed := func(want uint64, as Key) {
		t.Helper()
		for tier := range 3 {
			tokens, under := l.Owed(k.Tier(tier))
			assert.Equal(t, want, tokens)
			assert.Equal(t, as, under)
		}
	}
	tokens, under := l.Owed(k.Tier(1))
	assert.Zero(t, tokens)
	assert.Equal(t, k.Tier(1), under)
	require.True(t, l.TakeKey(k.Tier(2), 70).Allowed)
	owed(70, k.Tier(2))
	for _, p := range []Policy{hourly(3), Blocked(), Unlimited()} {
		require.NoError(t, l.SetPolicy(hourly(10), hourly(5), p))
		owed(70, k.Tier(2))
	}
	quota, err := l.Quota(hourly(20))
	require.NoError(t, err)
	bob := l.Key("bob").With(quota)
	require.True(t, l.TakeKey(bob, 12).Allowed)
	tokens, under = l.Owed(bob)
	assert.EqualValues(t, 12, tokens)
	assert.Equal(t, bob, under)
}

// TestOwedOfTokenBuckets: Owed returns the key under the quota of its last take, so that the caller can charge it under
// that quota.
func TestOwedOfTokenBuckets(t *testing.T) {
	l, _ := newLimiter(t, TokenBuckets(26*24*time.Hour))
	for i, period := range []time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour} {
		quota, err := l.Quota(TokenBucket(Per(1, period), 5))
		require.NoError(t, err)
		k := l.KeyUint64(uint64(i))
		require.True(t, l.TakeKey(k.With(quota), 2).Allowed)
		owed, under := l.Owed(k)
		require.EqualValues(t, 2, owed)
		require.Equal(t, 2*period, l.Peek(under, 0).ResetAfter)
		_, lost := l.Charge(under, 1)
		require.Zero(t, lost)
		require.EqualValues(t, 2, l.Peek(k.With(quota), 0).Remaining)
	}
}
