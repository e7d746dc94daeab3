package engine

import (
	"math/big"
	"math/bits"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhichWindowsAreExact checks the rule of docs/algorithms.md for fixed windows and logs to the nanosecond.
func TestWhichWindowsAreExact(t *testing.T) {
	type kind struct {
		policy func(uint64, time.Duration) Policy
		bits   int // bits that a time and the counts share
		fields int // how many counts share the bits
		digits int
	}
	for name, k := range map[string]kind{
		"fixed window": {FixedWindow, 51, 1, 15},
		"sliding log":  {SlidingLog, 50, 2, 7},
	} {
		for _, limit := range []uint64{1, 5, 10, 100, 127, 1000, 4096, 10_000, 32_767} {
			if bits.Len64(limit) > k.digits {
				continue
			}
			longest := time.Duration(1) << (k.bits - k.fields*bits.Len64(limit))
			require.Zero(t, lateAtWorst(t, k.policy(limit, longest)), "%s of %d", name, limit)
			for times := time.Duration(1); times < 64 && 2*longest*times < 365*24*time.Hour; times *= 2 {
				for _, window := range []time.Duration{longest*times + 1, 2 * longest * times} {
					late := lateAtWorst(t, k.policy(limit, window))
					require.Positive(t, late, "%s of %d, %v", name, limit, window)
					require.Less(t, late, 4*times, "%s of %d, %v", name, limit, window)
				}
			}
		}
		first := uint64(1) << k.digits
		require.Positive(t, lateAtWorst(t, k.policy(first, time.Second)), "%s of %d", name, first)
	}
	for _, p := range []Policy{
		FixedWindow(1<<20, 24*time.Hour).Aligned(), SlidingWindow(1000, 24*time.Hour), BatchRefill(7, time.Hour, 70),
		TokenBucket(PerSecond(100), 200), TokenBucket(Per(10, time.Minute), 10),
	} {
		late, err := p.Precision()
		require.NoError(t, err)
		require.Zero(t, late, "%v", p)
	}
	late, err := FixedWindow(1, time.Hour).Precision(FixedWindow(1000, time.Hour))
	require.NoError(t, err)
	require.Positive(t, late, "the largest limit counts")
	_, err = Policy{}.Precision()
	require.ErrorContains(t, err, "the zero Policy")
}

// lateAtWorst returns the Precision of a policy with windows, and compares it with a limiter's delays.
func lateAtWorst(t *testing.T, p Policy) time.Duration {
	late, err := p.Precision()
	require.NoError(t, err)
	l, h := newLimiter(t, p, MaxKeys(1))
	least, worst := Never, time.Duration(0)
	for i := range uint64(max(2*late, 4)) {
		k := l.KeyUint64(i)
		require.True(t, l.TakeKey(k, p.Limit()).Allowed)
		wait := l.Peek(k, 1).RetryAfter - p.Window()
		least, worst = min(least, wait), max(worst, wait)
		l.Reset(k)
		h.advance(1)
	}
	require.Equal(t, late, worst, "%v", p)
	require.GreaterOrEqual(t, least, time.Duration(0), "%v", p)
	return late
}

// TestHowLateABucketIsThatRounds: a token is never available before its time, and is late by at most Precision.
func TestHowLateABucketIsThatRounds(t *testing.T) {
	for _, p := range []Policy{TokenBucket(PerSecond(97), 10), TokenBucket(Per(17, 24*time.Hour), 1<<32),
		TokenBucket(Per(999_999_937, time.Second), 100)} {
		late, err := p.Precision()
		require.NoError(t, err)
		l, h := newLimiter(t, p)
		rate := p.Rate()
		token := new(big.Rat).Quo(big.NewRat(int64(rate.Period), 1), new(big.Rat).SetFloat64(rate.Tokens))
		for i := range uint64(200) {
			k := l.KeyUint64(i)
			l.TakeKey(k, p.Limit())
			l.TakeKey(k, 1)
			wait := new(big.Rat).SetInt64(int64(l.Peek(k, 1).RetryAfter))
			require.GreaterOrEqual(t, wait.Cmp(token), 0, "%v", p)
			require.LessOrEqual(t, wait.Sub(wait, token).Cmp(new(big.Rat).SetInt64(int64(late)+1)), 0,
				"%v, the nanosecond is that of rounding up", p)
			h.advance(7)
		}
	}
}
