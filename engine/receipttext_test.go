package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testalloc"
)

// sent returns the receipt that ParseReceipt makes from the text of r, as another connection would.
func sent(t *testing.T, l *Limiter, k Key, r *Receipt) *Receipt {
	t.Helper()
	text := r.Append([]byte("before"))
	require.Len(t, text, 6+64)
	parsed, err := l.ParseReceipt(k, text[6:])
	require.NoError(t, err)
	require.Equal(t, r.Taken(), parsed.Taken())
	return &parsed
}

// TestAReceiptAsText (I1, I2): a receipt from a text gives back, settles and charges as the original would, also under
// quotas.
func TestAReceiptAsText(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, h *hand) {
		k := l.Key("k")
		_, less := l.Hold(k, 30)
		_, more := l.Hold(k, 20)
		_, all := l.TakeReceipt(k, 10)
		require.EqualValues(t, 40, left(l, "k"))
		sent(t, l, k, &less).Settle(5)
		require.EqualValues(t, 65, left(l, "k"))
		sent(t, l, k, &more).Settle(25)
		require.EqualValues(t, 60, left(l, "k"))
		require.True(t, sent(t, l, k, &all).Release())
		require.EqualValues(t, 70, left(l, "k"))
		_, other := l.TakeReceipt(l.Key("other"), 10)
		_, err := l.ParseReceipt(k, other.Append(nil))
		require.ErrorContains(t, err, "another key")
		_, err = l.ParseReceipt(k, other.Append(nil)[1:])
		require.ErrorContains(t, err, "a text of 63 bytes: want 64")
		none := Receipt{}
		require.Zero(t, sent(t, l, k, &none).Settle(0))
		require.EqualValues(t, 70, left(l, "k"))
		sent(t, l, k, &none).Settle(3)
		require.EqualValues(t, 67, left(l, "k"))
	})
	l, _ := newLimiter(t, TokenBuckets(time.Hour))
	for i, p := range []Policy{TokenBucket(Per(1, time.Minute), 50), TokenBucket(PerSecond(1), 60), Unlimited()} {
		quota, err := l.Quota(p)
		require.NoError(t, err)
		k := l.KeyUint64(uint64(i)).With(quota)
		before := l.Peek(k, 0).Remaining
		_, r := l.Hold(k, 40)
		sent(t, l, k, &r).Settle(10)
		if p != Unlimited() {
			require.Equal(t, before-10, l.Peek(k, 0).Remaining)
		}
	}
	tiers, _ := newLimiter(t, FixedWindow(100, time.Minute), Tiers(FixedWindow(10, time.Minute)))
	k := tiers.Key("k").Tier(1)
	_, r := tiers.Hold(k, 1000)
	sent(t, tiers, k, &r).Settle(3)
	require.EqualValues(t, 97, left(tiers, "k"))
}

// TestAReceiptOfElsewhere (I1): a receipt of another limiter, an earlier record or an earlier policy gives nothing
// back.
func TestAReceiptOfElsewhere(t *testing.T) {
	forEach(t, nil, func(t *testing.T, a perMinute, l *Limiter, _ *hand) {
		other, _ := newLimiter(t, a.policy(100))
		for _, l := range []*Limiter{l, other} {
			require.True(t, l.Take("k", 50).Allowed)
		}
		_, r := other.Hold(other.Key("k"), 30)
		sent(t, l, l.Key("k"), &r).Settle(0)
		require.EqualValues(t, 50, left(l, "k"), "of another limiter")
		sent(t, l, l.Key("k"), &r).Settle(35)
		require.EqualValues(t, 45, left(l, "k"))

		_, r = l.Hold(l.Key("k"), 30)
		require.NoError(t, l.SetPolicy(a.policy(100)))
		sent(t, l, l.Key("k"), &r).Settle(0)
		require.EqualValues(t, 15, left(l, "k"), "of another plan")

		_, r = l.Hold(l.Key("k"), 10)
		l.Reset(l.Key("k"))
		require.True(t, l.Take("k", 90).Allowed)
		sent(t, l, l.Key("k"), &r).Settle(0)
		require.EqualValues(t, 10, left(l, "k"), "before a reset")
	})
	s, err := NewSpread(TokenBucket(PerSecond(1), 100))
	require.NoError(t, err)
	defer s.Close()
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 100))
	require.True(t, l.Take("k", 50).Allowed)
	_, r := s.TakeReceipt(10)
	sent(t, l, l.Key("k"), &r).Release()
	require.EqualValues(t, 50, left(l, "k"))
}

func TestAReceiptAsTextDoesNotAllocate(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 1<<30))
	k, room := l.Key("k"), make([]byte, 0, 64)
	require.Zero(t, testalloc.PerCall(func() {
		_, r := l.Hold(k, 2)
		parsed, err := l.ParseReceipt(k, r.Append(room))
		if err != nil || parsed.Settle(1) != 0 {
			panic(err)
		}
	}))
}
