package atomicbucket_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/reference"
)

// converted returns the cell after a change to another algorithm. The limit of that algorithm is the only limit that
// the key may have after the change. No tokens were granted for a time later than latest.
func (c *cell) converted(to atomicbucket.Algorithm, nanos, latest int64) *cell {
	after := &cell{algorithm: to, since: nanos}
	was, is := c.algorithm.Quota(), to.Quota()
	after.write(nanos, to.Convert(c.algorithm, c.state, nanos, atomicbucket.Change{
		Before: was.Token, After: is.Token, Latest: latest, Lowest: is.Tokens, Longest: uint64(longestOfTests),
	}))
	return after
}

const longestOfTests = 1 << 60

// requireTokens checks that a converted record owes the same number of tokens as before, rounded up to a unit of the
// new algorithm, or as much as it has room for.
func requireTokens(t *testing.T, before, after *cell, nanos int64) {
	t.Helper()
	of := func(c *cell) (debt, token *big.Int) {
		return new(big.Int).SetUint64(c.algorithm.Debt(c.state.Record(), c.algorithm.Ticks(nanos))),
			new(big.Int).SetUint64(c.algorithm.Quota().Token)
	}
	used, token := of(before)
	now, other := of(after)
	exact := new(big.Int).Mul(used, other)
	if most := new(big.Int).SetUint64(atomicbucket.Most(after.algorithm)); new(big.Int).Mul(most, token).Cmp(exact) < 0 {
		require.Equal(t, most, now, "all that there is room for")
		return
	}
	got := new(big.Int).Mul(now, token)
	require.GreaterOrEqual(t, got.Cmp(exact), 0, "%s of %s used becomes %s of %s: a gift", used, token, now, other)
	require.Negative(t, got.Sub(got, token).Cmp(exact), "%s of %s used becomes %s of %s: a unit too much", used, token, now, other)
}

func drawn[T any](random *rand.Rand, list []T) T { return list[random.IntN(len(list))] }

// TestConvertTokenBucket: after a conversion, a token bucket owes the same number of tokens, whatever the rates.
func TestConvertTokenBucket(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 4))
	for range trials(5000) {
		p, q := drawn(random, policies), drawn(random, policies)
		from, to := newBucket(t, p.tokens, p.period, p.burst).algorithm, newBucket(t, q.tokens, q.period, q.burst).algorithm
		nanos := random.Int64N(math.MaxInt64 / 2)
		c := newCell(&from, nanos)
		c.take(nanos, 1+random.Uint64N(p.burst))
		nanos += random.Int64N(int64(min(from.Wait(nanos, from.UntilIdle(c.state, from.Ticks(nanos))), week)) + 2)
		requireTokens(t, c, c.converted(&to, nanos, 0), nanos)
	}
}

// TestConvertBatchBucket: after a conversion, a bucket that is refilled in batches continues as the model does.
func TestConvertBatchBucket(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 4))
	for seed := range trials(1500) {
		p, q := drawn(random, batches), drawn(random, batches)
		r, after := batchTrial(t, p.refill, p.interval, p.burst, seed), batchTrial(t, q.refill, q.interval, q.burst, seed)
		nanos := random.Int64N(1<<62) >> random.IntN(40)
		r.run(t, nanos, 3)
		nanos = r.wrote
		before := *r.cell
		after.cell = before.converted(after.algorithm, nanos, 0)
		requireTokens(t, &before, after.cell, nanos)
		model := r.model.(*reference.BatchRefill).Change(nanos, q.refill, q.interval, q.burst)
		after.model, after.idleAfter = model, model.ResetAfter
		after.requireSame(t, nanos, 1+random.Uint64N(q.burst))
		after.requireSame(t, nanos+random.Int64N(int64(min(q.interval, 1<<50))), 1)
	}
}

