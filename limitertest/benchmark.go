package limitertest

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Benchmark measures a limiter in eight kinds of traffic, which are rows of weir's own benchmark:
//
//	full-1k    1,000 keys, all admitted
//	denied-1k  1,000 keys, all refused
//	hot        one key on all processors
//	zipf-1m    a million keys, some of them frequent
//	churn      a new key in every request; two million were there before
//	flood      the same, under 10 an hour, burst 3, so that no key is idle
//	everyday   100,000 clients, each below its limit
//	mixed      50,000 clients, half of whose requests are refused
//
// Each row except mixed has a floor: the least work that any limiter must do for a request of the row. The floor hashes
// the key, reads the clock, and changes or loads one word of a table. (In the row hot, it only changes one word.) The
// limiter and the floor take turns, so that a busy machine slows both of them down. The metrics are:
//
//	ns/op        the time of the limiter
//	floor-ns/op  the time of the floor
//	x-floor      the ratio of the two, which can be compared between machines
//	allocs/op    the allocations of the limiter
//
// A row fails if the limiter admits fewer requests than it must admit. Benchmark uses only the field New of the Config.
// If New returns nil for a row, Benchmark skips the row. With -short the large rows have 1,000 keys.
//
//	func BenchmarkLimiter(b *testing.B) { limitertest.Benchmark(b, config) }
func Benchmark(b *testing.B, c Config) {
	if err := c.check(); err != nil {
		b.Fatal(err)
	}
	for _, r := range rows(testing.Short()) {
		b.Run(r.name, func(b *testing.B) { r.measure(b, c) })
	}
}

const perTurn = 500

// requests are the requests of one turn: their keys, and how many of them must be admitted.
type requests struct {
	keys     []string
	admitted int64
	text     []byte
}

// fill prepares the next n requests, with their keys next to each other in memory as in the buffers of a server.
func (t *requests) fill(n int, next func(i int) (uint64, bool)) {
	var ends [perTurn]int
	t.text, t.admitted = t.text[:0], 0
	for i := range ends {
		key, admitted := next(n + i)
		t.text = appendKey(t.text, key)
		if ends[i] = len(t.text); admitted {
			t.admitted++
		}
	}
	text, from := string(t.text), 0
	for i, end := range ends {
		t.keys[i], from = text[from:end], end
	}
}

func (r row) measure(b *testing.B, c Config) {
	limiter := c.New(b, r.limit)
	if limiter == nil {
		b.Skip("New has no limiter for", r.limit)
	}
	random := rand.New(rand.NewPCG(1, 1))
	for _, n := range random.Perm(r.before) {
		limiter.Take(string(appendKey(nil, uint64(n))), 1)
	}
	ask, floorWork, next := func(key string) bool { return limiter.Take(key, 1).Allowed }, newFloor(r), r.traffic(r, random)
	turn := requests{keys: make([]string, perTurn)}
	var limiterTime, floorTime time.Duration
	var wrongTurns int64
	n := 0
	for b.Loop() { // one turn of the limiter and one of the floor
		turn.fill(n, next)
		n += perTurn
		elapsed, admitted := r.turn(turn.keys, ask)
		if limiterTime += elapsed; admitted != turn.admitted*int64(r.workers) {
			wrongTurns++
		}
		if floorWork != nil {
			elapsed, _ = r.turn(turn.keys, floorWork)
			floorTime += elapsed
		}
	}
	if wrongTurns > 0 {
		b.Fatalf("%s: in %d of %d turns not every request was decided as the row is about", r.name, wrongTurns, n/perTurn)
	}
	total := float64(n * r.workers)
	b.ReportMetric(float64(limiterTime.Nanoseconds())/total, "ns/op")
	if floorWork != nil {
		b.ReportMetric(float64(floorTime.Nanoseconds())/total, "floor-ns/op")
		b.ReportMetric(float64(limiterTime)/max(float64(floorTime), 1), "x-floor")
	}
	b.ReportAllocs()
	b.ReportMetric(testing.AllocsPerRun(100, func() { limiter.Take(turn.keys[0], 1) }), "allocs/op")
}

// turn makes each worker send one request for each key. It returns how long this took, and how many requests were
// admitted.
func (r row) turn(keys []string, ask func(string) bool) (elapsed time.Duration, admitted int64) {
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
	var wg sync.WaitGroup
	var sum atomic.Int64
	for range r.workers {
		wg.Go(func() { sum.Add(work()) })
	}
	wg.Wait()
	return time.Since(begin), sum.Load()
}

// newFloor returns a function with the least work that a limiter must do for a request of a row, or nil if the row has
// no floor.
func newFloor(r row) func(key string) bool {
	seed, table, begin := maphash.MakeSeed(), make([]atomic.Uint64, 2*r.before), time.Now()
	word := func(key string) *atomic.Uint64 { return &table[maphash.String(seed, key)%uint64(len(table))] }
	change := func(word *atomic.Uint64, delta uint64) bool {
		for {
			if old := word.Load(); word.CompareAndSwap(old, old+delta|1) {
				return true
			}
		}
	}
	switch r.floor {
	case changes:
		return func(key string) bool { return change(word(key), uint64(time.Since(begin))) }
	case loads:
		return func(key string) bool { return word(key).Load() > uint64(time.Since(begin))|1<<62 }
	case swaps:
		return func(string) bool { return change(&table[0], 1) }
	}
	return nil
}
