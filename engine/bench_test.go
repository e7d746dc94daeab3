package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// The module bench/ has the benchmarks that use only the public API.

// BenchmarkCoarseLateness measures how late a coarse clock is while every processor is busy. Read the reported metrics;
// ns/op has no meaning.
func BenchmarkCoarseLateness(b *testing.B) {
	l, err := New(TokenBucket(PerSecond(1), 1), ClockCoarse(), MaxKeys(1))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
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
