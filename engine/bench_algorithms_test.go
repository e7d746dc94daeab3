package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/keyhash"
)

// benchYear is a window of the clock that does not end during a benchmark.
const benchYear = 365 * 24 * time.Hour

// benchAlgorithms are the algorithms, with numbers that admit everything, and with numbers
// that admit only a key's first few requests.
var benchAlgorithms = []struct {
	name         string
	free, strict Policy
}{
	{"token", TokenBucket(PerSecond(1e9), 1<<32), TokenBucket(PerHour(1), 1)},
	{"batch", BatchRefill(1e9, time.Second, 1<<32), BatchRefill(1, benchYear, 1)},
	{"fixed", FixedWindow(1<<28, time.Hour), FixedWindow(1, benchYear)},
	{"counter", SlidingWindow(1<<24-1, time.Minute), SlidingWindow(1, benchYear)},
	// Memory is 16 + 4*8 bytes a slot.
	{"log4", SlidingLog(4, time.Microsecond), SlidingLog(4, benchYear)},
	// For few keys only. What a key asks within a tick of a coarse clock finds room.
	{"log127", SlidingLog(127, time.Microsecond), SlidingLog(127, benchYear)},
}

// benchEachAlgorithm measures the floor that newFloor returns, and every algorithm, in one
// row of benchstat's. want is what all of them decide.
func benchEachAlgorithm(b *testing.B, want bool, newFloor func(now func() uint64) func(key string) bool) {
	for _, n := range []int{1000, 1_000_000} {
		for _, c := range clocks {
			if c.name == "precise" || c.name == "coarse" && n > 1000 {
				continue
			}
			row := fmt.Sprintf("keys=%d/clock=%s/of=", n, c.name)
			b.Run(row+"floor", func(b *testing.B) { run(b, keysOf(n), want, newFloor(c.floor())) })
			for _, a := range benchAlgorithms {
				if n > 1000 && a.name == "log127" || n == 1000 && a.name == "log4" {
					continue
				}
				policy := a.free
				if !want {
					policy = a.strict
				}
				// As many slots as the floor has, so that every key finds room, even in a run of
				// a hundred decisions. But the rings of log127 would be 2 GB then.
				room := 1_250_000
				if a.name == "log127" {
					room = 4 * n
				}
				var l *Limiter
				b.Run(row+a.name, func(b *testing.B) {
					if l == nil { // made once, for it takes longer than the row
						l = warmLimiter(b, policy, keysOf(n), want, MaxKeys(room), c.option)
					}
					run(b, keysOf(n), want, l.Allow)
				})
				if l != nil {
					l.Close() // its sweeper would disturb the next row
				}
			}
		}
	}
}

// warmLimiter returns a limiter that every key has asked, so that the table's pages are
// there; and if it is to refuse, so often that it does.
func warmLimiter(b *testing.B, p Policy, keys []string, want bool, options ...Option) *Limiter {
	l, err := New(p, options...)
	if err != nil {
		b.Fatal(err)
	}
	times := uint64(1)
	if !want {
		times = p.limit
	}
	for range times {
		for _, key := range keys {
			l.Allow(key)
		}
	}
	return l
}

// BenchmarkAlgorithmsAllowed is BenchmarkAllowed for every algorithm, with one floor for all.
func BenchmarkAlgorithmsAllowed(b *testing.B) {
	benchEachAlgorithm(b, true, func(now func() uint64) func(key string) bool {
		table, mask := floorTable()
		return func(key string) bool {
			w := &table[keyhash.String(seeds.text, key)&mask].state
			for {
				s := w.Load()
				if w.CompareAndSwap(s, s+now()|1) {
					return true
				}
			}
		}
	})
}

// BenchmarkAlgorithmsDenied is BenchmarkDenied for every algorithm, with one floor for all.
func BenchmarkAlgorithmsDenied(b *testing.B) {
	benchEachAlgorithm(b, false, func(now func() uint64) func(key string) bool {
		table, mask := floorTable()
		return func(key string) bool {
			return table[keyhash.String(seeds.text, key)&mask].state.Load() > now()>>1|1<<62
		}
	})
}
