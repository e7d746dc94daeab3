package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func requireAll(t *testing.T, l *Limiter, k Key) uint64 {
	t.Helper()
	left := l.Peek(k, 0).Remaining
	if left > 0 {
		require.True(t, l.TakeKey(k, left).Allowed)
	}
	return left
}

// windowsOfTests has the algorithms of these tests. The field limits says how many limits a key may get at once.
var windowsOfTests = map[string]struct {
	policy func(n uint64, window time.Duration) Policy
	limits uint64
}{
	"fixed window":   {FixedWindow, 2},
	"sliding window": {SlidingWindow, 1},
	"sliding log":    {SlidingLog, 1},
}

// TestWindowsToAndFro (I1): the policy changes between 1000 per hour and 20 per minute. A key gets at most 1000 tokens
// at once and then 20 per minute. With fixed windows it may get 1000 tokens more, once.
func TestWindowsToAndFro(t *testing.T) {
	for name, kind := range windowsOfTests {
		for way, takesFew := range map[string]bool{"all": false, "all, and in each minute": true} {
			t.Run(name+", "+way, func(t *testing.T) {
				many, few := kind.policy(1000, time.Hour), kind.policy(20, time.Minute)
				l, h := newLimiter(t, many)
				k, sum, began := l.Key("k"), uint64(0), h.now()
				for range 150 {
					sum += requireAll(t, l, k)
					require.NoError(t, l.SetPolicy(few))
					for range 2 {
						h.advance(time.Minute)
						if l.Sweep(); takesFew {
							sum += requireAll(t, l, k)
						}
					}
					require.NoError(t, l.SetPolicy(many))
					came := 20 * uint64(h.now().Sub(began)/time.Minute)
					require.LessOrEqual(t, sum, 1000*kind.limits+came+1, "broken: (b): after %v", h.now().Sub(began))
				}
				h.advance(2 * time.Hour)
				assert.EqualValues(t, 1000, requireAll(t, l, k), "when the changes are over")
			})
		}
	}
}

// TestAKeyThatChangesItsLimitToAndFro (I1): changes of the tier or quota with each change of the windows give a key no
// more tokens.
func TestAKeyThatChangesItsLimitToAndFro(t *testing.T) {
	quota := func(t *testing.T, l *Limiter, p Policy) Key {
		t.Helper()
		q, err := l.Quota(p)
		require.NoError(t, err)
		return l.Key("k").With(q)
	}
	tier := func(_ *testing.T, l *Limiter, p Policy) Key {
		if p.limit == 20 {
			return l.Key("k").Tier(1)
		}
		return l.Key("k")
	}
	for name, key := range map[string]func(t *testing.T, l *Limiter, p Policy) Key{"tier": tier, "quota": quota} {
		for policyName, kind := range windowsOfTests {
			t.Run(name+", "+policyName, func(t *testing.T) {
				policy := func(n uint64, window time.Duration) (own Policy, tiers []Policy) {
					if name == "tier" {
						tiers = append(tiers, kind.policy(20, window))
					}
					return kind.policy(n, window), tiers
				}
				own, tiers := policy(1000, time.Hour)
				l, h := newLimiter(t, own, Tiers(tiers...))
				sum, began := uint64(0), h.now()
				for range 150 {
					sum += requireAll(t, l, key(t, l, own))
					few, tiers := policy(1000, time.Minute)
					require.NoError(t, l.SetPolicy(few, tiers...))
					for range 2 {
						sum += requireAll(t, l, key(t, l, kind.policy(20, time.Minute)))
						h.advance(time.Minute)
						l.Sweep()
					}
					own, tiers := policy(1000, time.Hour)
					require.NoError(t, l.SetPolicy(own, tiers...))
					came := 20 * uint64(h.now().Sub(began)/time.Minute)
					require.LessOrEqual(t, sum, 1000*kind.limits+came+1, "broken: (b): after %v", h.now().Sub(began))
				}
			})
		}
	}
}

