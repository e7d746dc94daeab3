package fuzz

import (
	"cmp"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

const start = 1 << 50

// A round is one run of a stress test on a new table. TestStressSoak runs rounds of all stress tests, for the duration
// in WEIR_STRESS.
type round func(t *testing.T, seed uint64)

func rounds(t *testing.T, n uint64, f round) {
	for seed := range n {
		f(t, seed)
	}
}

// The function together runs f on more goroutines than there are processors, and waits for them.
func together(f func(g uint64)) {
	var all sync.WaitGroup
	for g := range uint64(2*runtime.GOMAXPROCS(0) + 2) {
		all.Go(func() { f(g) })
	}
	all.Wait()
}

// The function beside runs f concurrently with body until body returns.
func beside(f func(random *rand.Rand), body func()) {
	var stop atomic.Bool
	var done sync.WaitGroup
	done.Go(func() {
		random := rand.New(rand.NewPCG(99, 99))
		for !stop.Load() {
			f(random)
			runtime.Gosched()
		}
	})
	body()
	stop.Store(true)
	done.Wait()
}

func planOf(t require.TestingT, algorithm atomicbucket.TokenBucket) *shard.Plan {
	plan, err := shard.NewPlan(&algorithm, 0)
	require.NoError(t, err)
	return plan
}

func bucketOf(tb *shard.Table) *atomicbucket.TokenBucket {
	return tb.Plan().Algorithm().(*atomicbucket.TokenBucket)
}

func table(t *testing.T, rate float64, burst uint64, slots uint64, probeWindow int, overflow shard.Overflow) *shard.Table {
	algorithm, err := atomicbucket.NewTokenBucket(rate, time.Second, burst)
	require.NoError(t, err)
	tb, err := shard.New(shard.Config{Plan: planOf(t, algorithm), Slots: slots, Shards: 1, ProbeWindow: probeWindow, Overflow: overflow, Start: start})
	require.NoError(t, err)
	return tb
}

// TestStressFrozenClockAdmitsExactlyTheBurst (I1, I2, I3): while the clock stands still, every key gets exactly its
// burst. This is true whichever goroutines take from the key, although sweeps run and slots are claimed again.
func TestStressFrozenClockAdmitsExactlyTheBurst(t *testing.T) { rounds(t, 300, frozenRound) }

func frozenRound(t *testing.T, seed uint64) {
	const keys, passing, burst = 12, 4, 7
	tb := table(t, 1, burst, 16, 16, shard.Refuse)
	var admitted [keys]atomic.Uint64
	together(func(g uint64) {
		random := rand.New(rand.NewPCG(seed, g))
		for range 400 {
			key := random.Uint64N(keys + passing)
			n := 1 + random.Uint64N(3)
			v := tb.Take(tb.Find(key), start, n, 0).Verdict
			switch {
			case key >= keys && random.IntN(2) == 0:
				tb.Reset(tb.Find(key))
			case key < keys && v == shard.Admitted:
				admitted[key].Add(n)
			}
			if random.IntN(100) == 0 {
				tb.Sweep(start, nil)
			}
		}
		for key := range uint64(keys) { // take the remaining tokens, one by one
			for {
				if v := tb.Take(tb.Find(key), start, 1, 0).Verdict; v != shard.Admitted {
					assert.Equal(t, shard.Refused, v)
					break
				}
				admitted[key].Add(1)
			}
		}
	})
	for key := range uint64(keys) {
		require.EqualValues(t, burst, admitted[key].Load(), "key %d, round %d", key, seed)
		o, _ := tb.Peek(tb.Find(key), start, 0, 0)
		s, at := o.State, o.At
		require.Equal(t, bucketOf(tb).Cost(burst), bucketOf(tb).Debt(s.Record(), bucketOf(tb).Ticks(at)))
	}
	require.Zero(t, tb.Stats().Evictions)
}

// TestStressTokensAreConserved (I2, I7): the clock stands still, and keys are evicted. The number of admitted tokens is
// exactly the tokens that the table's keys owe, plus the tokens that Stats reports as forgiven.
func TestStressTokensAreConserved(t *testing.T) { rounds(t, 150, conservedRound) }

func conservedRound(t *testing.T, seed uint64) {
	const keys, burst = 60, 5
	tb := table(t, 1, burst, 8, 8, shard.Evict)
	var admitted atomic.Uint64
	together(func(g uint64) {
		random := rand.New(rand.NewPCG(seed, g))
		for range 500 {
			n := 1 + random.Uint64N(burst)
			if v := tb.Take(tb.Find(random.Uint64N(keys)), start, n, 0).Verdict; v == shard.Admitted {
				admitted.Add(n)
			}
			if random.IntN(50) == 0 {
				tb.Sweep(start, nil)
			}
		}
	})
	owed := uint64(0)
	for key := range uint64(keys) {
		o, _ := tb.Peek(tb.Find(key), start, 0, 0)
		s, at := o.State, o.At
		owed += bucketOf(tb).Tokens(bucketOf(tb).Debt(s.Record(), bucketOf(tb).Ticks(at)))
	}
	stats := tb.Stats()
	require.Equal(t, admitted.Load(), owed+stats.Forgiven, "round %d: %+v", seed, stats)
	require.Positive(t, stats.Evictions)
}

type admission struct{ at, cost int64 } // both in ticks

// TestStressMovingClock (I1): from any admission of a key to any later one, both included, at most burst + rate * t is
// admitted. Clocks run, times are late, and slots change hands. In every second round, each key has its own window, so
// that only a sweep forgets the key.
func TestStressMovingClock(t *testing.T) { rounds(t, 60, movingRound) }

func movingRound(t *testing.T, seed uint64) {
	const burst, many, few = 3, 24, 8
	tb, sweepOneIn := table(t, 1e6, burst, 16, 16, shard.Refuse), 20
	swept := seed%2 == 1
	if swept {
		tb, sweepOneIn = table(t, 1e5, burst, few*4, 4, shard.Refuse), 3
	}
	begin := time.Now()
	now := func() int64 { return start + int64(time.Since(begin)) }
	var mu sync.Mutex
	all := map[uint64][]admission{}
	together(func(g uint64) {
		random := rand.New(rand.NewPCG(seed, g))
		mine := map[uint64][]admission{}
		for range 3000 {
			at := now()
			if random.IntN(sweepOneIn) == 0 {
				tb.Sweep(at, nil)
			}
			switch random.IntN(20) {
			case 0:
				runtime.Gosched() // the time is late when the call is made
			case 1:
				at -= random.Int64N(100_000)
			}
			key, n := random.Uint64N(many), 1+random.Uint64N(2)
			if swept {
				key = uint64(at) / 50_000 % few << 61 // the key's home is a line that no other key has
			}
			if o := tb.Take(tb.Find(key), at, n, 0); o.Verdict == shard.Admitted {
				mine[key] = append(mine[key], admission{int64(bucketOf(tb).Ticks(o.At)), int64(bucketOf(tb).Cost(n))})
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for key, list := range mine {
			all[key] = append(all[key], list...)
		}
	})
	total := 0
	for key, list := range all {
		total += len(list)
		requireWithinLimit(t, list, bucketOf(tb).Cost(burst), key)
	}
	require.Greater(t, total, few*burst, "the clock ran")
}

// requireWithinLimit checks that the cost from any admission to any later one is at most the burst plus the ticks
// between them. This is checked in one pass, by the difference between the sum of costs and the tick. After an
// admission, the difference may be at most the burst above its lowest value before any admission so far.
func requireWithinLimit(t *testing.T, list []admission, burst uint64, key uint64) {
	slices.SortFunc(list, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
	sum, least := int64(0), int64(1<<62)
	for _, a := range list {
		least = min(least, sum-a.at)
		sum += a.cost
		require.LessOrEqual(t, sum-a.at-least, int64(burst), "key %d", key)
	}
}

// TestStressFlood (I6, I7): there is a flood of new keys beyond the room of the table. It changes neither the memory
// nor the records of two older keys: one has no tokens left, and the other has two. Evicted keys owe nothing any
// longer. Stats counts exactly the tokens that they owed.
func TestStressFlood(t *testing.T) {
	tb := table(t, 1, 5, 20_000, 0, shard.Evict)
	const drained, paying = 1 << 62, 3 << 61
	bytes := tb.Stats().Bytes
	v := tb.Take(tb.Find(drained), start, 5, 0).Verdict
	require.Equal(t, shard.Admitted, v)
	v = tb.Take(tb.Find(paying), start, 3, 0).Verdict
	require.Equal(t, shard.Admitted, v)

	var admitted, again atomic.Uint64
	beside(func(*rand.Rand) {
		if v := tb.Take(tb.Find(drained), start, 1, 0).Verdict; v != shard.Refused {
			again.Add(1)
		}
		o, _ := tb.Peek(tb.Find(paying), start, 0, 0)
		s, at := o.State, o.At
		if bucketOf(tb).Status(s.Record(), at, bucketOf(tb).Quota().Demand(0)).Remaining != 2 {
			again.Add(1)
		}
	}, func() {
		together(func(g uint64) {
			random := rand.New(rand.NewPCG(7, g))
			for range 50_000 {
				if v := tb.Take(tb.Find(random.Uint64()), start, 1, 0).Verdict; v == shard.Admitted {
					admitted.Add(1)
				}
			}
		})
	})
	assert.Zero(t, again.Load(), "a drained key was let through, or a paying key lost its record")
	stats := tb.Stats()
	assert.Equal(t, bytes, stats.Bytes)
	tb.Sweep(start, nil)
	assert.Equal(t, admitted.Load()+2, tb.Stats().Live+stats.Evictions)
	assert.Equal(t, admitted.Load()+8, tb.Stats().Live-2+8+stats.Forgiven, "each of the flood owes one token")
}
