package atomicbucket_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/reference"
)

const day = 24 * time.Hour

// windows has limits and lengths of windows from the whole range. A fixed window is exact to the nanosecond only if its
// tick is one nanosecond (tickOf returns 1).
var windows = []struct {
	limit  uint64
	window time.Duration
}{
	{1, time.Microsecond},
	{1, 999_983},
	{1, 12 * day},
	{1, atomicbucket.MaxWindow},
	{2, time.Second},
	{3, 365 * day / 7},
	{5, 10 * time.Second},
	{100, time.Minute},
	{1000, time.Hour},
	{4095, time.Microsecond},
	{4095, 14 * time.Minute},
	{16383, time.Minute},
	{16384, time.Minute},
	{1e6, time.Second},
	{1e6, day},
	{1<<23 - 1, time.Minute},
	{1<<24 - 1, 15 * time.Second},
	{1<<24 - 1, atomicbucket.MaxWindow},
	{1e7, time.Hour},
	{1<<30 - 1, 70 * time.Second},
	{1<<30 - 1, atomicbucket.MaxWindow},
	{1 << 32, time.Second},
	{1 << 32, atomicbucket.MaxWindow},
}

// tickOf returns the length of a tick of a fixed window that is not aligned.
func tickOf(algorithm atomicbucket.Algorithm, limit uint64) int64 {
	return int64(algorithm.MaxSkew()) >> (atomicbucket.PayloadBits - 4 - bits.Len64(limit))
}

func fixedTrial(t *testing.T, algorithm atomicbucket.Algorithm, limit uint64, window time.Duration, aligned bool, seed uint64) *trial {
	model := reference.NewFixedWindow(limit, window, aligned)
	return &trial{
		cell: &cell{algorithm: algorithm}, model: model, limit: limit, length: int64(window),
		random: rand.New(rand.NewPCG(seed, limit)), idleAfter: model.ResetAfter, lateWaits: always,
	}
}

// TestFixedWindowAgainstTheModel (I1, I2, I8): a fixed window equals its model to the nanosecond, if the limit and the
// window are not both very large. An aligned window always equals its model.
func TestFixedWindowAgainstTheModel(t *testing.T) {
	exact := 0
	for _, w := range windows {
		for _, aligned := range []bool{false, true} {
			algorithm, err := atomicbucket.NewFixedWindow(w.limit, w.limit, w.window, aligned)
			if err != nil || !aligned && tickOf(&algorithm, w.limit) > 1 {
				continue
			}
			exact++
			t.Run(fmt.Sprintf("%d per %v, aligned %v", w.limit, w.window, aligned), func(t *testing.T) {
				for seed := range trials(24) {
					r := fixedTrial(t, &algorithm, w.limit, w.window, aligned, seed)
					r.run(t, r.random.Int64N(1<<62)>>r.random.IntN(40), 60)
				}
			})
		}
	}
	assert.Greater(t, exact, 20)
}

// TestFixedWindowInLongTicks: a window with longer ticks is never shorter than requested, and at most two ticks longer.
// The end that it reports is exact.
func TestFixedWindowInLongTicks(t *testing.T) {
	rounded := 0
	for _, w := range windows {
		algorithm, err := atomicbucket.NewFixedWindow(w.limit, w.limit, w.window, false)
		if err != nil || tickOf(&algorithm, w.limit) == 1 {
			continue
		}
		rounded++
		requireLongTicks(t, &algorithm, w.limit, w.window, 7)
	}
	assert.Greater(t, rounded, 5)
}

func requireLongTicks(t *testing.T, algorithm *atomicbucket.FixedWindow, limit uint64, window time.Duration, seed uint64) {
	tick := tickOf(algorithm, limit)
	require.Zero(t, tick&(tick-1), "a power of two")
	require.LessOrEqual(t, tick, int64(window)/200_000, "two ticks are not more than a hundred-thousandth")
	random := rand.New(rand.NewPCG(seed, limit))
	longest := int64(0)
	for range 200 {
		at := random.Int64N(1<<62) >> random.IntN(40)
		if random.IntN(3) == 0 {
			at = at/tick*tick + []int64{0, 1, tick - 1}[random.IntN(3)]
		}
		c := newCell(algorithm, at)
		n := 1 + random.Uint64N(limit)
		require.True(t, c.take(at, n))
		demand := algorithm.Quota().Demand(limit - n + 1)
		r := algorithm.Status(c.state.Record(), at, demand)
		require.Equal(t, limit-n, r.Remaining)
		require.Equal(t, r.ResetAfter, r.RetryAfter)
		require.GreaterOrEqual(t, r.ResetAfter, window, "shorter than asked for")
		require.LessOrEqual(t, r.ResetAfter, window+2*time.Duration(tick), "more than two ticks longer")
		longest = max(longest, int64(r.ResetAfter-window))

		end := at + int64(r.ResetAfter)
		require.False(t, c.wouldTake(end-1, demand.Cost))
		require.False(t, algorithm.Idle(c.state, algorithm.Ticks(end-1)))
		require.True(t, algorithm.Idle(c.state, algorithm.Ticks(end)))
		if limit > n { // taking the rest does not change the end of the window
			require.True(t, c.take(end-1, limit-n))
			require.EqualValues(t, 1, algorithm.Status(c.state.Record(), end-1, demand).ResetAfter)
		}
		require.True(t, c.take(end, limit))
		require.False(t, c.wouldTake(max(end-int64(algorithm.MaxSkew()), 0), 1))
	}
	require.Positive(t, longest)
}

