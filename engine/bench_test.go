package engine

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/keyhash"
	"github.com/weir-go/weir/internal/tsc"
)

// The benchmarks measure weir beside a floor: the least that any exact limiter must
// do for the same keys, in the same run. Names are in benchstat's form; compare with
//
//	benchstat -col /of
//
// Every row counts its decisions and fails if they are not what its name says.

// benchKeys returns n keys of 12 to 40 bytes, as proxies see them, in random order.
func benchKeys(n int) []string {
	keys := make([]string, n)
	random := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range keys {
		switch i % 3 {
		case 0:
			keys[i] = fmt.Sprintf("%d.%d.%d.%d:%d", 11+i%200, i>>16&255, i>>8&255, i&255, 10000+i%9999)
		case 1:
			keys[i] = fmt.Sprintf("tenant-%d/user-%08d", i%97, i)
		case 2:
			keys[i] = fmt.Sprintf("key_live_%016x_%08x", random.Uint64(), i)
		}
	}
	random.Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

var millionKeys = sync.OnceValue(func() []string { return benchKeys(1_000_000) })

func keysOf(n int) []string {
	if n == 1_000_000 {
		return millionKeys()
	}
	return benchKeys(n)
}

// clocks are the clocks as a floor reads them, at their barest.
var clocks = []struct {
	name   string
	option Option
	floor  func() func() uint64
}{
	{"coarse", ClockCoarse(), func() func() uint64 {
		var word atomic.Uint64
		return word.Load
	}},
	{"tsc", ClockTSC(), func() func() uint64 { return tsc.Read }},
	{"precise", ClockPrecise(), func() func() uint64 {
		start := time.Now()
		return func() uint64 { return uint64(time.Since(start)) }
	}},
}

// run calls decide for every key in turn, on as many goroutines as -cpu says, and
// fails unless the decisions are what the row's name promises. One in a thousand may
// differ, because a table with as many keys as it is made for has no room for one in
// 1,600.
func run(b *testing.B, keys []string, want bool, decide func(key string) bool) {
	b.ReportAllocs()
	b.ResetTimer()
	var wrong, next atomic.Uint64
	b.RunParallel(func(pb *testing.PB) {
		i, bad := int(next.Add(1))*len(keys)/7%len(keys), uint64(0)
		for pb.Next() {
			if decide(keys[i]) != want {
				bad++
			}
			if i++; i == len(keys) {
				i = 0
			}
		}
		wrong.Add(bad)
	})
	if n := wrong.Load(); n > uint64(b.N)/1000+5 {
		b.Fatalf("%d of %d decisions were not %v", n, b.N, want)
	}
}

// record is a slot of the floor's table, which is as large as the limiter's.
type record struct{ state, _ atomic.Uint64 }

func floorTable() ([]record, uint64) {
	const slots = 1 << 21 // DefaultMaxKeys / 0.6 and up to a power of two
	return make([]record, slots), slots - 1
}

// BenchmarkAllowed: every decision admits and charges its key. Floor: hash, clock, one
// compare-and-swap that succeeds.
func BenchmarkAllowed(b *testing.B) {
	for _, n := range []int{1, 1000, 1_000_000} {
		for _, c := range clocks {
			name := fmt.Sprintf("keys=%d/clock=%s", n, c.name)
			b.Run(name+"/of=floor", func(b *testing.B) {
				keys, now := keysOf(n), c.floor()
				table, mask := floorTable()
				run(b, keys, true, func(key string) bool {
					w := &table[keyhash.String(seeds.text, key)&mask].state
					for {
						s := w.Load()
						if w.CompareAndSwap(s, s+now()|1) {
							return true
						}
					}
				})
			})
			b.Run(name+"/of=weir", func(b *testing.B) {
				keys := keysOf(n)
				l := benchLimiter(b, TokenBucket(PerSecond(1e9), 1<<32), c.option)
				run(b, keys, true, l.Allow)
			})
		}
	}
}

// BenchmarkDenied: every decision refuses. Floor: hash, clock, one load.
func BenchmarkDenied(b *testing.B) {
	for _, n := range []int{1, 1000, 1_000_000} {
		for _, c := range clocks {
			name := fmt.Sprintf("keys=%d/clock=%s", n, c.name)
			b.Run(name+"/of=floor", func(b *testing.B) {
				keys, now := keysOf(n), c.floor()
				table, mask := floorTable()
				run(b, keys, false, func(key string) bool {
					return table[keyhash.String(seeds.text, key)&mask].state.Load() > now()>>1|1<<62
				})
			})
			b.Run(name+"/of=weir", func(b *testing.B) {
				keys := keysOf(n)
				l := benchLimiter(b, TokenBucket(PerHour(1), 1), c.option)
				for _, key := range keys {
					l.Allow(key)
				}
				run(b, keys, false, l.Allow)
			})
		}
	}
}

// BenchmarkChurn: every decision is the first of a new key, in a table of a million
// that is full of idle keys. Floor: hash, clock, one compare-and-swap in a random line
// of a table of that size.
func BenchmarkChurn(b *testing.B) {
	// The keys are numbers, so that memory for their text does not drown the table.
	b.Run("clock=tsc/of=floor", func(b *testing.B) {
		table, mask := floorTable()
		l := benchLimiter(b, TokenBucket(PerSecond(1e9), 1))
		var next atomic.Uint64
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for i := next.Add(1) << 40; pb.Next(); i++ {
				w := &table[l.KeyUint64(i).hash&mask].state
				w.CompareAndSwap(w.Load(), tsc.Read())
			}
		})
	})
	b.Run("clock=tsc/of=weir", func(b *testing.B) {
		// A bucket is full again after a nanosecond.
		l := benchLimiter(b, TokenBucket(PerSecond(1e9), 1))
		for i := range uint64(3_000_000) {
			l.AllowKey(l.KeyUint64(i))
		}
		var next, refused atomic.Uint64
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			bad := uint64(0)
			for i := next.Add(1) << 40; pb.Next(); i++ {
				if !l.AllowKey(l.KeyUint64(i)) {
					bad++
				}
			}
			refused.Add(bad)
		})
		b.StopTimer()
		if n := refused.Load(); n > 0 {
			b.Fatalf("%d of %d new keys were refused", n, b.N)
		}
		if n := l.Stats().Evictions; n > 0 {
			b.Fatalf("%d keys were evicted: they were not idle", n)
		}
	})
}

