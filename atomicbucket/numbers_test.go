package atomicbucket

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheFinestTick: the finest tick is the smallest power of two of nanoseconds for which a window is at most two
// skews long and one skew is at least half a minute. Two ticks must be at most a hundred-thousandth of the window.
func TestTheFinestTick(t *testing.T) {
	const half = uint64(30 * time.Second)
	for _, c := range []struct {
		skew   uint64
		window time.Duration
		period uint64
		ok     bool
	}{
		{half, time.Microsecond, 1, true},
		{half, 60 * time.Second, 1, true},
		{half, 60*time.Second + 1, 2, true},
		{half - 1, 400_000, 2, true},
		{half - 1, 399_999, 0, false},
		{half / 2, 400_000, 2, true},
		{half/2 - 1, 800_000, 4, true},
		{half/2 - 1, 799_999, 0, false},
		{half / 4, 800_000, 4, true},
	} {
		period, ok := finest(c.skew, c.window, c.window)
		assert.Equal(t, c.period, period, "%d, %v", c.skew, c.window)
		assert.Equal(t, c.ok, ok, "%d, %v", c.skew, c.window)
	}
}

// TestSkewsEndSomewhere: a skew is at most eighteen years.
func TestSkewsEndSomewhere(t *testing.T) {
	const most = time.Duration(576_460_752_303_423_488)
	for _, c := range []struct {
		ticks, period uint64
		want          time.Duration
	}{
		{1, 1, 1}, {3, 7, 21}, {1<<59 - 1, 1, most - 1}, {1 << 59, 1, most}, {1<<59 + 1, 1, most},
		{1 << 58, 2, most}, {1 << 60, 2, most}, {1 << 63, 2, most}, {1 << 63, 3, most}, {1 << 32, 1 << 32, most},
	} {
		assert.Equal(t, c.want, skewOf(c.ticks, c.period), "%d * %d", c.ticks, c.period)
	}
	assert.EqualValues(t, uint64(1<<53), circleOf(1))
	assert.EqualValues(t, uint64(1<<47), circleOf(127))
	assert.EqualValues(t, uint64(1<<46), circleOf(128))
	assert.EqualValues(t, uint64(1<<51), logTurn(1))
	assert.EqualValues(t, uint64(1<<47), logTurn(7))
}

// TestWhatLimitsAndWindowsAreTaken: the error for a limit or a window that is not accepted names the range.
func TestWhatLimitsAndWindowsAreTaken(t *testing.T) {
	const window = time.Second
	for _, c := range []struct {
		limit, most uint64
		window      time.Duration
		want        string
	}{
		{1, 1, window, ""}, {1, 9, window, ""}, {9, 9, window, ""}, {4, 9, time.Microsecond, ""}, {4, 9, MaxWindow, ""},
		{0, 9, window, "limit of 0 tokens every 1s: want 1 to 9 tokens"},
		{9, 8, window, "limit of 9 tokens every 1s: want 1 to 8 tokens"},
		{2, 1, window, "limit of 2 tokens every 1s: want 1 to 1 tokens"},
		{2, 0, window, "limit of 2 tokens every 1s: want 1 to 9 tokens"},
		{10, 10, window, "limit of 10 tokens every 1s: want 1 to 9 tokens"},
		{0, 10, window, "limit of 0 tokens every 1s: want 1 to 9 tokens"},
		{1, 10, window, "limit of 1 tokens every 1s: want 1 to 9 tokens"},
		{1, 9, time.Microsecond - 1, "limit of 1 tokens every 999ns: want a window of 1µs to 8760h0m0s"},
		{1, 9, MaxWindow + 1, "limit of 1 tokens every 8760h0m0.000000001s: want a window of 1µs to 8760h0m0s"},
	} {
		err := checkWindow(c.limit, c.most, c.window, 9)
		if c.want == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, c.want)
		}
	}
}

// TestTheLargestCountBesideAShortWindow: if a limit is too large for a short window, the error names the largest
// possible limit. That limit is accepted, and the next one is not.
func TestTheLargestCountBesideAShortWindow(t *testing.T) {
	for name, c := range map[string]struct {
		most  uint64
		make  func(limit uint64) error
		limit uint64
	}{
		"aligned": {1<<25 - 1, func(limit uint64) error { _, err := NewFixedWindow(1, limit, time.Microsecond, true); return err }, MaxLimit},
		"fixed": {1<<15 - 1, func(limit uint64) error {
			_, err := NewFixedWindow(1, limit, time.Microsecond, false)
			return err
		}, MaxLimit},
		"sliding": {1<<12 - 1, func(limit uint64) error { _, err := NewSlidingWindow(1, limit, time.Microsecond); return err }, MaxCount},
		"log":     {1<<7 - 1, func(limit uint64) error { _, err := NewSlidingLog(1, limit, time.Microsecond); return err }, MaxLog},
	} {
		assert.NoError(t, c.make(c.most), name)
		for _, limit := range []uint64{c.most + 1, c.limit} {
			assert.ErrorContains(t, c.make(limit), fmt.Sprintf("want at most %d tokens", c.most), name)
		}
	}
	_, err := NewSlidingWindow(1, MaxCount, 7500*time.Millisecond)
	assert.NoError(t, err)
	_, err = NewSlidingWindow(1, MaxCount, 7500*time.Millisecond-1)
	assert.Error(t, err)
}