// TestFixedWindowByHeart: a window begins with the key's first request, and the next one with the first request after
// its end. Aligned windows begin at multiples of their length.
func TestFixedWindowByHeart(t *testing.T) {
	algorithm, err := atomicbucket.NewFixedWindow(3, 3, time.Minute, false)
	require.NoError(t, err)
	const minute = int64(time.Minute)
	at := 10*minute + 17
	c := newCell(&algorithm, at)
	require.True(t, c.take(at, 2))
	assert.Equal(t, atomicbucket.Status{Remaining: 1, RetryAfter: time.Minute - 5, ResetAfter: time.Minute - 5}, algorithm.Status(c.state.Record(), at+5, algorithm.Quota().Demand(2)))
	assert.False(t, c.take(at+minute-1, 2))
	assert.True(t, c.take(at+minute-1, 1))
	assert.True(t, c.take(at+minute+7, 1), "the next one")
	assert.Equal(t, atomicbucket.Status{Remaining: 2, ResetAfter: time.Minute}, algorithm.Status(c.state.Record(), at+minute+7, algorithm.Quota().Demand(1)))
	c.refund(at+minute+8, 3)
	assert.Equal(t, atomicbucket.Status{Remaining: 3}, algorithm.Status(c.state.Record(), at+minute+8, algorithm.Quota().Demand(3)), "nothing is left of it")

	algorithm, err = atomicbucket.NewFixedWindow(3, 3, time.Minute, true)
	require.NoError(t, err)
	c = newCell(&algorithm, at)
	require.True(t, c.take(at, 3))
	assert.False(t, c.take(11*minute-1, 1))
	assert.True(t, c.take(11*minute, 3))
}

// TestWindowsAtTheEndOfTime: a wait until after the last instant is the longest Duration.
func TestWindowsAtTheEndOfTime(t *testing.T) {
	fixed, err := atomicbucket.NewFixedWindow(3, 3, time.Hour, false)
	require.NoError(t, err)
	aligned, err := atomicbucket.NewFixedWindow(3, 3, time.Hour, true)
	require.NoError(t, err)
	batch, err := atomicbucket.NewBatchBucket(1, time.Hour, 3)
	require.NoError(t, err)
	for _, algorithm := range []atomicbucket.Algorithm{&fixed, &aligned, &batch} {
		for _, at := range []int64{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - int64(time.Minute)} {
			c := newCell(algorithm, at)
			require.True(t, c.take(at, 3))
			require.False(t, c.wouldTake(math.MaxInt64, 1))
			require.Equal(t, atomicbucket.Status{RetryAfter: math.MaxInt64, ResetAfter: math.MaxInt64}, algorithm.Status(c.state.Record(), at, algorithm.Quota().Demand(1)))
		}
	}
	sliding, err := atomicbucket.NewSlidingWindow(3, 3, time.Hour)
	require.NoError(t, err)
	c := newCell(&sliding, math.MaxInt64)
	require.True(t, c.take(math.MaxInt64, 3))
	require.False(t, c.wouldTake(math.MaxInt64, 1))
	r := sliding.Status(c.state.Record(), math.MaxInt64, sliding.Quota().Demand(1))
	require.Less(t, time.Duration(0), r.ResetAfter)
	require.Less(t, r.ResetAfter, r.RetryAfter)
}

func TestFixedWindowOnTheCircle(t *testing.T) {
	for _, w := range windows {
		for _, aligned := range []bool{false, true} {
			if algorithm, err := atomicbucket.NewFixedWindow(w.limit, w.limit, w.window, aligned); err == nil {
				requireCircle(t, &algorithm, w.limit, int64(w.window))
			}
		}
	}
}

