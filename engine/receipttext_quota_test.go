package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAReceiptOfElsewhereChargesUnderItsKey: a receipt of another limiter or policy charges a cost above its tokens to
// the given key.
func TestAReceiptOfElsewhereChargesUnderItsKey(t *testing.T) {
	own, tier := TokenBucket(PerSecond(1), 10), TokenBucket(Per(1, 7*time.Second), 10)
	l, _ := newLimiter(t, own, Tiers(tier))
	other, _ := newLimiter(t, own, Tiers(tier))
	k := l.Key("k").Tier(1)
	_, r := other.TakeReceipt(k, 2)
	require.Zero(t, sent(t, l, k, &r).Settle(3))
	require.Equal(t, 7*time.Second, l.Peek(k, 0).ResetAfter, "of another limiter")
	_, r = l.TakeReceipt(k, 2)
	require.NoError(t, l.SetPolicy(own, tier))
	require.Zero(t, sent(t, l, k, &r).Settle(3))
	require.Equal(t, 28*time.Second, l.Peek(k, 0).ResetAfter, "of another plan")

	l, _ = newLimiter(t, own, MaxQuota(10))
	quota := func() Key { return l.Key("k").With(quotaOf(t, l, TokenBucket(Per(1, 3*time.Second), 10))) }
	_, r = l.TakeReceipt(quota(), 2)
	require.NoError(t, l.SetPolicy(TokenBucket(Per(16, 15*time.Microsecond), 5))) // a tick is now a sixteenth as long
	require.Zero(t, sent(t, l, quota(), &r).Settle(3))
	require.Equal(t, 9*time.Second, l.Peek(quota(), 0).ResetAfter)
	require.EqualValues(t, 7, l.Peek(quota(), 0).Remaining)
}
