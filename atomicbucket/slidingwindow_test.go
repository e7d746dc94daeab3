package atomicbucket_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/reference"
)

func slidingTrial(t *testing.T, algorithm atomicbucket.Algorithm, limit uint64, window time.Duration, seed uint64) *trial {
	model := reference.NewSlidingWindow(limit, window)
	r := &trial{
		cell: &cell{algorithm: algorithm}, model: model, limit: limit, length: int64(window),
		random:    rand.New(rand.NewPCG(seed, limit)),
		idleAfter: func(nanos int64) int64 { return model.RetryAfter(nanos, limit) },
	}
	// If the record is in a later window of the clock than the call, waits are not exact.
	r.lateWaits = func(nanos int64) bool { return nanos/int64(window) >= r.wrote/int64(window) }
	return r
}

// TestSlidingWindowAgainstTheModel (I1, I2, I8): for any limit and window, the two counters equal the counters of the
// model at every nanosecond.
func TestSlidingWindowAgainstTheModel(t *testing.T) {
	tried := 0
	for _, w := range windows {
		algorithm, err := atomicbucket.NewSlidingWindow(w.limit, w.limit, w.window)
		if err != nil {
			continue
		}
		tried++
		t.Run(fmt.Sprintf("%d per %v", w.limit, w.window), func(t *testing.T) {
			for seed := range trials(15) {
				r := slidingTrial(t, &algorithm, w.limit, w.window, seed)
				r.run(t, r.random.Int64N(1<<62)>>r.random.IntN(40), 60)
			}
		})
	}
	assert.Greater(t, tried, 12)
}

// TestSlidingWindowByHeart: the estimate is floor(previous * share of the previous window still inside) + current. The
// numbers are the example of the documents: 80 tokens in the last minute, 30 in this minute, of which a quarter is
// over.
func TestSlidingWindowByHeart(t *testing.T) {
	algorithm, err := atomicbucket.NewSlidingWindow(100, 100, time.Minute)
	require.NoError(t, err)
	const minute = int64(time.Minute)
	at := 1000 * minute
	c := newCell(&algorithm, at)
	require.True(t, c.take(at+minute/2, 80))
	require.True(t, c.take(at+minute*5/4, 30), "60 and 30 are 90")
	now := at + minute*5/4
	assert.EqualValues(t, 90, algorithm.Debt(c.state.Record(), algorithm.Ticks(now)))
	assert.Equal(t, atomicbucket.Status{Remaining: 10, ResetAfter: 45 * time.Second}, algorithm.Status(c.state.Record(), now, algorithm.Quota().Demand(10)))
	// 11 tokens fit when floor(80 * left / 60 s) is 59, which is when left is below 45 s.
	assert.Equal(t, time.Nanosecond, algorithm.Status(c.state.Record(), now, algorithm.Quota().Demand(11)).RetryAfter)
	// 70 tokens fit when floor(80 * left / 60 s) is 0, which is when left is below 0.75 s.
	assert.Equal(t, 44250*time.Millisecond+1, algorithm.Status(c.state.Record(), now, algorithm.Quota().Demand(70)).RetryAfter)
	// 71 tokens fit only in the next window, when floor(30 * left / 60 s) is 29: as soon as the window has begun.
	assert.Equal(t, 45*time.Second+1, algorithm.Status(c.state.Record(), now, algorithm.Quota().Demand(71)).RetryAfter)
	assert.Equal(t, 45*time.Second+58*time.Second+1, algorithm.Status(c.state.Record(), now, algorithm.Quota().Demand(100)).RetryAfter)
	assert.EqualValues(t, 103*time.Second+1, algorithm.UntilIdle(c.state, algorithm.Ticks(now)))
	for range 1000 {
		require.False(t, c.take(now, 11))
	}
	assert.True(t, c.take(now, 10), "refused requests count for nothing")
	c.refund(now, 15)
	assert.EqualValues(t, 85, algorithm.Debt(c.state.Record(), algorithm.Ticks(now)), "from the present window")
	c.refund(now, 65)
	assert.EqualValues(t, 30, algorithm.Debt(c.state.Record(), algorithm.Ticks(now)), "25 of it, and 40 of the 80 before")
	c.refund(now, 100)
	assert.True(t, algorithm.Idle(c.state, algorithm.Ticks(now)))
	assert.Equal(t, atomicbucket.Status{Remaining: 100}, algorithm.Status(c.state.Record(), now, algorithm.Quota().Demand(1)))
}

// TestSlidingWindowRetryAfterIsTheFirstMoment: RetryAfter ends at the first moment at which the estimate admits the
// request, in this window or the next, even if the limit is higher than the number of nanoseconds in the window.
func TestSlidingWindowRetryAfterIsTheFirstMoment(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for _, limit := range []uint64{1, 2, 7, 999, 1000, 1001, 4095} {
		algorithm, err := atomicbucket.NewSlidingWindow(limit, limit, time.Microsecond)
		require.NoError(t, err)
		for range 20 {
			at := int64(1e15) + random.Int64N(1000)
			c := newCell(&algorithm, at)
			c.take(at, 1+random.Uint64N(limit))
			at += random.Int64N(1500)
			c.take(at, 1+random.Uint64N(limit))
			n := 1 + random.Uint64N(limit)
			if random.IntN(3) == 0 {
				n = limit
			}
			first := int64(0)
			for !c.wouldTake(at+first, n) {
				first++
			}
			require.EqualValues(t, first, algorithm.Status(c.state.Record(), at, algorithm.Quota().Demand(n)).RetryAfter, "%d of %d", n, limit)
			rest := int64(0)
			for !algorithm.Idle(c.state, algorithm.Ticks(at+rest)) {
				rest++
			}
			require.EqualValues(t, rest, algorithm.UntilIdle(c.state, algorithm.Ticks(at)))
		}
	}
}

func TestSlidingWindowOnTheCircle(t *testing.T) {
	for _, w := range windows {
		if algorithm, err := atomicbucket.NewSlidingWindow(w.limit, w.limit, w.window); err == nil {
			requireCircle(t, &algorithm, w.limit, int64(w.window))
		}
	}
}

// TestSlidingWindowHasRoomForTiers: the counts have room for the higher limits of other tiers.
func TestSlidingWindowHasRoomForTiers(t *testing.T) {
	algorithm, err := atomicbucket.NewSlidingWindow(3, 1000, time.Minute)
	require.NoError(t, err)
	paid := atomicbucket.Demand{Cost: 1000, Limit: 1000, Token: 1}
	at := 1000 * int64(time.Minute)
	c := newCell(&algorithm, at)
	payload, ok := algorithm.Take(c.state.Record(), algorithm.Ticks(at), paid)
	require.True(t, ok)
	c.write(at, payload)
	next := at + int64(time.Minute)*3/2 // 500 of the 1000 still count
	paid.Cost = 500
	payload, ok = algorithm.Take(c.state.Record(), algorithm.Ticks(next), paid)
	require.True(t, ok)
	c.write(next, payload)
	assert.EqualValues(t, 1000, algorithm.Debt(c.state.Record(), algorithm.Ticks(next)))
	assert.Zero(t, algorithm.Status(c.state.Record(), next, algorithm.Quota().Demand(1)).Remaining, "the lower tier has less than nothing")
	assert.False(t, c.take(next, 1))
	assert.EqualValues(t, 30*time.Second+59880*time.Millisecond+1, algorithm.Status(c.state.Record(), next, algorithm.Quota().Demand(3)).RetryAfter, "when floor(500 * left / 60 s) is 0")
}