// TestFixedWindowHasRoomForTiers: the count has room for the higher limits of other tiers.
func TestFixedWindowHasRoomForTiers(t *testing.T) {
	for _, aligned := range []bool{false, true} {
		algorithm, err := atomicbucket.NewFixedWindow(3, 1000, time.Minute, aligned)
		require.NoError(t, err)
		c := newCell(&algorithm, 1e18)
		paid := atomicbucket.Demand{Cost: 999, Limit: 1000, Token: 1}
		payload, ok := algorithm.Take(c.state.Record(), algorithm.Ticks(1e18), paid)
		require.True(t, ok)
		c.write(1e18, payload)
		assert.EqualValues(t, 999, algorithm.Debt(c.state.Record(), algorithm.Ticks(1e18)))
		assert.EqualValues(t, 1, algorithm.Status(c.state.Record(), 1e18, paid).Remaining)
		assert.Zero(t, algorithm.Status(c.state.Record(), 1e18, algorithm.Quota().Demand(1)).Remaining, "the lower tier has less than nothing")
		assert.False(t, c.take(1e18, 1))
	}
}

var mostInError = regexp.MustCompile(`want at most (\d+) tokens`)

// requireStatedMost checks the limit that an error names as the highest possible one. This limit must be accepted, and
// the next higher one must not.
func requireStatedMost(t *testing.T, err error, limit uint64, accepts func(limit uint64) error) {
	t.Helper()
	stated := mostInError.FindStringSubmatch(err.Error())
	require.NotNil(t, stated, "%v", err)
	most, _ := strconv.ParseUint(stated[1], 10, 64)
	require.Less(t, most, limit, "%v", err)
	require.NoError(t, accepts(most), "said by: %v", err)
	require.Error(t, accepts(most+1), "said by: %v", err)
}

func TestWindowsRefuseNumbersOutOfRange(t *testing.T) {
	for _, c := range []struct {
		limit, most uint64
		window      time.Duration
		want        string
	}{
		{0, 0, time.Second, "limit of 0 tokens every 1s: want 1 to "},
		{0, 5, time.Second, "limit of 0 tokens every 1s: want 1 to "},
		{6, 5, time.Second, "limit of 6 tokens every 1s: want 1 to 5 tokens"},
		{1<<32 + 1, 1<<32 + 1, time.Hour, "limit of 4294967297 tokens every 1h0m0s: want 1 to "},
		{math.MaxUint64, math.MaxUint64, time.Hour, "want 1 to "},
		{5, 1<<32 + 1, time.Hour, "limit of 5 tokens every 1h0m0s: want 1 to "},
		{5, 5, 0, "limit of 5 tokens every 0s: want a window of 1µs to 8760h0m0s"},
		{5, 5, 999, "limit of 5 tokens every 999ns: want a window of 1µs to 8760h0m0s"},
		{5, 5, -time.Second, "limit of 5 tokens every -1s: want a window of"},
		{5, 5, atomicbucket.MaxWindow + 1, "limit of 5 tokens every 8760h0m0.000000001s: want a window of"},
		{5, 5, math.MaxInt64, "want a window of"},
		{5, 5, math.MinInt64, "want a window of"},
	} {
		for _, aligned := range []bool{false, true} {
			_, err := atomicbucket.NewFixedWindow(c.limit, c.most, c.window, aligned)
			assert.ErrorContains(t, err, c.want)
		}
		_, err := atomicbucket.NewSlidingWindow(c.limit, c.most, c.window)
		assert.ErrorContains(t, err, c.want)
	}
	_, err := atomicbucket.NewSlidingWindow(1<<24, 1<<24, time.Hour)
	assert.ErrorContains(t, err, "limit of 16777216 tokens every 1h0m0s: want 1 to 16777215 tokens")
}

