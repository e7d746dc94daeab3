package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAHoldOfNothingIsOfItsKey: a hold of 0 tokens is decided by the limit of the key's tier.
func TestAHoldOfNothingIsOfItsKey(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 10), Tiers(TokenBucket(Per(1, 7*time.Second), 5)))
	k := l.Key("k").Tier(1)
	d, r := l.HoldUpTo(k, 7, 0)
	require.True(t, d.Allowed, "more than the limit is the limit")
	require.Zero(t, r.Taken())
	require.Zero(t, r.Settle(2))
	require.Equal(t, 14*time.Second, l.Peek(k, 0).ResetAfter)
	require.True(t, l.TakeKey(k, 2).Allowed)
	d, r = l.HoldUpTo(k, 1, 0)
	require.True(t, d.Allowed, "there is one")
	require.Zero(t, r.Settle(1))
	for _, most := range []uint64{0, 3} {
		for _, least := range []uint64{0, 1} {
			d, r = l.HoldUpTo(k, least, most)
			require.False(t, d.Allowed, "%d to %d of none", least, most)
			require.Equal(t, 7*time.Second, d.RetryAfter)
			require.Zero(t, r.Settle(1))
			require.Equal(t, 35*time.Second, l.Peek(k, 0).ResetAfter)
		}
	}
}

// TestAHoldWithoutALimitChargesNobody: for an unlimited key, no cost is counted.
func TestAHoldWithoutALimitChargesNobody(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 10))
	for _, most := range []uint64{0, 3} {
		d, r := l.HoldUpTo(l.Key("k").With(quotaOf(t, l, Unlimited())), 1, most)
		require.True(t, d.Allowed)
		require.Equal(t, most, r.Taken())
		require.Zero(t, r.Settle(9))
		require.EqualValues(t, 10, left(l, "k"))
	}
}
