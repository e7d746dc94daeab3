package atomicbucket_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/reference"
)

// A cell is the word of one key. As a table does, the test at times forgets the word while the key is idle.
type cell struct {
	algorithm atomicbucket.Algorithm
	state     atomicbucket.State
	since     int64 // when the cell was made or last forgotten; no call has an earlier time
	wrote     int64 // the latest time at which the cell was written
}

func newCell(algorithm atomicbucket.Algorithm, nanos int64) *cell {
	c := &cell{algorithm: algorithm}
	c.forget(nanos)
	return c
}

func (c *cell) forget(nanos int64) {
	c.write(nanos, c.algorithm.Full(c.algorithm.Ticks(nanos)))
	c.since = nanos
}

func (c *cell) write(nanos int64, payload uint64) {
	c.state, c.wrote = atomicbucket.NewState(atomicbucket.Live, 5, payload), max(c.wrote, nanos)
}

func (c *cell) wouldTake(nanos int64, n uint64) bool {
	_, ok := c.algorithm.Take(c.state.Record(), c.algorithm.Ticks(nanos), c.algorithm.Quota().Demand(n))
	return ok
}

func (c *cell) take(nanos int64, n uint64) bool {
	payload, ok := c.algorithm.Take(c.state.Record(), c.algorithm.Ticks(nanos), c.algorithm.Quota().Demand(n))
	if ok {
		c.write(nanos, payload)
	}
	return ok
}

func (c *cell) refund(nanos int64, n uint64) {
	var at atomicbucket.Word
	claimed, _ := at.Claim(0, 0)
	live, _ := at.Commit(at.Publish(claimed), atomicbucket.Live, c.state.Payload())
	now := c.algorithm.Ticks(nanos)
	after, _ := c.algorithm.Refund(live.Record(), atomicbucket.Return{Now: now, Latest: now, Demand: c.algorithm.Quota().Demand(n)}, &at)
	c.write(nanos, after.Payload())
}

// A trial makes the same takes and refunds in a cell and in a model. It compares the two after each of them.
type trial struct {
	*cell
	model  reference.Limit
	limit  uint64
	length int64 // of a window, or of the interval between two refills
	random *rand.Rand
	// idleAfter returns the time from an instant until the model is idle.
	idleAfter func(nanos int64) int64
	// lateWaits reports whether waits are exact for a call at the time nanos, which may be earlier than the cell's last
	// change.
	lateWaits func(nanos int64) bool
}

// endOfTrial is the time after which a trial makes no step, so that no window or wait ends after 2262.
const endOfTrial = math.MaxInt64 - 1<<58

// run makes a number of calls, the first at the instant nanos.
func (r *trial) run(t *testing.T, nanos int64, steps int) {
	r.cell = newCell(r.algorithm, nanos)
	for range steps {
		n := 1 + r.random.Uint64N(r.limit)
		if r.random.IntN(3) > 0 {
			n = 1 + r.random.Uint64N(min(r.limit, 3))
		}
		at := nanos
		if r.random.IntN(6) == 0 { // a late call
			at = max(nanos-r.random.Int64N(1+min(r.length*3, int64(r.algorithm.MaxSkew()), 1<<58)), r.since)
		}
		r.requireNoGain(t, at, nanos, n)
		switch r.random.IntN(8) {
		case 0:
			if !r.model.Idle(at) { // an idle record has nothing to give back
				r.refund(at, n)
				r.model.Refund(at, n)
			}
		case 1:
			r.refused(t, at)
		default:
			want := r.model.Take(at, n)
			require.Equal(t, want, r.take(at, n), "%d tokens at %d", n, at)
		}
		r.requireSame(t, at, n)
		r.requireSame(t, nanos, n)
		wait := r.wait(nanos, n)
		if wait > endOfTrial-nanos {
			return
		}
		nanos += wait
		r.comeRound(t, nanos)
	}
}

// refused requests one token more than is left. The request must be refused, and the record must stay as it is,
// whatever payload Take returns.
func (r *trial) refused(t *testing.T, at int64) {
	if left := r.model.Remaining(at); left < r.limit {
		before := r.state
		require.False(t, r.take(at, left+1))
		require.Equal(t, before, r.state)
	}
}