// TestConvertFixedWindow: after a conversion, a fixed window has the tokens and the end that the model has. It may end
// a few ticks later if ticks are long. An aligned window ends when the clock's window ends.
func TestConvertFixedWindow(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	done := 0
	for range trials(6000) {
		p, q := drawn(random, windows), drawn(random, windows)
		if random.IntN(3) == 0 {
			q.window = p.window
		}
		aligned := random.IntN(2) == 0
		from, err1 := atomicbucket.NewFixedWindow(p.limit, p.limit, p.window, aligned)
		to, err2 := atomicbucket.NewRoomyWindow(q.limit, q.limit, q.window, max(p.window, q.window), aligned)
		if err1 != nil || err2 != nil {
			continue
		}
		done++
		nanos := random.Int64N(1<<61) >> random.IntN(30)
		c, model := newCell(&from, nanos), reference.NewFixedWindow(p.limit, p.window, aligned)
		n := 1 + random.Uint64N(p.limit)
		require.True(t, c.take(nanos, n))
		require.True(t, model.Take(nanos, n))
		if random.IntN(10) == 0 { // the window is over
			nanos += int64(from.Wait(nanos, from.UntilIdle(c.state, from.Ticks(nanos))))
			model.Reset()
		} else {
			nanos += random.Int64N(int64(p.window))
		}
		after := c.converted(&to, nanos, 0)
		requireTokens(t, c, after, nanos)
		changed := model.Change(nanos, q.limit, q.window, reference.Limits{Lowest: q.limit, Longest: longestOfTests})
		late := int64(0) // by how much it may end later, because of long ticks
		if !aligned {
			late = 2 * max(tickOf(&from, p.limit)-1, 0)
			late += 2 * max(tickOf(&to, q.limit)-1, 0)
		}
		end, want := int64(to.Status(after.state.Record(), nanos, to.Quota().Demand(1)).ResetAfter), changed.ResetAfter(nanos)
		require.GreaterOrEqual(t, end, want, "it ends sooner")
		require.LessOrEqual(t, end, want+late, "it ends later")
		require.Equal(t, changed.Remaining(nanos), to.Status(after.state.Record(), nanos, to.Quota().Demand(1)).Remaining)
		if want > 0 {
			require.Equal(t, changed.Remaining(nanos) > 0, after.wouldTake(nanos+end-1, 1))
		}
		require.True(t, after.wouldTake(nanos+end, q.limit))
	}
	assert.Greater(t, done, int(trials(2000)))
}

// TestConvertSlidingWindow: if the windows have the same length, a conversion keeps both counts. Otherwise the estimate
// becomes the count of one window, and the record then continues as the model does. An idle record counts as if nothing
// was taken.
func TestConvertSlidingWindow(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	done, same := 0, 0
	for seed := range trials(3000) {
		p, q := drawn(random, windows), drawn(random, windows)
		if random.IntN(2) == 0 {
			q.window = p.window
		}
		from, err1 := atomicbucket.NewSlidingWindow(p.limit, p.limit, p.window)
		to, err2 := atomicbucket.NewRoomySliding(q.limit, max(p.limit, q.limit)+1, q.window, max(2*p.window, q.window))
		if err1 != nil || err2 != nil {
			continue
		}
		done++
		r, after := slidingTrial(t, &from, p.limit, p.window, seed), slidingTrial(t, &to, q.limit, q.window, seed)
		r.run(t, random.Int64N(1<<61)>>random.IntN(30)+int64(p.window), 6)
		nanos := r.wrote
		before := *r.cell
		after.cell = before.converted(&to, nanos, 0)
		model := r.model.(*reference.SlidingWindow)
		changed := model.Change(nanos, q.limit, q.window, reference.Limits{Lowest: q.limit, Longest: longestOfTests})
		if p.window == q.window {
			same++
			previous, current := changed.Counts(nanos)
			was, is := model.Counts(nanos)
			if model.Estimate(nanos) == 0 {
				was, is = 0, 0 // idle, which is the same as no record
			}
			require.Equal(t, []uint64{was, is}, []uint64{previous, current})
		} else {
			was, is := from.Debt(before.state.Record(), uint64(nanos)), to.Debt(after.cell.state.Record(), uint64(nanos))
			require.Contains(t, []uint64{was, was + min(was, 1)}, is)
		}
		after.model = changed
		after.idleAfter = func(nanos int64) int64 { return changed.RetryAfter(nanos, q.limit) }
		for _, at := range []int64{nanos, nanos + random.Int64N(int64(q.window)), nanos + int64(q.window)} {
			after.requireSame(t, at, 1+random.Uint64N(q.limit))
		}
	}
	assert.Greater(t, done, int(trials(800)))
	assert.Greater(t, same, int(trials(300)))
}

