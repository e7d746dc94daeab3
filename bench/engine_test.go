package bench

import (
	"testing"
	"time"

	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
)

// These benchmarks compare calls and algorithms of weir with each other.

const year = 365 * 24 * time.Hour

// question turns a function into a limiter, to measure calls other than Allow.
type question func(key string) bool

func (q question) Allow(key string) bool { return q(key) }

// compare measures a limiter on a row, and fails if the limiter decides wrongly. For each key, it first makes a number
// of requests (fill), so that a row of refusals refuses.
func compare(b *testing.B, row workload.Row, fill int, l peers.Limiter) {
	before, requests := row.Load()
	decider := measure.Keyed{Limiter: l}
	for range fill {
		measure.Warm(decider, before)
	}
	b.ReportAllocs()
	b.ResetTimer()
	sample := measure.Count(b.N, decider, requests)
	b.StopTimer()
	if wrong := experiment.Wrong(&row, sample); wrong != "" {
		b.Fatal(wrong)
	}
}

func find(b *testing.B, name string) workload.Row {
	row, err := workload.Find(name)
	if err != nil {
		b.Fatal(err)
	}
	return row
}

func limiter(b *testing.B, p engine.Policy, options ...engine.Option) *engine.Limiter {
	l, err := engine.New(p, options...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return l
}

// BenchmarkTake compares Take with Allow. Take returns a complete Decision.
func BenchmarkTake(b *testing.B) {
	for _, rule := range []struct {
		name string
		rate float64
	}{{"exact", 1e9}, {"rounded", 999_999_937}} {
		l := limiter(b, engine.TokenBucket(engine.PerSecond(rule.rate), 1<<32))
		b.Run("rule="+rule.name+"/call=Allow", func(b *testing.B) { compare(b, find(b, "allowed-1k"), 1, l) })
		b.Run("rule="+rule.name+"/call=Take", func(b *testing.B) {
			compare(b, find(b, "allowed-1k"), 1, question(func(key string) bool { return l.Take(key, 1).Allowed }))
		})
	}
}

func ignore(engine.Key, uint64) {}

// BenchmarkObserve measures a refusal without an observer, with an observer of one refusal in a thousand, and with an
// observer of every refusal.
func BenchmarkObserve(b *testing.B) {
	for _, o := range []struct {
		name    string
		options []engine.Option
	}{
		{"of=none", nil},
		{"of=1/1000", []engine.Option{engine.Observe(ignore, 1000)}},
		{"of=all", []engine.Option{engine.Observe(ignore, 1)}},
	} {
		l := limiter(b, engine.TokenBucket(engine.Per(1, time.Hour), 1), o.options...)
		b.Run(o.name, func(b *testing.B) { compare(b, find(b, "denied-1k"), 1, l) })
	}
}

// BenchmarkSweep measures one pass over a table of keys that are in use.
func BenchmarkSweep(b *testing.B) {
	l := limiter(b, engine.TokenBucket(engine.Per(1, time.Hour), 1))
	row := find(b, "zipf-1m")
	before, _ := row.Load()
	measure.Once(measure.Keyed{Limiter: l}, before)
	b.ReportAllocs()
	for b.Loop() {
		l.Sweep()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(l.Stats().Slots), "ns/slot")
}

// algorithms lists two policies of every algorithm. The policy free admits everything, and the policy strict admits
// only a key's first requests.
var algorithms = []struct {
	name         string
	free, strict engine.Policy
	first        int
}{
	{"token", engine.TokenBucket(engine.PerSecond(1e9), 1<<32), engine.TokenBucket(engine.Per(1, time.Hour), 1), 1},
	{"batch", engine.BatchRefill(1e9, time.Second, 1<<32), engine.BatchRefill(1, year, 1), 1},
	{"fixed", engine.FixedWindow(1<<28, time.Hour), engine.FixedWindow(1, year), 1},
	{"counter", engine.SlidingWindow(1<<24-1, time.Minute), engine.SlidingWindow(1, year), 1},
	// This policy takes 16 + 4*8 bytes of memory per slot.
	{"log4", engine.SlidingLog(4, time.Microsecond), engine.SlidingLog(4, year), 4},
	// Only a few keys use this policy. All requests of a key within one tick of a coarse clock fit into the limit.
	{"log127", engine.SlidingLog(127, time.Microsecond), engine.SlidingLog(127, year), 127},
}

// BenchmarkAlgorithms measures Allow with every algorithm, and the floor of the row.
func BenchmarkAlgorithms(b *testing.B) {
	denied := find(b, "zipf-1m")
	denied.Name, denied.Refused = "denied-1m", true
	for _, row := range []workload.Row{find(b, "allowed-1k"), find(b, "denied-1k"), find(b, "zipf-1m"), denied} {
		b.Run(row.Name, func(b *testing.B) {
			benchSubject(b, &row, measure.FloorTSC)
			for _, a := range algorithms {
				few := row.Keys == 1000
				if few && a.name == "log4" || !few && a.name == "log127" {
					continue
				}
				policy, fill := a.free, 1
				if row.Refused {
					policy, fill = a.strict, a.first
				}
				// There is room for every key. log127 has fewer slots, because its rings would otherwise take 2 GB.
				room := row.Capacity * 5 / 4
				if a.name == "log127" {
					room = 4 * row.Keys
				}
				var l *engine.Limiter // made once, because it takes longer than the row
				b.Run("clock=tsc/of="+a.name, func(b *testing.B) {
					if l == nil {
						var err error
						if l, err = engine.New(policy, engine.MaxKeys(room)); err != nil {
							b.Fatal(err)
						}
					}
					compare(b, row, fill, l)
				})
				if l != nil {
					l.Close() // otherwise its sweeper would disturb the next benchmark
				}
			}
		})
	}
}

// Labels have the form that benchstat reads.
func TestLabels(t *testing.T) {
	for name, want := range map[string]string{
		measure.WeirTSC:        "clock=tsc/of=weir",
		measure.FloorPrecise:   "clock=precise/of=floor",
		measure.WeirBatch:      "of=weir-TakeBatch",
		"sethvargo/go-limiter": "of=sethvargo-go-limiter",
	} {
		if got := label(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
