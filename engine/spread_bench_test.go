package engine

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkSpread compares a contended compare-and-swap, a Limiter and a Spread with one bucket, on one processor and
// on all. Only batches of decisions with contention count. The results are nanoseconds of one processor per decision,
// and the ratios to the compare-and-swap.
//
//	go test -run '^$' -bench Spread -benchtime 100x ./engine
func BenchmarkSpread(b *testing.B) {
	for _, row := range []struct {
		name        string
		rate        float64
		burst       uint64
		least, most float64
		receipt     bool
	}{
		{"Allow", 9e8, 1 << 31, 1, 1, false},
		{"TakeReceipt", 9e8, 1 << 31, 1, 1, true},
		{"Allow at the limit", 2e6, 100, 0.001, 0.8, false},
	} {
		for _, cores := range slices.Compact([]int{1, runtime.GOMAXPROCS(0)}) {
			b.Run(fmt.Sprintf("%s/cores=%d", row.name, cores), func(b *testing.B) {
				policy := TokenBucket(PerSecond(row.rate), row.burst)
				l, err := New(policy, MaxKeys(1000))
				if err != nil {
					b.Fatal(err)
				}
				defer l.Close()
				s, err := NewSpread(policy)
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				k := l.Key("global")
				limiter, spread := func() bool { return l.Allow("global") }, s.Allow
				if row.receipt {
					limiter = func() bool { d, r := l.TakeReceipt(k, 1); _ = r; return d.Allowed }
					spread = func() bool { d, r := s.TakeReceipt(1); _ = r; return d.Allowed }
				}
				hotRounds(b, cores, row.least, row.most, limiter, spread)
			})
		}
	}
}

func hotRounds(b *testing.B, cores int, least, most float64, limiter, spread func() bool) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	var word struct {
		_ [128]byte
		w atomic.Uint64
		_ [128]byte
	}
	contended := func() bool {
		for {
			if v := word.w.Load(); word.w.CompareAndSwap(v, v+1) {
				return true
			}
		}
	}
	names := [3]string{"cas", "limiter", "spread"}
	var times, ratios [3][]float64
	for begin := time.Now(); len(times[0]) < b.N; {
		var round [3]float64
		for i, decide := range [3]func() bool{contended, limiter, spread} {
			for tries := 0; round[i] == 0; tries++ {
				if time.Since(begin) > time.Minute {
					b.Skipf("the machine is too busy: %d of %d rounds in a minute", len(times[0]), b.N)
				}
				var admitted float64
				round[i], admitted = hotTurn(decide, cores, 2*time.Millisecond)
				if i > 0 && round[i] > 0 && (admitted < least || admitted > most) {
					b.Fatalf("%s: %.3f of the decisions were admitted", names[i], admitted)
				}
			}
		}
		for i := range round {
			times[i], ratios[i] = append(times[i], round[i]), append(ratios[i], round[i]/round[0])
		}
	}
	for i, name := range names {
		slices.Sort(times[i])
		slices.Sort(ratios[i])
		b.ReportMetric(times[i][b.N/2], name+"-ns")
		if i > 0 {
			b.ReportMetric(ratios[i][b.N/2], name+"/cas")
			b.ReportMetric(ratios[i][b.N/4], name+"/cas-q1")
			b.ReportMetric(ratios[i][b.N*3/4], name+"/cas-q3")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// hotTurn runs decide in several goroutines, and returns the median nanoseconds per decision and the share of admitted
// requests. ns is 0 if fewer than 16 batches count.
func hotTurn(decide func() bool, cores int, length time.Duration) (ns, admitted float64) {
	const batch = 256
	type lane struct {
		batches atomic.Int64
		_       [120]byte
		took    []time.Duration
		yes     int
		_       [96]byte
	}
	lanes := make([]lane, cores)
	var all sync.WaitGroup
	begin := time.Now()
	for i := range lanes {
		all.Go(func() {
			own, other := &lanes[i], &lanes[(i+1)%cores]
			for now := time.Now(); now.Sub(begin) < length; {
				before, yes := other.batches.Load(), 0
				for range batch {
					if decide() {
						yes++
					}
				}
				own.yes += yes
				own.batches.Add(1)
				end := time.Now()
				if other.batches.Load() > before {
					own.took = append(own.took, end.Sub(now))
				}
				now = end
			}
		})
	}
	all.Wait()
	var took []time.Duration
	made, yes := 0, 0
	for i := range lanes {
		took = append(took, lanes[i].took...)
		made += int(lanes[i].batches.Load()) * batch
		yes += lanes[i].yes
	}
	slices.Sort(took)
	if len(took) >= 16 {
		ns = float64(took[len(took)/2]) / batch
	}
	return ns, float64(yes) / float64(made)
}