// requireNoGain (I8) requires that a late call gains nothing: if it is admitted, the same call at the latest time is
// admitted, too.
func (r *trial) requireNoGain(t *testing.T, at, nanos int64, n uint64) {
	if r.wouldTake(at, n) {
		require.True(t, r.wouldTake(nanos, n), "I8: %d tokens at %d, but not at %d", n, at, nanos)
	}
}

// requireSame compares everything that the algorithm reports about the cell with what the model reports.
func (r *trial) requireSame(t *testing.T, at int64, n uint64) {
	now, demand := r.algorithm.Ticks(at), r.algorithm.Quota().Demand(n)
	got := r.algorithm.Status(r.state.Record(), at, demand)
	left := r.model.Remaining(at)
	require.Equal(t, left, got.Remaining, "remaining at %d", at)
	require.Equal(t, n <= left, r.wouldTake(at, n), "%d of %d tokens at %d", n, left, at)
	require.GreaterOrEqual(t, r.algorithm.Tokens(r.algorithm.Debt(r.state.Record(), now)), r.limit-left)
	if left > 0 {
		require.Equal(t, r.limit-left, r.algorithm.Tokens(r.algorithm.Debt(r.state.Record(), now)), "debt at %d", at)
	}
	require.Equal(t, r.model.Idle(at), r.algorithm.Idle(r.state, now), "idle at %d", at)
	nothing := r.algorithm.Status(r.state.Record(), at, r.algorithm.Quota().Demand(0))
	require.Zero(t, nothing.RetryAfter, "nothing is lacking to a demand for nothing")
	require.Zero(t, r.algorithm.Shortfall(r.state.Record(), now, r.algorithm.Quota().Demand(0)))
	require.Equal(t, got.Remaining, nothing.Remaining)

	if !r.lateWaits(at) {
		return
	}
	retry := r.model.RetryAfter(at, n)
	require.EqualValues(t, retry, got.RetryAfter, "RetryAfter of %d at %d", n, at)
	require.EqualValues(t, retry, r.algorithm.Wait(at, r.algorithm.Shortfall(r.state.Record(), now, demand)))
	require.EqualValues(t, r.model.ResetAfter(at), got.ResetAfter, "ResetAfter at %d", at)
	require.EqualValues(t, r.idleAfter(at), r.algorithm.Wait(at, r.algorithm.UntilIdle(r.state, now)), "rest at %d", at)
	if retry > 0 && retry < 1<<58 {
		require.True(t, r.wouldTake(at+retry, n), "%d tokens after %d ns, as told", n, retry)
		require.False(t, r.wouldTake(at+retry-1, n), "%d tokens 1 ns before %d", n, retry)
	}
}

// wait returns a random time until the next step. That step is at or near an edge (such as the end of a wait or of a
// window), in this window or the next one, or far away.
func (r *trial) wait(nanos int64, n uint64) int64 {
	far := min(r.length, 1<<57)
	switch r.random.IntN(10) {
	case 0, 1:
		return 0
	case 2:
		return max(min(r.model.RetryAfter(nanos, n), far*2)+r.random.Int64N(3)-1, 0)
	case 3:
		return max(min(r.model.ResetAfter(nanos), far*2)+r.random.Int64N(3)-1, 0)
	case 4:
		return max(min(r.idleAfter(nanos), far*2)+r.random.Int64N(3)-1, 0)
	case 5:
		return max(far-nanos%far+r.random.Int64N(3)-1, 0)
	case 6:
		return r.random.Int64N(far * 2)
	case 7:
		if r.random.IntN(10) == 0 {
			return min(int64(r.algorithm.MaxSkew()), 1<<57) * r.random.Int64N(12)
		}
	}
	return r.random.Int64N(far)
}

// comeRound makes the cell forget an idle record at a random time, but no later than 12 skews after it was written, as
// a table does. Until then, the record must be read as idle.
func (r *trial) comeRound(t *testing.T, nanos int64) {
	_, hi := bits.Mul64(uint64(r.algorithm.MaxSkew()), 12)
	if r.model.Idle(nanos) && (r.random.IntN(8) == 0 || uint64(nanos-r.wrote) > min(hi, math.MaxInt64)) {
		require.True(t, r.algorithm.Idle(r.state, r.algorithm.Ticks(nanos)) || uint64(nanos-r.wrote) > min(hi, math.MaxInt64))
		r.forget(nanos)
		r.model.Reset()
	}
	require.LessOrEqual(t, uint64(nanos-r.wrote), min(hi, math.MaxInt64))
}