// TestWhatAnAlgorithmIsMadeOf: ticks are the finest that fit, and windows last a tick longer if ticks are coarse.
func TestWhatAnAlgorithmIsMadeOf(t *testing.T) {
	fixed, err := NewFixedWindow(100, 127, time.Minute, false)
	require.NoError(t, err)
	assert.Equal(t, FixedWindow{newDivider(1), time.Minute, 60e9, 100, 7, 60e9 + 1<<43, 1 << 43, nil}, fixed)
	fixed, err = NewFixedWindow(100, 128, time.Minute, false)
	require.NoError(t, err)
	assert.Equal(t, FixedWindow{newDivider(1), time.Minute, 60e9, 100, 8, 60e9 + 1<<42, 1 << 42, nil}, fixed)
	fixed, err = NewFixedWindow(1<<32, 1<<32, time.Minute, false)
	require.NoError(t, err) // a skew is 2^17 ticks: with ticks of 2^18 ns it is at least half a minute
	assert.Equal(t, FixedWindow{newDivider(1 << 18), time.Minute, 228_883, 1 << 32, 33, 228_883 + 1<<17, 1 << 35, nil}, fixed)
	fixed, err = NewFixedWindow(100, 100, time.Minute, true)
	require.NoError(t, err)
	assert.Equal(t, FixedWindow{newDivider(60e9), time.Minute, 1, 100, 7, 2 + 1<<43, 1 << 59, nil}, fixed)
	sliding, err := NewSlidingWindow(100, 128, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, SlidingWindow{newDivider(60e9), 60e9, 100, 8, 1 << 34, 1 << 59}, sliding)
	log, err := NewSlidingLog(100, 127, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, []uint64{60e9, 100, 127, 7}, []uint64{log.length, log.tokens, log.size, uint64(log.bits)})
	assert.Equal(t, time.Duration(1<<35), log.skew)
	log, err = NewSlidingLog(1, 4096, time.Minute)
	require.NoError(t, err) // a skew is 2^23 ticks: with ticks of 2^12 ns it is at least half a minute
	assert.Equal(t, []uint64{14_648_439, 1, 4096, 13}, []uint64{log.length, log.tokens, log.size, uint64(log.bits)})
	assert.Equal(t, time.Duration(1<<35), log.skew)
	for _, algorithm := range []Algorithm{&TokenBucket{}, &FixedWindow{}, &SlidingWindow{}, &Concurrency{}} {
		assert.Zero(t, algorithm.RingSize(), "a record is one word")
		assert.True(t, algorithm.Flush(Record{}, 0, nil), "which is never pending")
	}
}

// TestTheNumbersOfABucket: a token has a number of ticks that makes the rate exact, or, if the rate is rounded, a power
// of two of ticks.
func TestTheNumbersOfABucket(t *testing.T) {
	for _, c := range []struct {
		tokens       float64
		period       time.Duration
		burst        uint64
		exact, token uint64
		skew         time.Duration
	}{
		{1, time.Second, 5, 1, 1e9, 1 << 50},
		{16, 17, 1, 16, 17, 1 << 46},
		{17, 19, 1, 0, 2, 629_179_359_706_172},
		{1, 1 << 51, 1, 1, 1 << 51, 1 << 50},
		{1, 1<<51 + 1, 1, 0, 1 << 51, 1<<50 - 1},
		{1, 1 << 50, 2, 1, 1 << 50, 1 << 50},
		{1, 1 << 51, 2, 0, 1 << 50, 1<<51 - 4},
		{1, math.MaxInt64, MaxBurst, 0, 1 << 19, 1 << 59},
		{3, math.MaxInt64, 1, 0, 1 << 51, 1 << 59},
		{0.3, 1844674407370955162, 1, 0, 1 << 51, 1 << 59},
		{1, 3, 1 << 32, 1, 3, 1 << 50},
		{7, 1 << 40, 1 << 32, 0, 1 << 19, 1 << 59},
		{19, 1 << 10, 1 << 32, 0, 64, 948_126_237_341_156},
	} {
		b, err := NewTokenBucket(c.tokens, c.period, c.burst)
		require.NoError(t, err)
		assert.Equal(t, []uint64{c.exact, c.token, uint64(c.skew)}, []uint64{b.exact, b.token, uint64(b.MaxSkew())}, "%v", c)
		assert.Equal(t, []uint64{c.token * c.burst, c.burst}, []uint64{b.burst, b.Quota().Tokens})
		assert.Equal(t, b.exact == 0, b.round == 1, "%v", c)
		assert.Equal(t, b.exact == 0, b.step == 1, "%v", c)
		assert.EqualValues(t, 1, b.Step())
	}
	// A denominator of more than 64 bits is not cut off.
	slow, err := NewTokenBucket(0.3, 1844674407370955162, 1)
	require.NoError(t, err)
	assert.InEpsilon(t, 1844674407370955162/0.3, float64(slow.Wait(0, slow.Cost(1))), 1e-9)
	batch, err := NewBatchBucket(3, 10*time.Second, 5)
	require.NoError(t, err)
	assert.Equal(t, []uint64{0, 1, 0, 3}, []uint64{batch.exact, batch.token, batch.round, batch.step})
	assert.Equal(t, time.Duration(1<<59), batch.MaxSkew())
}