// TestConvertBackAndForth: taken tokens still count after any sequence of limits, if the record has room for them.
func TestConvertBackAndForth(t *testing.T) {
	small, err := atomicbucket.NewFixedWindow(7, 1000, time.Minute, false)
	require.NoError(t, err)
	large, err := atomicbucket.NewFixedWindow(1000, 1000, time.Minute, false)
	require.NoError(t, err)
	for taken := uint64(1); taken <= 1000; taken++ {
		const at = 1 << 60
		last := newCell(&large, at)
		require.True(t, last.take(at, taken))
		for range 3 {
			last = last.converted(&small, at, 0)
			require.Equal(t, taken, small.Debt(last.state.Record(), small.Ticks(at)))
			last = last.converted(&large, at, 0)
			require.Equal(t, taken, large.Debt(last.state.Record(), large.Ticks(at)))
		}
	}
}

// TestFollowing: an algorithm takes over only the records of its own kind.
func TestFollowing(t *testing.T) {
	bucket := newBucket(t, 1, time.Second, 5).algorithm
	fixed, err := atomicbucket.NewFixedWindow(5, 5, time.Minute, false)
	require.NoError(t, err)
	sliding, err := atomicbucket.NewSlidingWindow(5, 5, time.Minute)
	require.NoError(t, err)
	log, err := atomicbucket.NewSlidingLog(5, 5, time.Minute)
	require.NoError(t, err)
	all := []atomicbucket.Algorithm{&bucket, &fixed, &sliding, &log}
	for i, before := range all {
		for j, to := range all {
			after, err := to.Following(before)
			if i != j {
				require.ErrorContains(t, err, fmt.Sprintf("%T cannot take over the records of a %T", to, before))
				continue
			}
			require.NoError(t, err)
			require.Equal(t, to.Quota(), after.Quota())
		}
	}
}

// TestShare: Share returns a quota whose rate is never faster than requested, and at most a millionth slower. If that
// is not possible on the algorithm's clock, it returns an error.
func TestShare(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 4))
	shared, refused := 0, 0
	for range trials(12000) {
		p, q := drawn(random, policies), drawn(random, policies)
		if random.IntN(2) == 0 {
			q.tokens, q.burst = math.Ceil(p.tokens*random.Float64()*8), 1+random.Uint64N(1000)
			q.period = p.period
		}
		algorithm, err := atomicbucket.NewTokenBucket(p.tokens, p.period, p.burst)
		require.NoError(t, err)
		_, impossible := atomicbucket.NewTokenBucket(q.tokens, q.period, q.burst)
		quota, err := algorithm.Share(q.tokens, q.period, q.burst)
		if impossible != nil {
			require.EqualError(t, err, impossible.Error())
			continue
		}
		// exact is the exact number of ticks in a token, calculated from the algorithm's clock.
		exact := new(big.Rat).Inv(reference.NewTokenBucket(q.tokens, q.period, 1).Rate())
		perNano := reference.NewTokenBucket(p.tokens, p.period, 1).Rate()
		perNano.Mul(perNano, new(big.Rat).SetInt(new(big.Int).SetUint64(algorithm.Cost(1))))
		exact.Mul(exact, perNano)
		if err != nil {
			refused++
			up := new(big.Int).Quo(exact.Num(), exact.Denom())
			if !exact.IsInt() {
				up.Add(up, big.NewInt(1))
			}
			slower := new(big.Rat).Quo(new(big.Rat).SetInt(up), exact)
			all := up.Mul(up, new(big.Int).SetUint64(q.burst))
			require.True(t, slower.Cmp(big.NewRat(1_000_000+1, 1_000_000)) > 0 || all.Cmp(big.NewInt(1<<51)) > 0, "%v on %v: %v", q, p, err)
			continue
		}
		shared++
		require.Equal(t, q.burst, quota.Tokens)
		slower := new(big.Rat).Quo(new(big.Rat).SetInt(new(big.Int).SetUint64(quota.Token)), exact)
		// (The clock of an algorithm that rounds is slow by one part in 2^63.)
		require.GreaterOrEqual(t, slower.Cmp(new(big.Rat).Sub(big.NewRat(1, 1), big.NewRat(1, 1<<60))), 0, "%v on %v: faster than asked for", q, p)
		require.LessOrEqual(t, slower.Cmp(big.NewRat(1_000_001, 1_000_000)), 0, "%v on %v: slower", q, p)
		if exact.IsInt() && algorithm.Exact() {
			require.Equal(t, exact.Num().Uint64(), quota.Token, "%v on %v", q, p)
		}
	}
	assert.Greater(t, shared, int(trials(1500)))
	assert.Greater(t, refused, int(trials(1500)))
}