func always(int64) bool { return true }

func trials(n uint64) uint64 {
	if testing.Short() {
		return n / 5
	}
	return n
}

// batches has test cases for buckets that are refilled in batches, from one end of the allowed ranges to the other.
var batches = []struct {
	refill   uint64
	interval time.Duration
	burst    uint64
}{
	{10, time.Second, 100},
	{1, time.Second, 1},
	{1, 1, 1},
	{1, 1, 1 << 32},
	{1000, 1000, 3},
	{3, time.Microsecond, 1 << 32},
	{2, 3, 5},
	{1e6, time.Second, 1e6},
	{1e7, time.Hour, 1e7},
	{7, 365 * 24 * time.Hour, 10},
	{1, math.MaxInt64, 4},
	{1 << 32, 1 << 32, 1 << 32},
	{1 << 32, 1<<40 + 1, 1},
	{1<<32 - 1, 1 << 32, 1<<32 - 5},
	{11, 999_983, 97},
}

func batchTrial(t *testing.T, refill uint64, interval time.Duration, burst, seed uint64) *trial {
	algorithm, err := atomicbucket.NewBatchBucket(refill, interval, burst)
	require.NoError(t, err)
	model := reference.NewBatchRefill(refill, interval, burst)
	return &trial{
		cell: &cell{algorithm: &algorithm}, model: model, limit: burst, length: int64(interval),
		random: rand.New(rand.NewPCG(seed, burst)), idleAfter: model.ResetAfter, lateWaits: always,
	}
}

// TestBatchBucketAgainstTheModel (I1, I2, I8): a bucket that is refilled in batches equals its model to the nanosecond.
// The model gets its tokens at the multiples of the interval.
func TestBatchBucketAgainstTheModel(t *testing.T) {
	for _, b := range batches {
		t.Run(fmt.Sprintf("%d per %v burst %d", b.refill, b.interval, b.burst), func(t *testing.T) {
			for seed := range trials(30) {
				r := batchTrial(t, b.refill, b.interval, b.burst, seed)
				r.run(t, r.random.Int64N(1<<62)>>r.random.IntN(40), 60)
			}
		})
	}
}

// TestBatchBucketRefills compares two buckets with hand-computed numbers. All tokens of a refill come at once, at the
// multiples of the interval, and tokens that do not fit are lost.
func TestBatchBucketRefills(t *testing.T) {
	algorithm, err := atomicbucket.NewBatchBucket(10, time.Second, 100)
	require.NoError(t, err)
	c := newCell(&algorithm, 5_300_000_000)
	require.True(t, c.take(5_300_000_000, 100))
	assert.Equal(t, atomicbucket.Status{RetryAfter: 700 * time.Millisecond, ResetAfter: 9700 * time.Millisecond}, algorithm.Status(c.state.Record(), 5_300_000_000, algorithm.Quota().Demand(10)))
	assert.False(t, c.take(5_999_999_999, 1))
	assert.True(t, c.take(6_000_000_000, 10))
	assert.False(t, c.take(6_000_000_001, 1))
	assert.True(t, c.take(8_999_999_999, 20))
	assert.False(t, c.take(8_999_999_999, 1))
	c.refund(9_000_000_000, 95)
	assert.EqualValues(t, 100, algorithm.Status(c.state.Record(), 9_000_000_000, algorithm.Quota().Demand(0)).Remaining, "no more than fits")
}

// TestBatchBucketPollingKeepsTheRemainder: a client that polls more often than once per interval does not lose a part
// of the interval. (A bucket that sets lastRefill = now at every check would lose it.)
func TestBatchBucketPollingKeepsTheRemainder(t *testing.T) {
	algorithm, err := atomicbucket.NewBatchBucket(10, time.Second, 10)
	require.NoError(t, err)
	nanos := int64(1e18 + 5e8)
	c, admitted := newCell(&algorithm, nanos), 0
	require.True(t, c.take(nanos, 10))
	for range 10_000 { // ten seconds, with a thousand polls per second
		nanos += 1e6
		if c.take(nanos, 1) {
			admitted++
		}
	}
	assert.Equal(t, 100, admitted)
}