// TestASharedClock: a second rate uses the clock of the first rate, and may be slower by a millionth because of that.
func TestASharedClock(t *testing.T) {
	first, err := NewTokenBucket(1, time.Second, 5)
	require.NoError(t, err)
	quota, err := first.Share(1_000_001, 2*time.Millisecond, 5)
	require.NoError(t, err, "slower by a millionth")
	assert.Equal(t, Quota{2, 5}, quota)
	_, err = first.Share(1_000_002, 2*time.Millisecond, 5)
	assert.ErrorContains(t, err, "slower by more than a millionth")
	fine, err := NewTokenBucket(16, 17, 5)
	require.NoError(t, err)
	_, err = fine.Share(1, 1<<60+1, 5)
	assert.ErrorContains(t, err, "more than a millionth", "a token of more than 2^64 ticks")
	quota, err = first.Share(1, 1<<50, 2)
	require.NoError(t, err)
	assert.Equal(t, Quota{1 << 50, 2}, quota)
	_, err = first.Share(1, 1<<50, 3)
	assert.ErrorContains(t, err, "want at most 2")
	_, err = first.Share(1, 1<<60, MaxBurst)
	assert.ErrorContains(t, err, "want at most 0")
}

// TestAhead: Ahead raises the limit by the tokens that come back within a wait, short or very long.
func TestAhead(t *testing.T) {
	for _, c := range []struct {
		tokens float64
		period time.Duration
	}{{1, 1}, {2, 3}, {7, 8}, {15, 17}, {16, 17}, {1, time.Second}, {19, 1 << 20}, {math.Pi, time.Hour}} {
		b, err := NewTokenBucket(c.tokens, c.period, 3)
		require.NoError(t, err)
		d := b.Quota().Demand(1)
		assert.Equal(t, d, b.Ahead(0, 0, d))
		for _, nanos := range []int64{0, 1, 1 << 40, math.MaxInt64 - 1, math.MaxInt64} {
			for _, wait := range []time.Duration{1, 2, 1000, 1 << 30} {
				want := d
				end := nanos + min(int64(wait), math.MaxInt64-nanos)
				want.Limit += b.Ticks(end) - b.Ticks(nanos)
				assert.Equal(t, want, b.Ahead(nanos, wait, d), "%v from %d on within %v", c, nanos, wait)
			}
		}
		if b.exact != 0 {
			for _, wait := range []time.Duration{1 << 51, 1 << 58, 1 << 60, 1 << 62, math.MaxInt64} {
				assert.EqualValues(t, uint64(1<<51), b.Ahead(0, wait, d).Limit, "no bucket ever owes more")
			}
		}
	}
}

// TestOverdrawnWithinTheLimitIsNothing: if a key is overdrawn by no more than its limit, there is nothing to wait for.
func TestOverdrawnWithinTheLimitIsNothing(t *testing.T) {
	b, err := NewTokenBucket(1, time.Second, 5)
	require.NoError(t, err)
	const now = int64(1 << 40)
	owing := func(tokens uint64) State { return NewState(Live, 1, uint64(now)+tokens*1e9) }
	for tokens, want := range map[uint64]time.Duration{0: 0, 1: 0, 5: 0, 6: time.Second, 9: 4 * time.Second} {
		assert.Equal(t, want, b.Overdrawn(owing(tokens), now, 5e9), "%d", tokens)
	}
}

