package engine

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHoldUpTo: HoldUpTo takes the available tokens within its two bounds.
func TestHoldUpTo(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, _ *hand) {
		k := l.Key("k")
		d, some := l.HoldUpTo(k, 10, 70)
		require.True(t, d.Allowed)
		require.EqualValues(t, 70, some.Taken())
		require.EqualValues(t, 30, d.Remaining)
		d, refused := l.HoldUpTo(k, 31, 50)
		require.Equal(t, l.Peek(k, 31), d, "RetryAfter is that of the least")
		require.False(t, d.Allowed)
		require.Zero(t, refused.Taken())
		require.Zero(t, refused.Settle(9))
		d, rest := l.HoldUpTo(k, 30, math.MaxUint64)
		require.True(t, d.Allowed)
		require.EqualValues(t, 30, rest.Taken())
		require.Zero(t, left(l, "k"))
		require.Zero(t, rest.Settle(20))
		require.EqualValues(t, 10, left(l, "k"))
		d, fewer := l.HoldUpTo(k, 8, 3)
		require.True(t, d.Allowed, "least is what must be there")
		require.EqualValues(t, 3, fewer.Taken())
		require.Zero(t, some.Settle(0))
		d, _ = l.HoldUpTo(l.Key("other"), math.MaxUint64, math.MaxUint64)
		require.True(t, d.Allowed, "a least above the limit is the limit")
		require.Zero(t, d.Remaining)
	})
}

// TestAHoldOfNothingIsRefusedInDebt: HoldUpTo(k, 0, n) is refused only if the key has no tokens.
func TestAHoldOfNothingIsRefusedInDebt(t *testing.T) {
	forEach(t, []Option{MaxDebt(2)}, func(t *testing.T, _ perMinute, l *Limiter, _ *hand) {
		k := l.Key("k")
		d, late := l.HoldUpTo(k, 0, 0)
		require.True(t, d.Allowed)
		require.Zero(t, late.Taken())
		require.Zero(t, late.Settle(150))
		for _, most := range []uint64{0, 5} {
			d, r := l.HoldUpTo(k, 0, most)
			require.False(t, d.Allowed)
			require.Equal(t, l.Peek(k, 1).RetryAfter, d.RetryAfter)
			require.Zero(t, r.Settle(7))
		}
		d, _ = l.Hold(k, 0)
		require.True(t, d.Allowed, "unless it asks")
		require.False(t, l.Peek(k, 1).Allowed)
	})
}

func TestHoldUpToUnderOtherLimits(t *testing.T) {
	l, _ := newLimiter(t, TokenBuckets(24*time.Hour))
	for _, c := range []struct {
		policy  Policy
		allowed bool
		taken   uint64
	}{{Unlimited(), true, 80}, {Blocked(), false, 0}, {TokenBucket(PerSecond(1), 50), true, 50}} {
		q, err := l.Quota(c.policy)
		require.NoError(t, err)
		d, r := l.HoldUpTo(l.Key(c.policy.String()).With(q), 5, 80)
		require.Equal(t, c.allowed, d.Allowed, "%v", c.policy)
		require.Equal(t, c.taken, r.Taken(), "%v", c.policy)
		if !c.allowed {
			require.Equal(t, Never, d.RetryAfter)
		}
	}
}

// TestHoldUpToAtOnce: concurrent calls together get the limit, and each admitted call gets at least its minimum.
func TestHoldUpToAtOnce(t *testing.T) {
	l, _ := newLimiter(t, FixedWindow(1000, time.Hour))
	for round := range 50 {
		k := l.KeyUint64(uint64(round))
		var taken, refused atomic.Uint64
		var wg sync.WaitGroup
		for i := range uint64(8) {
			wg.Go(func() {
				for range 20 {
					switch d, r := l.HoldUpTo(k, 7+i, 15+i); {
					case !d.Allowed:
						refused.Add(1)
					case r.Taken() < 7+i || r.Taken() > 15+i:
						t.Errorf("got %d of %d to %d", r.Taken(), 7+i, 15+i)
					default:
						taken.Add(r.Taken())
					}
				}
			})
		}
		wg.Wait()
		require.LessOrEqual(t, taken.Load(), uint64(1000))
		require.Greater(t, taken.Load(), uint64(1000-14), "the highest least would still fit, and a call with it was refused or had its tokens")
		require.Positive(t, refused.Load())
	}
}