// TestAWindowThatBecomesShorter (I1): a window that becomes shorter lasts until its tokens have come back at the new
// rate.
func TestAWindowThatBecomesShorter(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to Policy
		taken    uint64
		ends     time.Duration
	}{
		{"as many", FixedWindow(10, time.Hour), FixedWindow(10, time.Minute), 10, time.Minute},
		{"fewer than the limit", FixedWindow(1000, time.Hour), FixedWindow(20, time.Minute), 5, time.Minute},
		{"more than the limit", FixedWindow(1000, time.Hour), FixedWindow(20, time.Minute), 500, 25 * time.Minute},
		{"more than come back", FixedWindow(100, time.Hour), FixedWindow(1, time.Minute), 100, time.Hour},
		{"longer", FixedWindow(20, time.Minute), FixedWindow(1000, time.Hour), 20, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, h := newLimiter(t, c.from)
			require.True(t, l.Take("k", c.taken).Allowed)
			require.NoError(t, l.SetPolicy(c.to))
			assert.Equal(t, c.ends, l.Peek(l.Key("k"), 1).ResetAfter, "broken: (b): when it ends")
			h.advance(c.ends)
			assert.Equal(t, c.to.limit, l.Peek(l.Key("k"), 1).Remaining)
		})
	}
}

// TestACounterOfThePreviousWindow: after a change of the length, tokens of the previous window stop counting at the
// same time as without the change.
func TestACounterOfThePreviousWindow(t *testing.T) {
	l, h := newLimiter(t, SlidingWindow(10, time.Minute))
	require.True(t, l.Take("k", 8).Allowed)
	h.advance(70 * time.Second)
	require.NoError(t, l.SetPolicy(SlidingWindow(1, 10*time.Second))) // 4 tokens still count, for 30s or 40s
	h.advance(25 * time.Second)
	assert.False(t, l.Allow("k"), "broken: (b)")
	h.advance(5 * time.Second)
	assert.True(t, l.Allow("k"), "broken: (c)")
}

// TestAChangeOfLengthKeepsAnEstimate: the estimate at a change of the length, rounded up, counts in full after the
// change.
func TestAChangeOfLengthKeepsAnEstimate(t *testing.T) {
	l, h := newLimiter(t, SlidingWindow(10, time.Minute))
	require.True(t, l.Take("k", 10).Allowed)
	h.advance(90 * time.Second)
	require.NoError(t, l.SetPolicy(SlidingWindow(10, 58*time.Second))) // 22s into a window; a sixth counts, for 10s
	assert.EqualValues(t, 8, l.Peek(l.Key("k"), 1).Remaining, "broken: (b)")
}

// TestACounterThatIsAheadStaysAhead: tokens that count for 50 minutes after a change still do so after the next change.
func TestACounterThatIsAheadStaysAhead(t *testing.T) {
	l, h := newLimiter(t, SlidingWindow(1000, time.Hour))
	require.True(t, l.Take("k", 1000).Allowed)
	require.NoError(t, l.SetPolicy(SlidingWindow(20, time.Minute)))
	require.NoError(t, l.SetPolicy(SlidingWindow(20, 59*time.Second)))
	h.advance(48 * time.Minute)
	assert.False(t, l.Allow("k"), "broken: (b)")
}

// TestALongerWindowOfARaisedLimitIsShorter: if the limit and the length are raised together, a window that lasts longer
// than usual ends like a new one.
func TestALongerWindowOfARaisedLimitIsShorter(t *testing.T) {
	l, _ := newLimiter(t, FixedWindow(1000, time.Hour))
	require.True(t, l.Take("k", 1000).Allowed)
	require.NoError(t, l.SetPolicy(FixedWindow(20, time.Minute)))
	require.NoError(t, l.SetPolicy(FixedWindow(1000, 2*time.Minute)))
	assert.Equal(t, 2*time.Minute, l.Peek(l.Key("k"), 1).ResetAfter.Truncate(time.Second), "broken: (d)")
}

// TestARaisedLimitLastsItsWindow (I1): tokens from a higher limit and a longer length do not come back at the end of
// the short window.
func TestARaisedLimitLastsItsWindow(t *testing.T) {
	few, many := FixedWindow(60, time.Minute), FixedWindow(1000, time.Hour)
	l, h := newLimiter(t, few)
	k, sum := l.Key("k"), uint64(0)
	for minute := range uint64(30) {
		require.True(t, minute > 0 || l.AllowKey(k))
		require.NoError(t, l.SetPolicy(many))
		sum += requireAll(t, l, k)
		require.NoError(t, l.SetPolicy(few))
		require.LessOrEqual(t, sum, 2000+60*minute, "broken: (b): in minute %d", minute)
		h.advance(time.Minute)
		sum += requireAll(t, l, k)
	}
}