// TestBatchBucketOnTheCircle: records are read correctly when the ticks in the payload wrap around, if clocks differ by
// at most the allowed time and records are not too old.
func TestBatchBucketOnTheCircle(t *testing.T) {
	for _, b := range batches {
		algorithm, err := atomicbucket.NewBatchBucket(b.refill, b.interval, b.burst)
		require.NoError(t, err)
		requireCircle(t, &algorithm, b.burst, max(int64(b.interval), 1))
	}
}

// requireCircle checks how a record is read from which everything was taken. It is empty from MaxSkew before the write
// until it is idle, and then idle until 12 MaxSkew after the write.
func requireCircle(t *testing.T, algorithm atomicbucket.Algorithm, limit uint64, length int64) {
	skew := int64(algorithm.MaxSkew())
	require.GreaterOrEqual(t, skew, int64(30*time.Second))
	require.LessOrEqual(t, skew, int64(1<<59))
	random := rand.New(rand.NewPCG(limit, uint64(length)))
	for range 20 {
		wrote := skew + random.Int64N(1<<61-1)>>random.IntN(8)
		c := newCell(algorithm, wrote)
		require.True(t, c.take(wrote, limit))
		rest := int64(algorithm.Wait(wrote, algorithm.UntilIdle(c.state, algorithm.Ticks(wrote))))
		require.Positive(t, rest)
		for _, before := range []int64{0, 1, length, skew / 2, skew - 1, skew} {
			if before > skew {
				continue
			}
			at := wrote - before
			require.False(t, c.wouldTake(at, 1), "%d ns before it was written, with a skew of %d", before, skew)
			require.Equal(t, limit, algorithm.Tokens(algorithm.Debt(c.state.Record(), algorithm.Ticks(wrote))))
			require.False(t, algorithm.Idle(c.state, algorithm.Ticks(at)))
		}
		for part := int64(0); part <= 48; part++ {
			hi, after := bits.Mul64(uint64(skew/4), uint64(part))
			if hi > 0 || after > uint64(math.MaxInt64-wrote) {
				break
			}
			for _, at := range []int64{wrote + int64(after) - 1, wrote + int64(after)} {
				if at >= wrote && at-wrote < rest {
					require.False(t, algorithm.Idle(c.state, algorithm.Ticks(at)), "%d ns after it was written", at-wrote)
				}
				if at-wrote >= rest {
					require.True(t, algorithm.Idle(c.state, algorithm.Ticks(at)), "%d ns after it was written, with a skew of %d", at-wrote, skew)
					require.Zero(t, algorithm.UntilIdle(c.state, algorithm.Ticks(at)))
					require.True(t, c.wouldTake(at, limit))
				}
			}
		}
	}
}

func TestBatchBucketRefusesNumbersOutOfRange(t *testing.T) {
	const ofRefill = "want 1 to 4294967296 tokens, and at most one for each nanosecond of the interval"
	for _, c := range []struct {
		refill   uint64
		interval time.Duration
		burst    uint64
		want     string
	}{
		{0, time.Second, 1, "refill of 0 tokens every 1s: " + ofRefill},
		{1<<32 + 1, time.Hour, 1, "refill of 4294967297 tokens every 1h0m0s: " + ofRefill},
		{math.MaxUint64, math.MaxInt64, 1, ofRefill},
		{1001, time.Microsecond, 1, "refill of 1001 tokens every 1µs: " + ofRefill},
		{1, 0, 1, "refill of 1 tokens every 0s: " + ofRefill},
		{1, -time.Second, 1, "refill of 1 tokens every -1s: " + ofRefill},
		{1, math.MinInt64, 1, ofRefill},
		{1, time.Second, 0, "burst of 0 tokens: want 1 to 4294967296"},
		{1, time.Second, 1<<32 + 1, "burst of 4294967297 tokens: want 1 to 4294967296"},
	} {
		_, err := atomicbucket.NewBatchBucket(c.refill, c.interval, c.burst)
		assert.ErrorContains(t, err, c.want)
	}
	for _, b := range batches { // the ends of the ranges are allowed
		_, err := atomicbucket.NewBatchBucket(b.refill, b.interval, b.burst)
		assert.NoError(t, err)
	}
}
