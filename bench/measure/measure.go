// Package measure times and counts decisions. The subjects that it measures are weir with each of its clocks, the
// floors and their parts, and the peers.
//
//	measure.go  the loops that make decisions, and the Sample that they return
//	subject.go  the names, and what is opened by them
//	handler.go  the everyday row through middleware
//	aged.go     weir with a table in which every slot was used
//	batch.go    calls of TakeBatch and TakeKey
//	warm.go     the requests before the clock starts
package measure

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/workload"
)

// A Decider decides the requests i of a stream with from <= i < to, and returns how many requests it allowed.
type Decider interface {
	Decide(s *workload.Stream, from, to int) (allowed int)
}

// Keyed calls the limiter once for each request. Floors, weir and peers all run in this one loop.
type Keyed struct{ peers.Limiter }

// Decide implements Decider.
func (k Keyed) Decide(s *workload.Stream, from, to int) (allowed int) {
	for i := from; i < to; i++ {
		if k.Allow(s.At(i)) {
			allowed++
		}
	}
	return allowed
}

// A Sample is the result of a measurement. Samples of the same thing can be added.
type Sample struct {
	Nanos   int64  // wall-clock time
	Ops     int    // decisions
	Allowed int    // how many of them were allowed
	Mallocs uint64 // objects that the whole process allocated in that time
	Bytes   uint64
}

// PerOp returns wall-clock nanoseconds per decision. If n workers share the decisions, each worker needs n times as
// long for a decision.
func (s Sample) PerOp() float64 { return float64(s.Nanos) / float64(s.Ops) }

// AllowedFraction returns the fraction of the decisions that were allowed, 0 to 1.
func (s Sample) AllowedFraction() float64 { return float64(s.Allowed) / float64(s.Ops) }

// AllocsPerOp and BytesPerOp return the allocations per decision, in objects and in bytes.
func (s Sample) AllocsPerOp() float64 { return float64(s.Mallocs) / float64(s.Ops) }
func (s Sample) BytesPerOp() float64  { return float64(s.Bytes) / float64(s.Ops) }

// Add adds another sample.
func (s *Sample) Add(t Sample) {
	s.Nanos += t.Nanos
	s.Ops += t.Ops
	s.Allowed += t.Allowed
	s.Mallocs += t.Mallocs
	s.Bytes += t.Bytes
}

const chunk = 1000

// For measures decisions for about the time d. GOMAXPROCS workers repeat the stream from different offsets.
func For(d time.Duration, decider Decider, s *workload.Stream) Sample {
	var stop atomic.Bool
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	defer timer.Stop()
	return together(func(worker, workers int) (ops, allowed int) {
		at := worker * s.Len() / workers
		for {
			to := min(at+chunk, s.Len())
			allowed += decider.Decide(s, at, to)
			ops += to - at
			if at = to; at == s.Len() {
				at = 0
			}
			if stop.Load() {
				return ops, allowed
			}
		}
	})
}

// Once measures every request of the stream once, divided among GOMAXPROCS workers.
func Once(decider Decider, s *workload.Stream) Sample {
	return together(func(worker, workers int) (ops, allowed int) {
		from, to := worker*s.Len()/workers, (worker+1)*s.Len()/workers
		for at := from; at < to; at += chunk {
			allowed += decider.Decide(s, at, min(at+chunk, to))
		}
		return to - from, allowed
	})
}

// Count measures n decisions, divided among GOMAXPROCS workers that repeat the stream.
func Count(n int, decider Decider, s *workload.Stream) Sample {
	return together(func(worker, workers int) (ops, allowed int) {
		ops = (worker+1)*n/workers - worker*n/workers
		at := worker * s.Len() / workers
		for left := ops; left > 0; {
			to := min(at+min(chunk, left), s.Len())
			allowed += decider.Decide(s, at, to)
			left -= to - at
			if at = to; at == s.Len() {
				at = 0
			}
		}
		return ops, allowed
	})
}

// The function together runs work on every processor at once.
func together(work func(worker, workers int) (ops, allowed int)) Sample {
	var (
		sum           Sample
		before, after runtime.MemStats
		mu            sync.Mutex
		ready, done   sync.WaitGroup
		start         = make(chan struct{})
		workers       = runtime.GOMAXPROCS(0)
	)
	ready.Add(workers)
	for worker := range workers {
		done.Go(func() {
			ready.Done()
			<-start
			ops, allowed := work(worker, workers)
			mu.Lock()
			defer mu.Unlock()
			sum.Ops += ops
			sum.Allowed += allowed
		})
	}
	ready.Wait()
	runtime.ReadMemStats(&before)
	began := time.Now()
	close(start)
	done.Wait()
	sum.Nanos = int64(time.Since(began))
	runtime.ReadMemStats(&after)
	sum.Mallocs, sum.Bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	return sum
}
