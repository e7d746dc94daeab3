package live_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits/live"
)

func hourly(n uint64) engine.Policy { return engine.TokenBucket(engine.Per(float64(n), time.Hour), n) }

func newLimiter(t *testing.T, clock *testclock.Clock, p engine.Policy, options ...engine.Option) *engine.Limiter {
	t.Helper()
	l, err := engine.New(p, append(options, engine.ClockFunc(clock.Now))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// take takes a token as a set of limits does: it moves the key's debt first.
func take(l *live.Limiter, key string, tier int) bool {
	l.Formers().Move(l.Limiter, l.Key(key).Tier(tier), func(before *engine.Limiter) (engine.Key, bool) { return before.Key(key), true })
	return l.AllowKey(l.Key(key).Tier(tier))
}

func replace(t *testing.T, l *live.Limiter, next *engine.Limiter) *live.Limiter {
	t.Helper()
	to, err := l.Replace(next)
	require.NoError(t, err)
	return to
}

func TestAKeyKeepsWhatItOwes(t *testing.T) {
	window := time.Hour
	for _, c := range []struct {
		name     string
		from, to engine.Policy
		used     uint64
		left     uint64
	}{
		{"room", hourly(10), hourly(10), 7, 3},
		{"a raised limit has the difference at once", hourly(5), hourly(9), 5, 4},
		{"a lowered limit", hourly(9), hourly(5), 3, 2},
		{"a bucket that becomes a window", hourly(10), engine.FixedWindow(10, window), 7, 3},
		{"a window that becomes a bucket", engine.FixedWindow(10, window), hourly(10), 7, 3},
		{"a counter that becomes a log", engine.SlidingWindow(10, window), engine.SlidingLog(10, window), 7, 3},
		{"a longer log", engine.SlidingLog(5, window), engine.SlidingLog(20, window), 5, 15},
		{"a shorter log", engine.SlidingLog(20, window), engine.SlidingLog(5, window), 9, 0},
		{"a batch refill", engine.BatchRefill(10, window, 10), hourly(10), 7, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := testclock.New()
			before := live.New(newLimiter(t, clock, c.from))
			for range c.used {
				require.True(t, take(before, "a", 0))
			}
			now := replace(t, before, newLimiter(t, clock, c.to, engine.MaxKeys(500)))
			before.Release()
			for i := range c.left {
				require.True(t, take(now, "a", 0), i)
			}
			require.False(t, take(now, "a", 0))
			for i := range c.to.Limit() {
				require.True(t, take(now, "another", 0), i)
			}
		})
	}
}

// TestDebtAboveTheLimit: the part of a debt above the limit is carried over, too.
func TestDebtAboveTheLimit(t *testing.T) {
	clock := testclock.New()
	before := live.New(newLimiter(t, clock, hourly(10)))
	_, lost := before.Charge(before.Key("a"), 30)
	require.Zero(t, lost)
	now := replace(t, before, newLimiter(t, clock, hourly(10), engine.MaxKeys(500)))
	require.False(t, take(now, "a", 0))
	require.EqualValues(t, 2*time.Hour+6*time.Minute, now.Peek(now.Key("a"), 1).RetryAfter)
}

// TestALowerLimitInBetween: if a limit is lowered and raised again, no token is handed out twice.
func TestALowerLimitInBetween(t *testing.T) {
	window := time.Hour
	of := map[string]func(uint64) engine.Policy{
		"token bucket":   hourly,
		"batch refill":   func(n uint64) engine.Policy { return engine.BatchRefill(n, window, n) },
		"fixed window":   func(n uint64) engine.Policy { return engine.FixedWindow(n, window) },
		"sliding window": func(n uint64) engine.Policy { return engine.SlidingWindow(n, window) },
		"sliding log":    func(n uint64) engine.Policy { return engine.SlidingLog(n, window) },
	}
	const many = 100
	for first, from := range of {
		for second, between := range of {
			for third, to := range of {
				t.Run(first+", "+second+", "+third, func(t *testing.T) {
					clock := testclock.New()
					limiter := live.New(newLimiter(t, clock, from(many), engine.MaxKeys(500)))
					for range many {
						require.True(t, take(limiter, "a", 0))
					}
					for i, p := range []engine.Policy{between(3), to(many)} {
						next := replace(t, limiter, newLimiter(t, clock, p, engine.MaxKeys(500)))
						limiter.Release()
						limiter = next
						for range 5 {
							require.False(t, take(limiter, "a", 0), i)
						}
					}
					for range 8 { // the key is not locked out forever
						clock.Advance(window)
						_ = take(limiter, "a", 0)
					}
					require.True(t, take(limiter, "a", 0))
				})
			}
		}
	}
}

// TestAPolicyThatWasLoweredInPlace: if a limit was lowered in place before it is replaced, keys hand over their
// complete debt.
func TestAPolicyThatWasLoweredInPlace(t *testing.T) {
	for name, of := range map[string]func(uint64) engine.Policy{
		"token bucket":   hourly,
		"batch refill":   func(n uint64) engine.Policy { return engine.BatchRefill(3, time.Hour, n) },
		"fixed window":   func(n uint64) engine.Policy { return engine.FixedWindow(n, time.Hour) },
		"sliding window": func(n uint64) engine.Policy { return engine.SlidingWindow(n, time.Hour) },
		"sliding log":    func(n uint64) engine.Policy { return engine.SlidingLog(n, time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			clock := testclock.New()
			before := live.New(newLimiter(t, clock, of(10), engine.MaxKeys(500)))
			for range 10 {
				require.True(t, take(before, "a", 0))
			}
			require.NoError(t, before.SetPolicy(of(3)))
			now := replace(t, before, newLimiter(t, clock, hourly(12)))
			before.Release()
			require.True(t, take(now, "a", 0))
			require.True(t, take(now, "a", 0))
			require.False(t, take(now, "a", 0))
		})
	}
}

// TestTiers: the tier of a key's last take decides how much the key owes.
func TestTiers(t *testing.T) {
	clock := testclock.New()
	before := live.New(newLimiter(t, clock, hourly(2), engine.Tiers(hourly(5), hourly(100))))
	for range 5 {
		require.True(t, take(before, "a", 1))
	}
	now := replace(t, before, newLimiter(t, clock, hourly(8), engine.Tiers(hourly(9))))
	for range 4 {
		require.True(t, take(now, "a", 1))
	}
	require.False(t, take(now, "a", 1))
}

// TestAConfigurationThatIsGivenUp: a configuration that is dropped before its use does not change the limiter in use.
func TestAConfigurationThatIsGivenUp(t *testing.T) {
	clock := testclock.New()
	before := live.New(newLimiter(t, clock, hourly(2)))
	require.True(t, take(before, "a", 0))
	replace(t, before, newLimiter(t, clock, hourly(2), engine.MaxKeys(9))).Release()
	require.True(t, take(before, "a", 0))
	require.False(t, take(before, "a", 0))
}

// TestChainAndBound: debts survive MaxFormers replacements.
func TestChainAndBound(t *testing.T) {
	clock := testclock.New()
	l := live.New(newLimiter(t, clock, hourly(2)))
	for i := range live.MaxFormers {
		key := fmt.Sprint(i)
		require.True(t, take(l, key, 0))
		require.True(t, take(l, key, 0))
		l = replace(t, l, newLimiter(t, clock, hourly(2), engine.MaxKeys(100+i)))
	}
	for i := range live.MaxFormers {
		require.False(t, take(l, fmt.Sprint(i), 0), i)
	}
	l = live.New(newLimiter(t, clock, hourly(2)))
	for i := range live.MaxFormers {
		require.True(t, take(l, fmt.Sprint(i), 0))
		l = replace(t, l, newLimiter(t, clock, hourly(2), engine.MaxKeys(100+i)))
	}
	require.True(t, take(l, "last", 0))
	_, err := l.Replace(newLimiter(t, clock, hourly(2)))
	require.ErrorContains(t, err, "want at most 4 tables")
	clock.Advance(time.Hour)
	replace(t, l, newLimiter(t, clock, hourly(2)))
}

// TestForgotten: a previous limiter to which no key owes anything is dropped after two sweeps.
func TestForgotten(t *testing.T) {
	clock := testclock.New()
	before := live.New(newLimiter(t, clock, hourly(2)))
	require.True(t, take(before, "a", 0))
	now := replace(t, before, newLimiter(t, clock, hourly(2)))
	ask := func() {
		for range 64 {
			take(now, "b", 0)
		}
	}
	before.Sweep()
	before.Sweep()
	ask()
	require.True(t, now.Formers().Any())
	clock.Advance(time.Hour)
	before.Sweep()
	ask()
	require.False(t, now.Formers().Any())
}

// TestThePreviousConfigurationStillDecides: requests that the previous configuration still decides are charged to the
// next limiter, too.
func TestThePreviousConfigurationStillDecides(t *testing.T) {
	window := time.Hour
	for name, p := range map[string]engine.Policy{
		"token bucket":   hourly(10),
		"batch refill":   engine.BatchRefill(10, window, 10),
		"fixed window":   engine.FixedWindow(10, window),
		"sliding window": engine.SlidingWindow(10, window),
		"sliding log":    engine.SlidingLog(10, window),
	} {
		t.Run(name, func(t *testing.T) {
			clock := testclock.New()
			before := live.New(newLimiter(t, clock, p, engine.MaxKeys(500)))
			for range 8 {
				require.True(t, take(before, "a", 0))
			}
			now := replace(t, before, newLimiter(t, clock, hourly(10), engine.MaxKeys(500)))
			require.True(t, take(now, "a", 0)) // the next limiter has counted 9
			require.True(t, take(before, "a", 0))
			for range 3 { // 10 are used, which the next limiter finds out now
				require.False(t, take(now, "a", 0))
			}
			require.True(t, take(before, "a", 0)) // the tenth token by the count of the previous limiter
			for range 30 {
				require.False(t, take(before, "a", 0))
				require.False(t, take(now, "a", 0))
			}
			before.Release()
			for range 3 {
				require.False(t, take(now, "a", 0))
			}
			tokens, _ := before.Owed(before.Key("a"))
			require.LessOrEqual(t, tokens, uint64(1), "what the next limiter had no room for") // MaxDebt is the limit
		})
	}
}

// TestABlockedTier: a key's debt under a tier that is now blocked is handed over.
func TestABlockedTier(t *testing.T) {
	for _, p := range []engine.Policy{engine.Blocked(), engine.Unlimited()} {
		clock := testclock.New()
		before := live.New(newLimiter(t, clock, hourly(2), engine.Tiers(hourly(5))))
		for range 5 {
			require.True(t, take(before, "a", 1))
		}
		require.NoError(t, before.SetPolicy(hourly(2), p))
		now := replace(t, before, newLimiter(t, clock, hourly(2), engine.Tiers(hourly(6))))
		require.True(t, take(now, "a", 1))
		require.False(t, take(now, "a", 1))
	}
}

// TestMovedOnce: of many concurrent requests of a key, none finds a full bucket, and the debt is charged once.
func TestMovedOnce(t *testing.T) {
	for range 200 {
		clock := testclock.New()
		before := live.New(newLimiter(t, clock, hourly(10), engine.MaxKeys(100)))
		for range 7 {
			take(before, "a", 0)
		}
		now := replace(t, before, newLimiter(t, clock, hourly(10), engine.MaxKeys(100)))
		var admitted atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if take(now, "a", 0) {
					admitted.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 3, admitted.Load())
	}
}

// TestASharedLimiter: when a limit moves from a shared limiter to another and back, each debt is charged once.
func TestASharedLimiter(t *testing.T) {
	clock := testclock.New()
	first := live.New(newLimiter(t, clock, hourly(10)))
	other := live.New(newLimiter(t, clock, hourly(20)))
	limit := first.Share(11*time.Hour, clock.Now, 10)
	for _, key := range []string{"a", "b"} {
		for range 6 {
			require.True(t, take(limit, key, 0))
		}
	}
	next := other.Share(11*time.Hour, clock.Now, 10)
	require.NoError(t, limit.HandOver(next))
	require.True(t, take(next, "a", 0)) // while the first limiter is still in use
	limit.Release()
	back := first.Share(11*time.Hour, clock.Now, 10)
	require.NoError(t, next.HandOver(back))
	next.Release()
	for key, want := range map[string]int{"a": 3, "b": 4, "c": 10} {
		n := 0
		for take(back, key, 0) {
			n++
		}
		require.Equal(t, want, n, key)
	}
	require.Len(t, back.Formers().Limiters(), 1)
	require.True(t, take(live.New(other.Limiter), "someone else's", 0)) // the limiter never looks empty
	for range 2 * 64 {
		take(back, "a", 0)
	}
	require.Len(t, back.Formers().Limiters(), 1)
	clock.Advance(11 * time.Hour)
	require.True(t, other.AllowKey(other.Key("someone else's")))
	for range 2 * 64 {
		take(back, "a", 0)
	}
	require.Empty(t, back.Formers().Limiters())
}

// TestRefusedHitsAreNotHandedOver: a key hands over at most the limit, although refused hits were counted, too.
func TestRefusedHitsAreNotHandedOver(t *testing.T) {
	for _, inUse := range []bool{false, true} {
		clock := testclock.New()
		hits := live.New(newLimiter(t, clock, hourly(1000)))
		limit := hits.Share(11*time.Hour, clock.Now, 5)
		limit.RaiseMost(8)
		limit.RaiseMost(3)
		hits.Charge(hits.Key("a"), 600)
		next := live.New(newLimiter(t, clock, hourly(10))).Share(11*time.Hour, clock.Now, 1)
		require.NoError(t, limit.HandOver(next))
		if !inUse {
			limit.Release()
		}
		n := 0
		for take(next, "a", 0) {
			n++
		}
		require.Equal(t, 10-8, n)
		if inUse {
			limit.Release()
			back := hits.Share(11*time.Hour, clock.Now, 5)
			require.NoError(t, next.HandOver(back))
			last := live.New(newLimiter(t, clock, hourly(10)))
			require.NoError(t, back.HandOver(last))
			require.True(t, take(last, "a", 0)) // of the 10 tokens taken from next, at most 8 are handed over
			require.True(t, take(last, "a", 0))
			require.False(t, take(last, "a", 0))
		}
		owed, _ := hits.Owed(hits.Key("a"))
		require.Zero(t, owed, "in use: %v", inUse)
	}
}