// TestTheLowestLimitOfAllTiers (I1): a window lasts until its tokens have come back under the lowest limit of all
// tiers. The reason is that a key may change its limit.
func TestTheLowestLimitOfAllTiers(t *testing.T) {
	hours := FixedWindow(20, time.Hour)
	for _, c := range []struct {
		name  string
		to    []Policy
		quota bool
		taken uint64
		ends  time.Duration
	}{
		{"no more than the lowest limit", []Policy{FixedWindow(20, time.Minute), FixedWindow(10, time.Minute)}, false, 10, time.Minute},
		{"more than the lowest limit", []Policy{FixedWindow(20, time.Minute), FixedWindow(10, time.Minute)}, false, 15, 90 * time.Second},
		{"the lowest limit is the limiter's own", []Policy{FixedWindow(5, time.Minute), FixedWindow(10, time.Minute)}, false, 15, 3 * time.Minute},
		{"a quota", []Policy{FixedWindow(20, time.Minute), FixedWindow(10, time.Minute)}, true, 15, 15 * time.Minute},
		{"a blocked tier", []Policy{FixedWindow(20, time.Minute), Blocked()}, false, 1, time.Hour},
		{"an unlimited tier", []Policy{FixedWindow(20, time.Minute), Unlimited()}, false, 1, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, h := newLimiter(t, hours, Tiers(FixedWindow(100, time.Hour)))
			k := l.Key("k")
			require.True(t, l.TakeKey(k, c.taken).Allowed)
			if c.quota {
				_, err := l.Quota(FixedWindow(15, time.Hour))
				require.NoError(t, err)
			}
			require.NoError(t, l.SetPolicy(c.to[0], c.to[1:]...))
			assert.Equal(t, c.ends, l.Peek(k, 1).ResetAfter, "broken: (b): when it ends")
			require.NoError(t, l.SetPolicy(FixedWindow(1000, time.Minute), FixedWindow(1000, time.Minute)))
			assert.Equal(t, c.ends, l.Peek(k, 1).ResetAfter, "broken: (a): a limit that rises later")
			h.advance(c.ends)
			assert.EqualValues(t, 1000, l.Peek(k, 1).Remaining)
		})
	}
}

// TestWindowsAheadOfTheClockThatBecomeShorter (I1): tokens taken for a time ahead of the clock still count at that time
// when windows become shorter.
func TestWindowsAheadOfTheClockThatBecomeShorter(t *testing.T) {
	for name, policy := range map[string]func(n uint64, window time.Duration) Policy{
		"fixed window":   FixedWindow,
		"aligned window": func(n uint64, window time.Duration) Policy { return FixedWindow(n, window).Aligned() },
		"sliding window": SlidingWindow,
		"sliding log":    SlidingLog,
	} {
		t.Run(name, func(t *testing.T) {
			l, h := newLimiter(t, policy(10, time.Hour))
			k, ahead := l.Key("k"), h.now().Add(time.Second)
			require.True(t, l.TakeAt(k, 10, ahead).Allowed)
			require.NoError(t, l.SetPolicy(policy(10, 100*time.Millisecond)))
			assert.False(t, l.TakeAt(k, 1, ahead).Allowed, "broken: (b): at that time")
			h.advance(time.Second)
			assert.False(t, l.AllowKey(k), "broken: (b): then")
			h.advance(200 * time.Millisecond)
			assert.True(t, l.AllowKey(k))
		})
	}
}

// TestWindowsOfTheClockToAndFro (I1): changes between hours and minutes, or months and days, give a key no additional
// tokens.
func TestWindowsOfTheClockToAndFro(t *testing.T) {
	hours := func(n uint64) Policy { return FixedWindow(n, time.Hour).Aligned() }
	minutes := func(n uint64) Policy { return FixedWindow(n, time.Minute).Aligned() }
	months := func(n uint64) Policy { return CalendarWindow(n, Month, time.UTC) }
	days := func(n uint64) Policy { return CalendarWindow(n, Day, time.UTC) }
	for name, c := range map[string]struct {
		long, short func(n uint64) Policy
		wait        time.Duration
	}{"aligned": {hours, minutes, time.Minute}, "calendar": {months, days, 24 * time.Hour}} {
		t.Run(name, func(t *testing.T) {
			l, h := newLimiter(t, c.long(1000))
			require.True(t, l.Take("k", 1000).Allowed)
			require.NoError(t, l.SetPolicy(c.short(400)))
			h.advance(c.wait)
			assert.False(t, l.Allow("k"), "broken: (b): in short windows")
			require.NoError(t, l.SetPolicy(c.long(1000)))
			assert.Zero(t, l.Peek(l.Key("k"), 1).Remaining, "broken: (b): in long windows again")
		})
	}
}

