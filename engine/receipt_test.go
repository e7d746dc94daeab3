package engine

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAReceiptIsOfATenure (I1): after a reset or eviction of the key, a receipt gives back no tokens of later calls.
func TestAReceiptIsOfATenure(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, l *Limiter, a perMinute){
		"reset": func(_ *testing.T, l *Limiter, _ perMinute) { l.Reset(l.Key("k")) },
		"reset 128 times": func(t *testing.T, l *Limiter, _ perMinute) {
			for range 127 { // after that, the version is the same again
				l.Reset(l.Key("k"))
				require.True(t, l.Take("k", 2).Allowed)
			}
			l.Reset(l.Key("k"))
		},
		"eviction": func(t *testing.T, l *Limiter, _ perMinute) {
			for i := range uint64(31) {
				require.True(t, l.TakeKey(l.KeyUint64(i), 3).Allowed)
			}
			require.True(t, l.Take("a new key", 3).Allowed)
			require.EqualValues(t, 1, l.Stats().Evictions)
			l.Reset(l.KeyUint64(0))
		},
	} {
		forEach(t, []Option{MaxKeys(1), Shards(1)}, func(t *testing.T, a perMinute, l *Limiter, _ *hand) {
			d, receipt := l.TakeReceipt(l.Key("k"), 2)
			require.True(t, d.Allowed)
			end(t, l, a)
			require.True(t, l.Take("k", 2).Allowed, name)
			receipt.Refund(2)
			require.EqualValues(t, 98, l.Peek(l.Key("k"), 0).Remaining, name)
		})
	}
}

// TestAReceiptIsOfAPolicy (I1): after a change of the policy, only a log and a limit in flight know how much of a take
// is left.
func TestAReceiptIsOfAPolicy(t *testing.T) {
	forEach(t, nil, func(t *testing.T, a perMinute, l *Limiter, _ *hand) {
		d, receipt := l.TakeReceipt(l.Key("k"), 2)
		require.True(t, d.Allowed)
		for range 128 { // after that, version and plan bit are the same again
			require.NoError(t, l.SetPolicy(a.policy(100)))
		}
		receipt.Refund(2)
		left := uint64(98)
		if a.name == "sliding log" || a.name == "concurrency" {
			left = 100
		}
		require.EqualValues(t, left, l.Peek(l.Key("k"), 0).Remaining)
	})
}

// TestAReceiptOutlivesAnIdleRecord (I1): after an idle record was forgotten, a receipt gives nothing back.
func TestAReceiptOutlivesAnIdleRecord(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, h *hand) {
		d, receipt := l.TakeReceipt(l.Key("k"), 2)
		require.True(t, d.Allowed)
		h.advance(2 * time.Minute)
		l.Sweep()
		require.EqualValues(t, 1, l.Stats().Reclaimed)
		require.True(t, l.Take("k", 2).Allowed)
		receipt.Refund(2)
		require.EqualValues(t, 98, l.Peek(l.Key("k"), 0).Remaining)
	})
}

// TestARefundForgivesNoTakeAhead (I1): a refund gives back no tokens that a request ahead of the clock has used.
func TestARefundForgivesNoTakeAhead(t *testing.T) {
	for name, refund := range map[string]func(l *Limiter, r *Receipt){
		"with a receipt":    func(_ *Limiter, r *Receipt) { r.Refund(1) },
		"without a receipt": func(l *Limiter, _ *Receipt) { l.Refund(l.Key("k"), 1) },
	} {
		for _, policy := range []Policy{
			TokenBucket(Per(2, time.Second), 2), BatchRefill(2, time.Second, 2), FixedWindow(2, time.Second),
			FixedWindow(2, time.Second).Aligned(), SlidingLog(2, time.Second),
		} {
			t.Run(name+", "+policy.String(), func(t *testing.T) {
				l, h := newLimiter(t, policy)
				h.advance(100 * time.Millisecond)
				k := l.Key("k")
				d, receipt := l.TakeReceipt(k, 1)
				require.True(t, d.Allowed)
				ahead := h.now().Add(maxLead)
				require.True(t, l.TakeAt(k, 2, ahead).Allowed)
				refund(l, &receipt)
				require.False(t, l.TakeAt(k, 1, ahead).Allowed)
				h.advance(maxLead)
				require.False(t, l.TakeKey(k, 1).Allowed)
			})
		}
	}
}

// TestWhatWasChargedAboveTheLimitIsGivenBack: a charge above the limit can be given back, with and without a waiting
// reservation.
func TestWhatWasChargedAboveTheLimitIsGivenBack(t *testing.T) {
	for _, reserved := range []bool{false, true} {
		l, h := newLimiter(t, TokenBucket(PerSecond(1), 10))
		k := l.Key("k")
		d, receipt := l.TakeReceipt(k, 8)
		require.True(t, d.Allowed)
		l.Charge(k, 3)
		if reserved {
			r, err := l.ahead(k, 1, Never)
			require.NoError(t, err)
			require.Equal(t, 2*time.Second, r.delay)
			receipt.Refund(1)
			require.Equal(t, 11*time.Second, l.Peek(k, 1).ResetAfter)
			h.advance(2 * time.Second)
			l.Charge(k, 2)
		}
		owed := 11 * time.Second
		require.Equal(t, owed, l.Peek(k, 1).ResetAfter)
		receipt.Refund(2)
		require.Equal(t, owed-2*time.Second, l.Peek(k, 1).ResetAfter)
		l.Refund(k, 1)
		require.Equal(t, owed-3*time.Second, l.Peek(k, 1).ResetAfter)
	}
}

// TestAReceiptOutlivesALowerLimit: after a change, a log and a limit in flight give back a take above the new limit.
func TestAReceiptOutlivesALowerLimit(t *testing.T) {
	for _, policy := range []func(limit uint64) Policy{
		func(limit uint64) Policy { return SlidingLog(limit, time.Minute) },
		func(limit uint64) Policy { return Concurrency(limit, time.Minute) },
	} {
		l, _ := newLimiter(t, policy(10))
		d, receipt := l.TakeReceipt(l.Key("k"), 9)
		require.True(t, d.Allowed)
		require.True(t, l.Allow("k"))
		require.NoError(t, l.SetPolicy(policy(4)))
		receipt.Refund(9)
		require.EqualValues(t, 3, l.Peek(l.Key("k"), 0).Remaining, policy(4))
	}
}

// TestWhatIsOwedAboveTheLimitIsGivenBack: a wrong charge can be given back completely and at once.
func TestWhatIsOwedAboveTheLimitIsGivenBack(t *testing.T) {
	for _, policy := range []Policy{
		TokenBucket(Per(100, time.Minute), 100), BatchRefill(100, time.Minute, 100), FixedWindow(100, time.Minute),
		SlidingWindow(100, time.Minute), SlidingLog(100, time.Minute), Concurrency(100, time.Minute),
	} {
		l, _ := newLimiter(t, policy, MaxDebt(5))
		require.True(t, l.Take("k", 10).Allowed)
		_, lost := l.Charge(l.Key("k"), 350)
		require.Zero(t, lost)
		l.Refund(l.Key("k"), 350)
		require.EqualValues(t, 90, l.Peek(l.Key("k"), 0).Remaining, policy)
		l.Refund(l.Key("k"), math.MaxUint64)
		require.EqualValues(t, 100, l.Peek(l.Key("k"), 0).Remaining, policy)
	}
}
