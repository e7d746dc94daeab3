package limitertest

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A row is one kind of traffic.
type row struct {
	name    string
	limit   Limit
	admits  bool // all requests, or none
	keys    func(keys []string, random *rand.Rand, i int) string
	drained bool // every key asked once before
	workers int  // goroutines that ask at the same time
}

const day = 24 * time.Hour

// plenty admits every request that a benchmark can make.
var plenty = Limit{Tokens: 1e9, Per: time.Second, Burst: 1e9}

func anyOf(keys []string, random *rand.Rand, _ int) string { return keys[random.IntN(len(keys))] }

// rows returns the rows of weir's own benchmark that apply to every limiter.
func rows() []row {
	return []row{
		{name: "admit", limit: plenty, admits: true, keys: anyOf, drained: true, workers: 1},
		{name: "refuse", limit: Limit{Tokens: 1, Per: day, Burst: 1}, keys: anyOf, drained: true, workers: 1},
		{name: "hot", limit: plenty, admits: true, workers: runtime.GOMAXPROCS(0),
			keys: func(keys []string, _ *rand.Rand, _ int) string { return keys[0] }},
		{name: "new", limit: Limit{Tokens: 10, Per: time.Second, Burst: 20}, admits: true, workers: 1,
			keys: func(_ []string, _ *rand.Rand, i int) string { return fmt.Sprintf("new-%d", i) }},
	}
}

// Benchmark measures a limiter in four kinds of traffic, the rows of weir's benchmark: known keys that are all admitted
// (admit), known keys that are all refused (refuse), one key on all processors (hot), and a new key with every request
// (new).
//
// Each row has a floor: the least work that a limiter must do for a request, which is to hash the key, to read the
// clock, and to change or load one word of a table. The limiter and the floor run in turns in one loop, so that a busy
// machine slows both down. The metrics are ns/op of the limiter, floor-ns/op, and their ratio x-floor, which can be
// compared between machines. allocs/op is the limiter's. Decisions are counted: a row fails if a request gets a
// decision that the row does not expect. Benchmark uses New and Keys of the Config.
//
//	func BenchmarkLimiter(b *testing.B) { limitertest.Benchmark(b, config) }
func Benchmark(b *testing.B, c Config) {
	if err := c.check(); err != nil {
		b.Fatal(err)
	}
	for _, r := range rows() {
		b.Run(r.name, func(b *testing.B) { r.measure(b, c) })
	}
}

// perTurn is how many requests the limiter or the floor gets before the other one's turn.
const perTurn = 500

func (r row) measure(b *testing.B, c Config) {
	limiter := c.New(b, r.limit)
	if limiter == nil {
		b.Skip("New has no limiter for", r.limit)
	}
	keys := make([]string, max(c.Keys, 1000))
	for i := range keys {
		keys[i] = fmt.Sprintf("client-%d", i)
		if r.drained {
			limiter.Take(keys[i], 1)
		}
	}
	floor := newFloor(len(keys), r.admits)
	asked := make([]string, perTurn)
	random := rand.New(rand.NewPCG(1, 1))
	var own, least time.Duration
	var wrong int64
	n := 0
	for b.Loop() { // a turn of both
		for i := range asked {
			asked[i] = r.keys(keys, random, n+i)
		}
		n += perTurn
		took, admitted := r.turn(asked, func(key string) bool { return limiter.Take(key, 1).Allowed })
		own += took
		if want := map[bool]int{true: perTurn * r.workers}[r.admits]; admitted != int64(want) {
			wrong++
		}
		took, _ = r.turn(asked, floor.ask)
		least += took
	}
	if wrong > 0 {
		b.Fatalf("%s: in %d of %d turns not every request was decided as the row is about", r.name, wrong, n/perTurn)
	}
	each := float64(n * r.workers)
	b.ReportMetric(float64(own.Nanoseconds())/each, "ns/op")
	b.ReportMetric(float64(least.Nanoseconds())/each, "floor-ns/op")
	b.ReportMetric(float64(own)/max(float64(least), 1), "x-floor")
	b.ReportAllocs()
	b.ReportMetric(testing.AllocsPerRun(100, func() { limiter.Take(keys[0], 1) }), "allocs/op")
}

// turn lets each worker ask for all keys. It returns how long that took, and how many requests were admitted.
func (r row) turn(keys []string, ask func(string) bool) (took time.Duration, admitted int64) {
	work := func() (n int64) {
		for _, key := range keys {
			if ask(key) {
				n++
			}
		}
		return n
	}
	begin := time.Now()
	if r.workers == 1 {
		admitted = work()
		return time.Since(begin), admitted
	}
	var all sync.WaitGroup
	var sum atomic.Int64
	for range r.workers {
		all.Go(func() { sum.Add(work()) })
	}
	all.Wait()
	return time.Since(begin), sum.Load()
}

// A floor does the least that a limiter must do.
type floor struct {
	seed   maphash.Seed
	table  []atomic.Uint64
	begin  time.Time
	admits bool
}

func newFloor(keys int, admits bool) *floor {
	return &floor{seed: maphash.MakeSeed(), table: make([]atomic.Uint64, 2*keys), begin: time.Now(), admits: admits}
}

func (f *floor) ask(key string) bool {
	word := &f.table[maphash.String(f.seed, key)%uint64(len(f.table))]
	now := uint64(time.Since(f.begin))
	if !f.admits {
		return word.Load() > now|1<<62
	}
	for {
		if was := word.Load(); word.CompareAndSwap(was, was+now|1) {
			return true
		}
	}
}