// BenchmarkTake is the whole Decision beside the bare answer.
func BenchmarkTake(b *testing.B) {
	keys := keysOf(1000)
	for name, policy := range map[string]Policy{
		"rule=exact":   TokenBucket(PerSecond(1e9), 1<<32),
		"rule=rounded": TokenBucket(PerSecond(999_999_937), 1<<32),
	} {
		l := benchLimiter(b, policy)
		b.Run(name+"/call=Allow", func(b *testing.B) { run(b, keys, true, l.Allow) })
		b.Run(name+"/call=Take", func(b *testing.B) {
			run(b, keys, true, func(key string) bool { return l.Take(key, 1).Allowed })
		})
	}
}

// BenchmarkBatch is a batch of a thousand keys beside a loop over them, in a table of a
// million keys that are all in use. A row is a thousand decisions.
func BenchmarkBatch(b *testing.B) {
	const size = 1000
	l := benchLimiter(b, TokenBucket(PerSecond(1e9), 1<<32))
	keys := make([]Key, 0, 1_000_000)
	for _, key := range millionKeys() {
		l.Allow(key)
		keys = append(keys, l.Key(key))
	}
	decisions := make([]Decision, size)
	rows := func(decide func(keys []Key)) func(b *testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			at, refused := 0, 0
			for b.Loop() {
				decide(keys[at : at+size])
				for i := range decisions {
					if !decisions[i].Allowed {
						refused++
					}
				}
				at = (at + size) % len(keys)
			}
			if refused > b.N {
				b.Fatalf("%d of %d decisions were refused", refused, b.N*size)
			}
		}
	}
	b.Run("of=loop", rows(func(keys []Key) {
		for i, k := range keys {
			decisions[i] = l.TakeKey(k, 1)
		}
	}))
	b.Run("of=batch", rows(func(keys []Key) {
		if err := l.TakeBatch(keys, 1, decisions); err != nil {
			b.Fatal(err)
		}
	}))
}

// nobody is an observer that does nothing.
type nobody struct{}

func (nobody) Refused(Refusal) {}

// BenchmarkObserve is a refusal without an observer, and with one that is told of one in a
// thousand and of all.
func BenchmarkObserve(b *testing.B) {
	keys := keysOf(1000)
	for _, o := range []struct {
		name    string
		options []Option
	}{{"of=none", nil}, {"of=1/1000", []Option{Observe(nobody{}, 1000)}}, {"of=all", []Option{Observe(nobody{}, 1)}}} {
		b.Run(o.name, func(b *testing.B) {
			l := benchLimiter(b, TokenBucket(PerHour(1), 1), o.options...)
			for _, key := range keys {
				l.Allow(key)
			}
			run(b, keys, false, l.Allow)
		})
	}
}

// BenchmarkSweep is one pass over a table of a million keys, half of them idle.
func BenchmarkSweep(b *testing.B) {
	l := benchLimiter(b, TokenBucket(PerHour(1), 1))
	for _, key := range millionKeys() {
		l.Allow(key)
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Sweep()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(l.Stats().Slots), "ns/slot")
}

// BenchmarkCoarseLateness is how late the word of a coarse clock is while every
// processor is busy and nobody refuses anything, which would renew it. The figure in
// ns/op means nothing here; the metrics do.
func BenchmarkCoarseLateness(b *testing.B) {
	l := benchLimiter(b, TokenBucket(PerSecond(1), 1), ClockCoarse(), MaxKeys(1))
	var stop atomic.Bool
	var busy sync.WaitGroup
	defer busy.Wait()
	defer stop.Store(true)
	for range 2 * runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			for !stop.Load() {
			}
		})
	}
	worst, sum := int64(0), int64(0)
	for b.Loop() {
		late := l.clock.exact() - l.clock.coarse.Load()
		worst, sum = max(worst, late), sum+late
	}
	b.ReportMetric(float64(worst)/1e6, "ms-late-worst")
	b.ReportMetric(float64(sum)/float64(b.N)/1e6, "ms-late-mean")
}

// benchLimiter returns a limiter for a million keys.
func benchLimiter(b *testing.B, p Policy, options ...Option) *Limiter {
	l, err := New(p, options...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return l
}