func TestShareByHeart(t *testing.T) {
	algorithm := newBucket(t, 1, time.Second, 5).algorithm
	quota, err := algorithm.Share(100, time.Second, 200)
	require.NoError(t, err)
	assert.Equal(t, atomicbucket.Quota{Token: 1e7, Tokens: 200}, quota)
	quota, err = algorithm.Share(3, time.Second, 9)
	require.NoError(t, err)
	assert.Equal(t, atomicbucket.Quota{Token: 333_333_334, Tokens: 9}, quota, "a third of a second, rounded up")

	for _, c := range []struct {
		tokens float64
		period time.Duration
		burst  uint64
		want   string
	}{
		{0, time.Second, 1, "rate of 0 tokens every 1s"},
		{2e9, time.Second, 1, "want at most 1000000000 tokens a second"},
		{1, time.Second, 0, "burst of 0 tokens"},
		{1, time.Second, 1<<32 + 1, "burst of 4294967297 tokens"},
		{999_983, time.Microsecond * 1e3, 10, "rate of 999983 tokens every 1ms: it would be slower by more than a millionth on the table's clock, whose tick is 1.000 ns"},
		// This rate would be slower by one part in 999,999.
		{10, 2_999_997, 10, "rate of 10 tokens every 2.999997ms: it would be slower by more than a millionth"},
		{1, time.Hour, 626, "burst of 626 tokens at 1 tokens every 1h0m0s: on the table's clock, whose tick is 1.000 ns, want at most 625"},
	} {
		_, err := algorithm.Share(c.tokens, c.period, c.burst)
		assert.ErrorContains(t, err, c.want)
	}
	_, err = algorithm.Share(1, time.Hour, 625)
	assert.NoError(t, err, "the highest burst that was named")
}

// TestConvertWhatIsAhead: another clock, which was ahead of this one, wrote the record, and the record is converted at
// an earlier time. Its debt does not shrink, however far the other clock was ahead.
func TestConvertWhatIsAhead(t *testing.T) {
	const at = 1 << 60
	fixed := func(limit uint64, window time.Duration) *atomicbucket.FixedWindow {
		w, err := atomicbucket.NewFixedWindow(limit, limit, window, false)
		require.NoError(t, err)
		return &w
	}
	sliding := func(limit uint64, window time.Duration) *atomicbucket.SlidingWindow {
		w, err := atomicbucket.NewSlidingWindow(limit, limit, window)
		require.NoError(t, err)
		return &w
	}
	for _, c := range []struct {
		name     string
		from, to atomicbucket.Algorithm
		ahead    time.Duration
		used     uint64
		ends     time.Duration // the time after which the record is idle
	}{
		{"a window that has not begun", fixed(5, time.Minute), fixed(10, time.Minute), 30 * time.Second, 5, 90 * time.Second},
		{"a window that will be longer", fixed(5, time.Minute), fixed(10, time.Hour), 30 * time.Second, 5, time.Hour + 30*time.Second},
		{"a window that will be shorter", fixed(5, time.Minute), fixed(10, 10*time.Second), 30 * time.Second, 5, 40 * time.Second},
		{"a window that begins later than the next can", fixed(5, time.Minute), fixed(1<<32, time.Minute), 2 * time.Hour, 5, time.Minute + 34_360_043_520},
		{"a counter", sliding(5, time.Minute), sliding(10, time.Minute), 3 * time.Minute, 5, 4*time.Minute + 24*time.Second - 606_846_975},
		{"a counter further ahead than the next can be", sliding(5, time.Minute), sliding(1<<24-1, time.Minute), 20 * time.Minute, 5, 4*time.Minute + 24*time.Second - 606_846_975},
	} {
		t.Run(c.name, func(t *testing.T) {
			record := newCell(c.from, at)
			require.True(t, record.take(at+int64(c.ahead), 5))
			after := record.converted(c.to, at, at+int64(c.ahead))
			now := c.to.Ticks(at)
			require.Equal(t, c.used, c.to.Debt(after.state.Record(), now))
			require.Equal(t, c.ends, c.to.Wait(at, c.to.UntilIdle(after.state, now)))
		})
	}
}