// TestTheVersionGoesUpByOne: a claim and a conversion increase the version by one.
func TestTheVersionGoesUpByOne(t *testing.T) {
	var w Word
	claimed, _ := w.Claim(0, 0)
	live, _ := w.Commit(w.Publish(claimed), Live, 7)
	converted, ok := w.Convert(live, Second, 9)
	require.True(t, ok)
	assert.Equal(t, NewState(Second, 2, 9), converted)
	assert.Equal(t, converted, w.Load())
	_, ok = w.Convert(live, Second, 9)
	assert.False(t, ok)
}

// TestPeriods: periods returns how many periods must end until at most a number of tokens are in flight. Tokens taken
// in the current period leave when the next one ends.
func TestPeriods(t *testing.T) {
	for _, c := range []struct{ previous, current, most, want uint64 }{
		{0, 0, 0, 0}, {1, 0, 0, 1}, {0, 1, 0, 2}, {1, 1, 0, 2}, {1, 0, 1, 0}, {0, 1, 1, 0}, {1, 1, 1, 1}, {2, 0, 1, 1},
		{1, 2, 1, 2}, {1, 1, 2, 0}, {2, 2, 3, 1}, {2, 2, 4, 0}, {0, 3, 2, 2},
	} {
		require.Equal(t, c.want, periodsUntil(c.previous, c.current, c.most), c)
	}
}

// TestWhatIsLeftForAWeight: leftFor returns the largest left with previous * left < (tokens + 1) * window, even if one
// of the products needs more than a word.
func TestWhatIsLeftForAWeight(t *testing.T) {
	for _, c := range []struct{ window, previous, tokens, want uint64 }{
		{100, 10, 4, 49}, {100, 11, 4, 45}, {1 << 50, 1 << 15, 1<<14 - 1, 1<<49 - 1}, {1 << 50, 1 << 14, 1<<14 - 1, 1<<50 - 1},
		{67_280_421_310_721, 1 << 19, 274_176, 1 << 45}, // a product is 2^64 + 1
	} {
		w := SlidingWindow{window: c.window}
		require.Equal(t, c.want, w.maxLeft(c.previous, c.tokens), c)
	}
}

// TestWaitForNothing: the wait for 0 ticks is 0, even at an instant in the middle of a tick.
func TestWaitForNothing(t *testing.T) {
	log, err := NewSlidingLog(100, 100, 100*time.Second) // its ticks are two nanoseconds
	require.NoError(t, err)
	for nanos := range int64(4) {
		require.Zero(t, log.Wait(nanos, 0))
	}
}

// TestWhatIsLeftInOtherTokens: under a quota whose tokens cost half as much, twice as many tokens are left.
func TestWhatIsLeftInOtherTokens(t *testing.T) {
	b, err := NewTokenBucket(1, 1000, 5)
	require.NoError(t, err)
	full := Record{State: NewState(Live, 1, b.Full(b.Ticks(7)))}
	require.EqualValues(t, 10, b.Status(full, 7, Demand{0, 5000, 500}).Remaining)
	require.EqualValues(t, 5, b.Status(full, 7, Demand{0, 5000, 1000}).Remaining)
}

// TestWhatIsNoRate: Grant returns an error if the number of tokens is not above 0, however close to 0 it is.
func TestWhatIsNoRate(t *testing.T) {
	b, err := NewTokenBucket(1, time.Second, 5)
	require.NoError(t, err)
	for _, tokens := range []float64{0, -0.5, -1, -1e-300, math.NaN(), math.Inf(-1)} {
		_, ok := b.quickTicks(tokens, time.Second)
		require.False(t, ok, tokens)
		_, err := b.Grant(tokens, time.Second, 1)
		require.Error(t, err, tokens)
	}
}

// TestWhatEveryAlgorithmSaysOfItself: SameUnits returns true if an algorithm is compared with itself, and a receipt of
// every algorithm identifies a take.
func TestWhatEveryAlgorithmSaysOfItself(t *testing.T) {
	bucket, err := NewTokenBucket(1, time.Second, 5)
	require.NoError(t, err)
	fixed, err := NewFixedWindow(5, 5, time.Minute, false)
	require.NoError(t, err)
	sliding, err := NewSlidingWindow(5, 5, time.Minute)
	require.NoError(t, err)
	log, err := NewSlidingLog(5, 5, time.Minute)
	require.NoError(t, err)
	inFlight, err := NewConcurrency(5, 5, time.Minute)
	require.NoError(t, err)
	const at = 1 << 40
	for _, algorithm := range []Algorithm{&bucket, &fixed, &sliding, &log, &inFlight} {
		require.True(t, SameUnits(algorithm, algorithm), "%T", algorithm)
		s := NewState(Live, 1, algorithm.Full(algorithm.Ticks(at)))
		require.True(t, algorithm.Receipt(s, at, 1).IsKnown(), "%T", algorithm)
	}
}