// TestWindowsSayWhichLimitWouldDo: a limit that is too large for a short window is refused with an error that names the
// largest possible limit.
func TestWindowsSayWhichLimitWouldDo(t *testing.T) {
	kinds := map[string]func(limit uint64, window time.Duration) error{
		"fixed": func(limit uint64, window time.Duration) error {
			_, err := atomicbucket.NewFixedWindow(limit, limit, window, false)
			return err
		},
		"aligned": func(limit uint64, window time.Duration) error {
			_, err := atomicbucket.NewFixedWindow(limit, limit, window, true)
			return err
		},
		"sliding": func(limit uint64, window time.Duration) error {
			_, err := atomicbucket.NewSlidingWindow(limit, limit, window)
			return err
		},
	}
	for name, accepts := range kinds {
		random, highest := rand.New(rand.NewPCG(1, 2)), uint64(atomicbucket.MaxLimit)
		if name == "sliding" {
			highest = atomicbucket.MaxCount
		}
		refused := 0
		for i := range 3000 {
			window := time.Duration(random.Int64N(int64(atomicbucket.MaxWindow))>>random.IntN(40)) + time.Microsecond
			limit := highest - random.Uint64N(highest)>>random.IntN(32)
			if i < 24 {
				window, limit = time.Microsecond<<(2*i), highest
			}
			if window > atomicbucket.MaxWindow {
				continue
			}
			require.NoError(t, accepts(1, window), "a limit of 1 always is")
			if err := accepts(limit, window); err != nil {
				refused++
				require.ErrorContains(t, err, fmt.Sprintf("limit of %d tokens every %v: ", limit, window))
				requireStatedMost(t, err, limit, func(limit uint64) error { return accepts(limit, window) })
			}
		}
		assert.Greater(t, refused, 10, name)
	}
	// The documentation of the policies names these numbers as possible.
	assert.NoError(t, kinds["fixed"](1_000_000, time.Second))
	assert.NoError(t, kinds["fixed"](8_000_000, time.Second))
	assert.NoError(t, kinds["sliding"](1<<20-1, 100*time.Millisecond))
	assert.NoError(t, kinds["sliding"](atomicbucket.MaxCount, 15*time.Second))
	assert.NoError(t, kinds["aligned"](atomicbucket.MaxLimit, time.Millisecond))
}

// FuzzWindows tries windows, and buckets that are refilled in batches, with any numbers. Either the numbers are refused
// with a reason, or all results equal the model.
func FuzzWindows(f *testing.F) {
	f.Add(uint8(0), uint64(100), int64(time.Minute), uint64(1))
	f.Fuzz(func(t *testing.T, kind uint8, limit uint64, window int64, seed uint64) {
		length := time.Duration(window)
		switch kind % 4 {
		case 0, 1:
			aligned := kind%4 == 1
			algorithm, err := atomicbucket.NewFixedWindow(limit, limit, length, aligned)
			if err != nil {
				requireReason(t, err, limit, window, atomicbucket.MaxLimit, func(limit uint64) error {
					_, err := atomicbucket.NewFixedWindow(limit, limit, length, aligned)
					return err
				})
				return
			}
			if !aligned && tickOf(&algorithm, limit) > 1 {
				requireLongTicks(t, &algorithm, limit, length, seed)
			} else {
				fixedTrial(t, &algorithm, limit, length, aligned, seed).run(t, int64(seed>>2), 60)
			}
			requireCircle(t, &algorithm, limit, window)
		case 2:
			algorithm, err := atomicbucket.NewSlidingWindow(limit, limit, length)
			if err != nil {
				requireReason(t, err, limit, window, atomicbucket.MaxCount, func(limit uint64) error {
					_, err := atomicbucket.NewSlidingWindow(limit, limit, length)
					return err
				})
				return
			}
			slidingTrial(t, &algorithm, limit, length, seed).run(t, int64(seed>>2), 60)
			requireCircle(t, &algorithm, limit, window)
		case 3:
			burst := 1 + seed%atomicbucket.MaxBurst
			algorithm, err := atomicbucket.NewBatchBucket(limit, length, burst)
			if window < 1 || limit < 1 || limit > atomicbucket.MaxBurst || limit > uint64(window) {
				require.ErrorContains(t, err, fmt.Sprintf("refill of %d tokens every %v: want", limit, length))
				return
			}
			require.NoError(t, err)
			batchTrial(t, limit, length, burst, seed).run(t, int64(seed>>2), 60)
			requireCircle(t, &algorithm, burst, window)
		}
	})
}

// requireReason checks that there is a reason to refuse these numbers, and that the error states it.
func requireReason(t *testing.T, err error, limit uint64, window int64, highest uint64, accepts func(limit uint64) error) {
	require.ErrorContains(t, err, fmt.Sprintf("limit of %d tokens every %v: ", limit, time.Duration(window)))
	switch {
	case limit < 1 || limit > highest:
		require.ErrorContains(t, err, "want 1 to ")
	case window < 1000 || window > int64(atomicbucket.MaxWindow):
		require.ErrorContains(t, err, "want a window of 1µs to 8760h0m0s")
	default:
		requireStatedMost(t, err, limit, accepts)
	}
}

// TestSeedsOfFuzzWindows: the seeds of FuzzWindows are in the repository.
func TestSeedsOfFuzzWindows(t *testing.T) {
	seeds, err := os.ReadDir(filepath.Join("testdata", "fuzz", "FuzzWindows"))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(seeds), 12)
}
