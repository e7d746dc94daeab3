package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// requireAll takes all that a key has left, and returns how much that was.
func requireAll(t *testing.T, l *Limiter, k Key) uint64 {
	t.Helper()
	left := l.Peek(k, 0).Remaining
	if left > 0 {
		require.True(t, l.TakeKey(k, left).Allowed)
	}
	return left
}

// TestWindowsToAndFro (I1): 1000 in an hour and 20 in a minute, in turn. A key gets what one limit of 1000 tokens and a
// rate of 20 a minute give, and one limit more at an edge of fixed windows. So does a key whose records are swept, and
// one that takes in every minute.
func TestWindowsToAndFro(t *testing.T) {
	for name, kind := range map[string]struct {
		policy func(n uint64, window time.Duration) Policy
		limits uint64
	}{
		"fixed window":   {FixedWindow, 2},
		"sliding window": {SlidingWindow, 1},
		"sliding log":    {SlidingLog, 1},
	} {
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

// TestAWindowThatBecomesShorter (I1): it lasts until what was taken in it has come back at the new rate, and never
// longer than before. So a raised rate is active at once.
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

// TestACounterOfThePreviousWindow: what was taken in the previous window only is gone when that would have been gone,
// not a window later.
func TestACounterOfThePreviousWindow(t *testing.T) {
	l, h := newLimiter(t, SlidingWindow(10, time.Minute)) // at 20s of a minute
	require.True(t, l.Take("k", 8).Allowed)
	h.advance(70 * time.Second)
	require.NoError(t, l.SetPolicy(SlidingWindow(1, 10*time.Second))) // 4 are left, for 30s or 40s
	h.advance(25 * time.Second)
	assert.False(t, l.Allow("k"), "broken: (b)")
	h.advance(5 * time.Second)
	assert.True(t, l.Allow("k"), "broken: (c)")
}

// TestAChangeOfLengthKeepsAnEstimate: the estimate at the change, rounded up, counts in full, even if it would be gone
// within the window that has begun.
func TestAChangeOfLengthKeepsAnEstimate(t *testing.T) {
	l, h := newLimiter(t, SlidingWindow(10, time.Minute)) // at 20s of a minute
	require.True(t, l.Take("k", 10).Allowed)
	h.advance(90 * time.Second)
	require.NoError(t, l.SetPolicy(SlidingWindow(10, 58*time.Second))) // at 22s of a window; a sixth is left, for 10s
	assert.EqualValues(t, 8, l.Peek(l.Key("k"), 1).Remaining, "broken: (b)")
}

// TestACounterThatIsAheadStaysAhead: what a change made last for 50 minutes still does after the next change.
func TestACounterThatIsAheadStaysAhead(t *testing.T) {
	l, h := newLimiter(t, SlidingWindow(1000, time.Hour))
	require.True(t, l.Take("k", 1000).Allowed)
	require.NoError(t, l.SetPolicy(SlidingWindow(20, time.Minute)))
	require.NoError(t, l.SetPolicy(SlidingWindow(20, 59*time.Second)))
	h.advance(48 * time.Minute)
	assert.False(t, l.Allow("k"), "broken: (b)")
}

// TestALongerWindowOfARaisedLimitIsShorter: a window that was kept for a lowered limit ends with a new one, if the
// limit is raised with the length.
func TestALongerWindowOfARaisedLimitIsShorter(t *testing.T) {
	l, _ := newLimiter(t, FixedWindow(1000, time.Hour))
	require.True(t, l.Take("k", 1000).Allowed)
	require.NoError(t, l.SetPolicy(FixedWindow(20, time.Minute)))
	require.NoError(t, l.SetPolicy(FixedWindow(1000, 2*time.Minute)))
	assert.Equal(t, 2*time.Minute, l.Peek(l.Key("k"), 1).ResetAfter.Truncate(time.Second), "broken: (d)")
}

// TestARaisedLimitLastsItsWindow (I1): what a raised limit adds does not end with the short window that it found. Over
// any time a key gets two limits, and what 60 in a minute grant.
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

// TestTheFactorOfATier (I1): a tier whose limit has fallen keeps its windows until they are back, whatever the limits
// of the others. If no limit has fallen, a tier's windows become shorter whatever the others' limits.
func TestTheFactorOfATier(t *testing.T) {
	ends := func(t *testing.T, from, to [2]uint64, tier int) time.Duration {
		l, _ := newLimiter(t, FixedWindow(from[0], time.Hour), Tiers(FixedWindow(from[1], time.Hour)))
		k := l.Key("k").Tier(tier)
		require.True(t, l.TakeKey(k, from[tier]).Allowed)
		require.NoError(t, l.SetPolicy(FixedWindow(to[0], time.Minute), FixedWindow(to[1], time.Minute)))
		return l.Peek(k, 1).ResetAfter
	}
	assert.Equal(t, time.Minute, ends(t, [2]uint64{10, 1000}, [2]uint64{10, 1000}, 1), "broken: (d): no limit has fallen")
	assert.Equal(t, 10*time.Minute, ends(t, [2]uint64{10, 1000}, [2]uint64{10, 100}, 1), "broken: (b): of the tier that fell")
	assert.Equal(t, time.Minute, ends(t, [2]uint64{10, 1000}, [2]uint64{10, 100}, 0), "broken: (d): no more than the lowest limit")
	assert.Equal(t, 5*time.Minute, ends(t, [2]uint64{1000, 10}, [2]uint64{200, 10}, 0), "broken: (b): of the limiter's own")

	l, _ := newLimiter(t, FixedWindow(10, time.Hour), Tiers(FixedWindow(100, time.Hour)))
	k := l.Key("k").Tier(1)
	require.True(t, l.TakeKey(k, 100).Allowed)
	require.NoError(t, l.SetPolicy(FixedWindow(10, time.Minute), Blocked()))
	assert.Equal(t, time.Hour, l.Peek(k.Tier(0), 1).ResetAfter, "broken: (b): of a tier that was blocked")
}

// TestWindowsAheadOfTheClockThatBecomeShorter (I1): what was taken for a time ahead of the clock counts at that time.
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

// TestWindowsOfTheClockToAndFro (I1): windows that divide each other, and days and months. A shorter window, and the
// long one again, give nothing more.
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

// TestThereIsRoomForALongWindow: a change that leaves no room for what was taken in a long window is an error, and a
// limit that has not fallen needs no room.
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
