package limitertest

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// burst sends concurrent requests for the same keys while the clock stands still. All goroutines together must get
// exactly the burst of each key.
func (s *suite) burst(t *testing.T) {
	const goroutines, keys = 8, 16
	for _, l := range s.limits {
		want := l.Capacity(s.Promise)
		if want > 1000 || s.nearEdge(l) {
			t.Logf("%v is left out", l)
			continue
		}
		s.bubble(t, func(t *testing.T) {
			limiter, begin := s.open(t, l), s.now()
			for key := range keys {
				var admitted atomic.Uint64
				name := fmt.Sprintf("burst-%d", key)
				runConcurrently(goroutines, func(int) {
					for range want/goroutines + 2 {
						if s.take(t, limiter, name, 1).Allowed {
							admitted.Add(1)
						}
					}
				})
				if admitted.Load() != want {
					t.Fatalf("%v of %v: %d goroutines got %d of a full key at one instant, want %d", s.Promise, l, goroutines,
						admitted.Load(), want)
				}
			}
			if s.hasTime && s.Promise != LeakyQueue && s.now() != begin {
				t.Fatalf("Take sleeps: %v passed", s.now()-begin)
			}
		})
	}
	if l := s.slowestLimit(); !t.Failed() && l.Capacity(s.Promise) <= 100 && !s.nearEdge(l) {
		s.bubble(t, func(t *testing.T) { s.burstOfNewKeys(t, l) })
	}
}

// burstOfNewKeys checks the burst of new keys. All goroutines send requests for the same keys in the same order. The
// first goroutine is slow, because the limiter makes each key for it. So another goroutine catches up, and then both
// make the limiter create the same key at the same time.
func (s *suite) burstOfNewKeys(t *testing.T, l Limit) {
	const goroutines = 8
	limiter, want := s.open(t, l), l.Capacity(s.Promise)
	admitted := make([]atomic.Uint64, s.Keys)
	runConcurrently(goroutines, func(int) {
		for key := range admitted {
			name := fmt.Sprintf("new-%d", key)
			for range want/goroutines + 1 {
				if s.take(t, limiter, name, 1).Allowed {
					admitted[key].Add(1)
				}
			}
		}
	})
	for key := range admitted {
		if got := admitted[key].Load(); got != want {
			t.Fatalf("%v of %v: %d goroutines that asked for a new key together got %d at one instant, want %d", s.Promise, l,
				goroutines, got, want)
		}
	}
}

// runConcurrently runs f in goroutines, and waits for them. The goroutines start as simultaneously as possible.
func runConcurrently(goroutines int, f func(i int)) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range goroutines {
		wg.Go(func() {
			<-begin
			f(i)
		})
	}
	close(begin)
	wg.Wait()
}

// nearEdge reports whether an aligned window may end during a subtest. This is the case if it ends within a minute,
// outside of a bubble.
func (s *suite) nearEdge(l Limit) bool {
	return !s.hasTime && s.now()%l.Per > l.Per-time.Minute
}

// A request is one request that a goroutine of the subtest linear sends.
type request struct{ n uint64 }

// linear checks, with a clock that stands still, that the answers to concurrent requests are possible in some
// sequential order.
func (s *suite) linear(t *testing.T) {
	const goroutines, calls, histories = 4, 5, 60
	l := s.slowestLimit()
	if s.nearEdge(l) {
		t.Skip("an aligned window is about to end")
	}
	capacity := l.Capacity(s.Promise)
	model := porcupine.Model{
		Init: func() any { return capacity },
		Step: func(state, input, output any) (bool, any) {
			remaining, n := state.(uint64), input.(request).n
			if admitted := output.(bool); admitted != (n <= remaining) {
				return false, state
			} else if admitted {
				remaining -= n
			}
			return true, remaining
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("Take(%d): %t", input.(request).n, output) },
	}
	s.bubble(t, func(t *testing.T) {
		limiter := s.open(t, l)
		random := s.random(1)
		var stamp atomic.Int64
		for h := range histories {
			key := fmt.Sprintf("linear-%d", h)
			var history [goroutines][]porcupine.Operation
			for i := range history {
				for range calls {
					n := uint64(1)
					if s.hasCosts {
						n += random.Uint64N(min(capacity, 3))
					}
					history[i] = append(history[i], porcupine.Operation{ClientId: i, Input: request{n}})
				}
			}
			runConcurrently(goroutines, func(i int) {
				for c := range history[i] {
					op := &history[i][c]
					op.Call = stamp.Add(1)
					op.Output = s.take(t, limiter, key, int64(op.Input.(request).n)).Allowed
					op.Return = stamp.Add(1)
					runtime.Gosched()
				}
			})
			operations := []porcupine.Operation{}
			for _, ops := range history {
				operations = append(operations, ops...)
			}
			if !porcupine.CheckOperations(model, operations) {
				t.Fatalf("%v of %v: no order of these calls explains their answers:\n%s", s.Promise, l, describe(model, history[:]))
			}
		}
	})
}

// describe returns the calls of a history, one line per goroutine, with the start and end of each call.
func describe(model porcupine.Model, history [][]porcupine.Operation) (text string) {
	for i, ops := range history {
		text += fmt.Sprintf("\tgoroutine %d:", i)
		for _, op := range ops {
			text += fmt.Sprintf(" [%d-%d] %s;", op.Call, op.Return, model.DescribeOperation(op.Input, op.Output))
		}
		text += "\n"
	}
	return text
}