// TestThereIsRoomForALongWindow: SetPolicy returns an error if records would have too little room for tokens of a long
// window.
func TestThereIsRoomForALongWindow(t *testing.T) {
	for _, policy := range []func(n uint64, window time.Duration) Policy{FixedWindow, SlidingWindow} {
		l, _ := newLimiter(t, policy(1<<20, 24*time.Hour))
		require.ErrorContains(t, l.SetPolicy(policy(1, time.Second)), "of earlier limits, for ", "broken: (b): no room")
		require.NoError(t, l.SetPolicy(policy(1<<20, 4*time.Second)))
	}
	l, _ := newLimiter(t, FixedWindow(1000, 24*time.Hour))
	require.True(t, l.Take("k", 1000).Allowed)
	require.NoError(t, l.SetPolicy(FixedWindow(1, time.Second)))
	assert.Equal(t, 1000*time.Second, l.Peek(l.Key("k"), 1).RetryAfter.Truncate(time.Second))
}

// TestChangesOfTheLengthDoNotAddUp: however often the length changes, no key waits much longer than the longest window.
func TestChangesOfTheLengthDoNotAddUp(t *testing.T) {
	for name, policy := range map[string]func(window time.Duration) Policy{
		"fixed window":   func(window time.Duration) Policy { return FixedWindow(1000, window) },
		"aligned window": func(window time.Duration) Policy { return FixedWindow(1000, window).Aligned() },
		"sliding window": func(window time.Duration) Policy { return SlidingWindow(1000, window) },
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := newLimiter(t, policy(60*time.Second))
			_, err := l.Quota(policy(60 * time.Second))
			require.NoError(t, err)
			require.True(t, l.Take("k", 1000).Allowed)
			for range 20 {
				for _, window := range []time.Duration{61 * time.Second, 60 * time.Second} {
					require.NoError(t, l.SetPolicy(policy(window)))
					require.LessOrEqual(t, l.Peek(l.Key("k"), 1).RetryAfter, 3*61*time.Second, "broken: (c): after changes there and back")
				}
			}
		})
	}
}

// TestARefundInAShorterWindowKeepsTheLog (I1): a refund removes no requests of a log that would count again in a longer
// window.
func TestARefundInAShorterWindowKeepsTheLog(t *testing.T) {
	for name, refund := range map[string]func(l *Limiter, k Key, r *Receipt){
		"with a receipt": func(_ *Limiter, _ Key, r *Receipt) { r.Release() },
		"without":        func(l *Limiter, k Key, _ *Receipt) { l.Refund(k, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			for taken, left := range map[uint64][2]uint64{7: {2, 3}, 10: {0, 0}} {
				long, short := SlidingLog(10, time.Minute), SlidingLog(2, 5*time.Second)
				clock := &hand{}
				l, err := New(long, ClockFunc(clock.now), MaxKeys(100))
				require.NoError(t, err)
				t.Cleanup(func() { _ = l.Close() })
				k := l.Key("anna")
				require.True(t, l.TakeKey(k, taken).Allowed)
				require.NoError(t, l.SetPolicy(short))
				clock.advance(5 * time.Second)
				d, receipt := l.TakeReceipt(k, 2)
				require.True(t, d.Allowed)
				require.EqualValues(t, 0, l.Peek(k, 1).Remaining)
				refund(l, k, &receipt)
				require.EqualValues(t, left[0], l.Peek(k, 1).Remaining, "broken: (b): in the short window")
				require.NoError(t, l.SetPolicy(long))
				d = l.Peek(k, 2)
				require.EqualValues(t, left[1], d.Remaining, "broken: (b): the refund has given back an earlier take")
				require.Equal(t, 55*time.Second, d.ResetAfter)
			}
		})
	}
}
