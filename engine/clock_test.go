package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/tsc"
)

// In a synctest bubble, the time of a precise clock is the bubble's time.
func TestPreciseClockInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(TokenBucket(PerSecond(10), 1), ClockPrecise(), MaxKeys(10))
		require.NoError(t, err)
		defer l.Close()
		for range 5 {
			d := l.Take("k", 1)
			require.True(t, d.Allowed)
			d = l.Take("k", 1)
			require.Equal(t, 100*time.Millisecond, d.RetryAfter)
			time.Sleep(d.RetryAfter - 1)
			require.False(t, l.Allow("k"))
			time.Sleep(time.Nanosecond)
		}
	})
}

// In a synctest bubble, the default clock uses Go's clock instead of the counter.
func TestDefaultClockInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(TokenBucket(Per(1, time.Hour), 1), MaxKeys(10))
		require.NoError(t, err)
		defer l.Close()
		require.Equal(t, clockPrecise, l.clock.kind)
		require.True(t, l.Allow("k"))
		require.False(t, l.Allow("k"))
		time.Sleep(time.Hour)
		require.True(t, l.Allow("k"))
	})
}

func TestSweeperInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(TokenBucket(PerSecond(1), 5), ClockPrecise(), MaxKeys(100), SweepInterval(time.Minute))
		require.NoError(t, err)
		defer l.Close()
		l.Take("k", 5)
		time.Sleep(time.Minute + time.Second)
		s := l.Stats()
		assert.EqualValues(t, []uint64{1, 0, 0}, []uint64{s.Sweeps, s.Reclaimed, s.Keys},
			"there is room: the record stays")
		time.Sleep(time.Hour)
		assert.EqualValues(t, 61, l.Stats().Sweeps)
	})
}

// A refusal by a coarse clock is checked with the exact clock if the wait is short.
func TestCoarseClockChecksRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(TokenBucket(PerSecond(1000), 1), ClockCoarse(), MaxKeys(10))
		require.NoError(t, err)
		defer l.Close()
		require.Nil(t, l.clock.counter)
		time.Sleep(10*time.Millisecond + 500*time.Microsecond)
		word := l.clock.coarse.Load() // the word is half a millisecond late, as it may be
		require.True(t, l.Allow("k"))
		require.False(t, l.Allow("k"), "the exact clock says no as well")
		assert.Equal(t, word, l.clock.coarse.Load(), "a word as young as this is left alone")

		time.Sleep(600 * time.Microsecond)
		l.clock.coarse.Store(word) // as if it had not been renewed
		require.True(t, l.Allow("k"), "the exact clock says yes")
		assert.Equal(t, word+int64(1100*time.Microsecond), l.clock.coarse.Load(), "the refusal renewed the word")

		l.clock.coarse.Store(word)
		require.False(t, l.Take("k", 1).Allowed)
		l.clock.coarse.Store(word)
		time.Sleep(time.Millisecond - time.Nanosecond)
		l.clock.coarse.Store(word)
		require.False(t, l.Take("k", 1).Allowed, "one nanosecond early")
		time.Sleep(time.Nanosecond)
		l.clock.coarse.Store(word)
		require.True(t, l.Take("k", 1).Allowed)
	})
}

func TestCoarseClockLetsLongWaitsStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(TokenBucket(Per(1, time.Hour), 1), ClockCoarse(), MaxKeys(10))
		require.NoError(t, err)
		defer l.Close()
		require.True(t, l.Allow("k"))
		late := l.clock.coarse.Load() - int64(50*time.Millisecond)
		l.clock.coarse.Store(late)
		require.False(t, l.Allow("k"))
		require.False(t, l.Take("k", 1).Allowed)
		assert.Equal(t, late, l.clock.coarse.Load(), "nothing was written")
	})
}

// The counter's time equals Go's time, before and after recalibrations.
func TestCounterKeepsTime(t *testing.T) {
	c := sharedCounter()
	if c == nil {
		require.False(t, tsc.Trusted(), "a trusted counter is used")
		return
	}
	for range 3 {
		for range 1000 {
			before := c.origin + int64(time.Since(c.base))
			nanos := c.nanos()
			after := c.origin + int64(time.Since(c.base))
			// The clocks may differ by 200 parts in a million of the time, plus a microsecond.
			slack := (after-c.origin)/5000 + 1000
			require.GreaterOrEqual(t, nanos, before-slack)
			require.LessOrEqual(t, nanos, after+slack)
		}
		c.mu.Lock()
		c.last.at = c.last.at.Add(-2 * time.Second)
		c.last.count -= c.count(2 * time.Second)
		c.mu.Unlock()
		c.recalibrate()
	}
}

func (c *counterClock) count(d time.Duration) uint64 {
	return uint64(float64(d) / float64(c.current.Load().mul) * (1 << (64 - counterScale)))
}

// A counter that stops agreeing with Go's clock is no longer used, and time does not go back.
func TestCounterThatRunsAwayIsGivenUp(t *testing.T) {
	if !tsc.Trusted() {
		return // this machine has no counter that could be given up
	}
	c := makeCounter()
	require.NotNil(t, c)
	c.last.at = c.last.at.Add(-time.Minute)
	c.last.count -= c.count(time.Minute)
	c.current.Store(&calibration{count: c.last.count, nanos: c.origin + int64(time.Hour), mul: c.current.Load().mul})
	before := c.nanos()
	c.recalibrate()
	require.Nil(t, c.current.Load())
	first := c.nanos()
	assert.InDelta(t, before, first, 1e9, "Go's clock counts on from the counter's reading")
	assert.GreaterOrEqual(t, c.nanos(), first)
	c.recalibrate()
	assert.Nil(t, c.current.Load(), "for good")
}

func TestSlopeRefusesWhatIsNoCounter(t *testing.T) {
	at := time.Now()
	for _, b := range []sample{
		{count: 5, at: at.Add(time.Second)},        // the counter stands still
		{count: 4, at: at.Add(time.Second)},        // the counter runs back
		{count: 1000, at: at},                      // Go's clock stands still
		{count: 1000, at: at.Add(-1)},              // Go's clock runs back
		{count: 5 + 1000, at: at.Add(time.Second)}, // 1 kHz
	} {
		_, ok := slope(sample{count: 5, at: at}, b)
		assert.False(t, ok, "%+v", b)
	}
	mul, ok := slope(sample{count: 5, at: at}, sample{count: 5 + 2e9, at: at.Add(time.Second)})
	require.True(t, ok)
	assert.Equal(t, uint64(1)<<(64-counterScale)/2, mul, "half a nanosecond a count")
}
