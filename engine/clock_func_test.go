package engine

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (h *hand) set(at time.Time) { h.other.Store(&at) }

// pass moves the clock on by d in steps of half a minute, and the limiter reads each step.
func (h *hand) pass(l *Limiter, d time.Duration) {
	for ; d > 0; d -= maxBack / 2 {
		h.advance(maxBack / 2)
		l.Peek(l.Key("any"), 1)
	}
}

// TestAClockThatLeapsAndComesBack: after the clock leaps ahead and back, no key waits until the clock reaches the later
// time again.
func TestAClockThatLeapsAndComesBack(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, h *hand) {
		const years = 365 * 24 * time.Hour
		require.True(t, l.Take("k", 100).Allowed)
		for round := range 5 {
			h.advance(10 * years)
			require.Equal(t, round == 0, l.Take("k", 100).Allowed)
			l.Sweep()
			for range 5 {
				h.advance(-2 * years)
				require.False(t, l.Allow("k"))
				require.LessOrEqual(t, l.Peek(l.Key("k"), 1).RetryAfter, 2*time.Minute)
			}
			fresh := fmt.Sprint("new in round ", round)
			require.True(t, l.Take(fresh, 100).Allowed)
			require.False(t, l.Allow(fresh))
			h.pass(l, 2*time.Minute)
			require.True(t, l.Take("k", 100).Allowed)
			require.True(t, l.Take(fresh, 100).Allowed)
			require.False(t, l.TakeAt(l.Key("k"), 1, h.now()).Allowed)
			require.False(t, l.TakeAt(l.Key("k"), 1, h.now().Add(-time.Hour)).Allowed)
			h.pass(l, 2*time.Minute)
			require.True(t, l.TakeAt(l.Key("k"), 100, h.now()).Allowed)
			require.True(t, l.Take(fresh, 100).Allowed)
		}
	})
}

// TestAClockThatIsWrongAgainAndAgain (I1): of many wrong readings, only the one furthest ahead causes more admissions,
// and only once.
func TestAClockThatIsWrongAgainAndAgain(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, h *hand) {
		require.True(t, l.Take("k", 100).Allowed)
		for minutes := time.Duration(20); minutes > 10; minutes-- {
			for range 2 {
				h.advance(-minutes * time.Minute)
				require.False(t, l.Allow("k"))
			}
			h.advance(2 * minutes * time.Minute)
			require.False(t, l.Allow("k"), "%d minutes back", minutes)
		}
		for minutes := time.Duration(20); minutes > 10; minutes-- {
			h.advance(minutes * time.Minute)
			require.Equal(t, minutes == 20, l.Take("k", 100).Allowed, "%d minutes ahead", minutes)
			h.advance(-minutes * time.Minute)
			require.False(t, l.Allow("k"))
		}
		h.pass(l, 2*time.Minute)
		require.True(t, l.Take("k", 100).Allowed)
	})
}

// TestAClockThatGoesToAndFro: if each reading is far from the previous one, a call still reads the function only once.
func TestAClockThatGoesToAndFro(t *testing.T) {
	const leap = 10 * maxBack
	begin := time.Unix(1_700_000_000, 0)
	readings := 0
	c, err := newClock(clockFunc, func() time.Time {
		if readings++; readings%2 == 0 && readings < 100 { // the bound ends a call that would read again and again
			return begin.Add(leap)
		}
		return begin
	})
	require.NoError(t, err)
	for i := range 10 {
		require.Equal(t, begin.Add(leap).UnixNano(), c.funcNanos())
		require.Equal(t, i+2, readings)
	}
}

// TestAClockThatReadsNoTime: a reading outside the timeline is ignored, and time continues when the clock is right
// again.
func TestAClockThatReadsNoTime(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	for _, wrong := range []time.Time{
		{}, time.Unix(-1, 0), time.Unix(1<<40, 0), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
		time.Unix(math.MaxInt64/1_000_000_000+1, 0),
	} {
		forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, h *hand) {
			require.True(t, l.Take("k", 60).Allowed)
			before := l.Peek(l.Key("k"), 100)
			h.set(wrong)
			require.Equal(t, before, l.Peek(l.Key("k"), 100), "the clock reads %v", wrong)
			l.Sweep()
			require.True(t, l.Take("k", 40).Allowed)
			require.False(t, l.Allow("k"))
			h.set(begin.Add(2 * time.Minute))
			require.True(t, l.Take("k", 100).Allowed)
			require.False(t, l.Allow("k"))
		})
	}
}

// TestLeapsThatTheTimelineCannotHold: a reading in the second half of the remaining timeline is ignored.
func TestLeapsThatTheTimelineCannotHold(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, h *hand) {
		right := time.Unix(1_700_000_000, 0)
		for _, far := range []time.Time{
			time.Unix(0, math.MaxInt64), time.Date(2250, 1, 1, 0, 0, 0, 0, time.UTC), right.Add(math.MaxInt64/2 - 849_999_999*time.Second),
		} {
			for range 3 {
				h.set(right)
				require.True(t, l.Take("k", 100).Allowed, "%v", far)
				h.set(far)
				require.False(t, l.Allow("k"), "%v", far)
				h.set(right)
				require.False(t, l.Allow("k"), "%v", far)
				right = right.Add(2 * time.Minute)
			}
		}
		far := right.Add(math.MaxInt64/2 - 850_010_000*time.Second)
		for round := range 3 {
			h.set(right)
			require.True(t, l.Take("k", 100).Allowed)
			h.set(far)
			require.Equal(t, round == 0, l.Take("k", 100).Allowed)
			h.set(right)
			for range 4 {
				l.Peek(l.Key("k"), 1)
				right = right.Add(maxBack / 2)
				h.set(right)
			}
		}
	})
}

// TestAClockThatGoesBackALittleIsLate: after a step back of a minute, nothing is admitted until the latest time is
// there again.
func TestAClockThatGoesBackALittleIsLate(t *testing.T) {
	forEach(t, nil, func(t *testing.T, a perMinute, l *Limiter, h *hand) {
		longest := 2 * maxBack
		if a.name == "concurrency" { // forgotten within two minutes of a clock that is a minute back
			longest += maxBack
		}
		h.advance(time.Hour)
		require.True(t, l.Take("k", 100).Allowed)
		for range 3 {
			h.advance(-maxBack)
			require.False(t, l.Allow("k"))
			require.LessOrEqual(t, l.Peek(l.Key("k"), 1).RetryAfter, longest)
			h.advance(maxBack)
			require.False(t, l.Allow("k"))
		}
	})
}

// TestARefundByALateClockGivesNoMore (I1): a refund by a late clock gives back no tokens that had already come back.
func TestARefundByALateClockGivesNoMore(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, h *hand) {
		_, receipt := l.TakeReceipt(l.Key("k"), 50)
		h.advance(30 * time.Second)
		require.True(t, l.Allow("k"))
		h.advance(-30 * time.Second)
		receipt.Refund(50)
		h.advance(30 * time.Second)
		require.LessOrEqual(t, l.Peek(l.Key("k"), 0).Remaining, uint64(99), "one was taken this moment")
	})
}
