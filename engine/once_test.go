package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAVerbReadsTheClockOnce: all fields of an answer are for one time, even if the clock advances with every reading.
func TestAVerbReadsTheClockOnce(t *testing.T) {
	for name, verb := range map[string]func(l *Limiter, k Key){
		"AllowKey":    func(l *Limiter, k Key) { l.AllowKey(k) },
		"one":         func(l *Limiter, k Key) { l.TakeKey(k, 1) },
		"TakeKey":     func(l *Limiter, k Key) { l.TakeKey(k, 2) },
		"all of it":   func(l *Limiter, k Key) { l.TakeKey(k, 4) },
		"nothing":     func(l *Limiter, k Key) { l.TakeKey(k, 0) },
		"Peek":        func(l *Limiter, k Key) { l.Peek(k, 1) },
		"TakeReceipt": func(l *Limiter, k Key) { l.TakeReceipt(k, 2) },
		"no receipt":  func(l *Limiter, k Key) { l.TakeReceipt(k, 0) },
		"Hold":        func(l *Limiter, k Key) { l.Hold(k, 2) },
		"Charge":      func(l *Limiter, k Key) { l.Charge(k, 2) },
		"HoldUpTo":    func(l *Limiter, k Key) { l.HoldUpTo(k, 1, 2) },
		"above it":    func(l *Limiter, k Key) { l.Hold(k, 1000) },
		"too much":    func(l *Limiter, k Key) { l.Charge(k, 1000) },
		"no charge":   func(l *Limiter, k Key) { l.Charge(k, 0) },
		"Reserve":     func(l *Limiter, k Key) { _, _ = l.ahead(k, 4, time.Hour) },
		"WaitKey":     func(l *Limiter, k Key) { _ = l.WaitKey(context.Background(), k, 1) },
		"TakeBatch":   func(l *Limiter, k Key) { _ = l.TakeBatch([]Key{k, k}, 1, make([]Decision, 2)) },
	} {
		for situation := range 12 {
			several, quota, taken := situation&1 > 0, situation&2 > 0, []uint64{0, 2, 3}[situation/4]
			readings, now, options := 0, time.Unix(1_700_000_000, 0), []Option{MaxKeys(100), SweepInterval(24 * time.Hour)}
			period := time.Millisecond
			if several {
				options, period = append(options, MaxQuota(4)), 2*time.Millisecond
			}
			l, err := New(TokenBucket(Per(1, time.Millisecond), 4), append(options, ClockFunc(func() time.Time {
				readings++
				now = now.Add(time.Microsecond)
				return now
			}))...)
			require.NoError(t, err)
			k := l.KeyUint64(1)
			if quota {
				q, err := l.Quota(TokenBucket(Per(1, period), 4))
				require.NoError(t, err)
				k = k.With(q)
			}
			l.TakeKey(k, taken)
			readings = 0
			verb(l, k)
			require.Equal(t, 1, readings, "%s, several rates %v, quota %v, %d taken", name, several, quota, taken)
			require.NoError(t, l.Close())
		}
	}
}

// TestErrorsAndAnswersNameTheLimitOfTheCall: errors and answers name the call's limit, not the limiter's own.
func TestErrorsAndAnswersNameTheLimitOfTheCall(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 5), Tiers(TokenBucket(Per(1, 700*time.Millisecond), 7)))
	k := l.KeyUint64(1).Tier(1)
	_, err := l.ahead(k, 8, time.Hour)
	require.EqualError(t, err, "engine: Reserve(8): more tokens than the limit of 7")
	require.True(t, l.TakeKey(k, 7).Allowed)
	_, err = l.ahead(k, 2, time.Second)
	require.EqualError(t, err, "engine: Reserve(2): the wait would be too long: 1.4s, and 1s is the longest")

	windows, _ := newLimiter(t, FixedWindow(5, 10*time.Second), Tiers(FixedWindow(7, 10*time.Second)))
	k = windows.KeyUint64(1).Tier(1)
	require.EqualError(t, windows.WaitKey(t.Context(), k, 8), "engine: Wait(8): more tokens than the limit of 7")
	require.True(t, windows.TakeKey(k, 7).Allowed)
	require.ErrorContains(t, windows.WaitKey(shortly(t), k, 1), "engine: Wait(1): the wait would be too long: 10s, and ")

	_, err = all(Request{Limiter: l}, Request{}, Request{Limiter: l})
	require.EqualError(t, err, "engine: TakeAll: request 2 of 3 has no limiter that New made")
	_, err = all(Request{Limiter: l}, Request{Limiter: windows}, Request{Limiter: l}, Request{Limiter: l})
	require.EqualError(t, err, "engine: TakeAll: requests 1 and 3 of 4 are for the same key of the same limiter")
}

func shortly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestAChargeWithoutRoomAnswersUnderItsLimit: an answer without room for a record still has the limit of the key's
// tier.
func TestAChargeWithoutRoomAnswersUnderItsLimit(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 5), MaxKeys(1), Shards(1), Overflow(Refuse), Tiers(TokenBucket(Per(1, 700*time.Millisecond), 7)))
	for i := uint64(0); l.Stats().NoRoom == 0; i++ {
		l.TakeKey(l.KeyUint64(i), 5)
	}
	d, lost := l.Charge(l.Key("new").Tier(1), 3)
	require.Equal(t, uint64(3), lost)
	require.Equal(t, Decision{Limit: 7, RetryAfter: 5 * time.Second, ResetAfter: 5 * time.Second}, d)
}

// TestTheObserverOfAReservationIsToldItsKey: the observer of a reservation that would wait too long gets its key.
func TestTheObserverOfAReservationIsToldItsKey(t *testing.T) {
	var told []refusal
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 5), Observe(func(k Key, n uint64) { told = append(told, refusal{k, n}) }, 1))
	k := l.KeyUint64(1)
	require.True(t, l.TakeKey(k, 5).Allowed)
	_, err := l.ahead(k, 2, time.Second)
	require.ErrorIs(t, err, ErrTooLong)
	require.Equal(t, []refusal{{k, 2}}, told)
}

// TestATakeOfNothingUnderAQuota: a take of 0 tokens decides for its own key, under the quota of that key.
func TestATakeOfNothingUnderAQuota(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 5))
	q, err := l.Quota(TokenBucket(PerSecond(1), 7))
	require.NoError(t, err)
	require.True(t, l.TakeKey(l.Key("k").With(q), 3).Allowed)
	require.Equal(t, Decision{Allowed: true, Limit: 7, Remaining: 4, ResetAfter: 3 * time.Second}, l.TakeKey(l.Key("k").With(q), 0))
	require.Equal(t, Decision{Allowed: true, Limit: 5, Remaining: 2, ResetAfter: 3 * time.Second}, l.TakeKey(l.Key("k").With(Quota{}), 0))
}