// TestConvertACounterOfNothing: a sliding window counter whose estimate is 0 stays idle when it is converted.
func TestConvertACounterOfNothing(t *testing.T) {
	from, err := atomicbucket.NewSlidingWindow(10, 10, time.Minute)
	require.NoError(t, err)
	to, err := atomicbucket.NewSlidingWindow(1000, 1000, time.Minute)
	require.NoError(t, err)
	const begin = 1 << 24 * int64(time.Minute)
	record := newCell(&from, begin)
	require.True(t, record.take(begin, 1))
	at := begin + int64(2*time.Minute-time.Second)
	require.True(t, from.Idle(record.state, from.Ticks(at)))
	require.True(t, to.Idle(record.converted(&to, at, 0).state, to.Ticks(at)))
}

// TestConvertAtTheEndOfTime: a window that would end after the end of time can be converted, too.
func TestConvertAtTheEndOfTime(t *testing.T) {
	from, err := atomicbucket.NewFixedWindow(5, 5, time.Minute, false)
	require.NoError(t, err)
	to, err := atomicbucket.NewFixedWindow(10, 10, time.Minute, false)
	require.NoError(t, err)
	const at = math.MaxInt64 - int64(time.Second)
	record := newCell(&from, at)
	require.True(t, record.take(at, 5))
	after := record.converted(&to, at, 0)
	require.EqualValues(t, 5, to.Debt(after.state.Record(), to.Ticks(at)))
	require.EqualValues(t, 5, to.Debt(after.state.Record(), to.Ticks(math.MaxInt64-1)))
}

// TestConvertWhatIsMoreThanARecordHolds: a conversion leaves at most 2^51 ticks of debt, because a larger payload
// could be read as no debt.
func TestConvertWhatIsMoreThanARecordHolds(t *testing.T) {
	const at = 1 << 60
	bucket := func(period time.Duration, burst uint64) *atomicbucket.TokenBucket {
		b, err := atomicbucket.NewTokenBucket(1, period, burst)
		require.NoError(t, err)
		return &b
	}
	from, to := bucket(time.Second, 5), bucket(time.Hour, 5)
	for tokens, want := range map[uint64]time.Duration{50: 50 * time.Hour, 625: 625 * time.Hour, 626: 1 << 51, 1 << 20: 1 << 51} {
		s := atomicbucket.NewState(atomicbucket.Live, 0, from.Ticks(at)+from.Cost(tokens))
		change := atomicbucket.Change{Before: from.Cost(1), After: to.Cost(1)}
		after := atomicbucket.NewState(atomicbucket.Live, 0, to.Convert(from, s, at, change))
		require.Equal(t, want, to.Wait(at, to.UntilIdle(after, to.Ticks(at))), "%d hours", tokens)
	}
}

// TestARoomyBucket: a bucket that had a larger burst before has room for its debt. Its ticks are the finest for which
// that debt fits.
func TestARoomyBucket(t *testing.T) {
	b, err := atomicbucket.NewRoomyBucket(1, time.Hour, 10, 1000)
	require.NoError(t, err)
	assert.Equal(t, uint64(10), b.Quota().Tokens)
	assert.False(t, b.Exact())
	assert.LessOrEqual(t, b.Cost(1000), uint64(1<<51))
	b, err = atomicbucket.NewRoomyBucket(1, time.Hour, 1000, 10)
	require.NoError(t, err)
	assert.Equal(t, uint64(1000), b.Quota().Tokens)
	same, err := atomicbucket.NewTokenBucket(1, time.Hour, 1000)
	require.NoError(t, err)
	assert.Equal(t, same, b)
}
