package limitertest

import (
	"fmt"
	"math"
	"math/big"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// real checks, in real time and outside of any bubble, that many goroutines get at most what the limit allows in the
// measured time of the whole test.
func (s *suite) real(t *testing.T) {
	const goroutines, rounds, length = 16, 3, 100 * time.Millisecond
	limits := []Limit{{Tokens: 1e6, Per: time.Second, Burst: 1000}, {Tokens: 1000, Per: time.Second, Burst: 50}}
	if len(s.Config.Limits) > 0 {
		limits = s.Config.Limits
	}
	tried := false
	if s.own != nil {
		t.Skip("the limiter's clock does not go by itself (ClockedLimiter)")
	}
	for _, l := range limits {
		for range rounds {
			begin := time.Now()
			limiter := s.open(t, l)
			if limiter == nil {
				break
			}
			tried = true
			var admitted, calls, longest atomic.Int64
			together(goroutines, func(int) {
				for last := begin; last.Sub(begin) < length; {
					if s.take(t, limiter, "real", 1).Allowed {
						admitted.Add(1)
					}
					calls.Add(1)
					next := time.Now()
					if took := int64(next.Sub(last)); took > longest.Load() {
						longest.Store(took)
					}
					last = next
				}
			})
			elapsed := time.Since(begin)
			if most := s.mostIn(l, elapsed); big.NewInt(admitted.Load()).Cmp(most) > 0 {
				t.Fatalf("%v of %v: %d goroutines were admitted %d times in %v of real time, and no more than %v are allowed",
					s.Promise, l, goroutines, admitted.Load(), elapsed, most)
			}
			t.Logf("%v: %d calls, %d admitted, the longest took %v", l, calls.Load(), admitted.Load(), time.Duration(longest.Load()))
		}
	}
	if !tried {
		t.Skip("New has no limiter for", limits)
	}
}

// mostIn returns the most tokens that a key may get in an interval of a length, wherever the interval starts.
func (s *suite) mostIn(l Limit, d time.Duration) *big.Int {
	tokens, per := new(big.Int).SetUint64(l.Tokens), big.NewInt(int64(l.Per))
	if s.EarlyBy != nil {
		d += s.EarlyBy(l)
	}
	elapsed := big.NewInt(int64(d))
	switch s.Promise {
	case Bucket, LeakyQueue:
		back := new(big.Int).Div(elapsed.Mul(elapsed, tokens), per)
		return back.Add(back, new(big.Int).SetUint64(l.Burst))
	case BatchRefill:
		back := new(big.Int).Mul(elapsed.Add(elapsed.Div(elapsed, per), big.NewInt(1)), tokens)
		return back.Add(back, new(big.Int).SetUint64(l.Burst))
	}
	windows := elapsed.Add(elapsed.Div(elapsed, per), big.NewInt(2))
	return windows.Mul(windows, tokens)
}

// leak checks that a closed limiter leaves no goroutines, and that the memory of idle keys is released.
func (s *suite) leak(t *testing.T) {
	l := s.quick()
	if !s.bubble(t, func(t *testing.T) {
		limiter := s.open(t, l)
		s.drain(t, limiter, l, "k")
		s.pass(min(time.Hour, s.span(l)))
	}) {
		t.Error("goroutines of the limiter are still there after Cleanup")
	}
	const fewest = 200_000 // fewer take no more memory than what is resident changes by itself
	keys := max(100*s.Keys, fewest)
	if testing.Short() {
		keys = fewest
	}
	var grown [3]int64
	s.bubble(t, func(t *testing.T) {
		limiter := s.open(t, l)
		s.take(t, limiter, "k", 1)
		logAllocations(t, limiter)
		before := resident()
		for third := range grown {
			for i := range keys {
				if s.take(t, limiter, fmt.Sprintf("idle-%d-%d", third, i), 1); t.Failed() {
					return
				}
				if i%1000 == 999 {
					s.pass(min(time.Millisecond, s.span(l)/8))
				}
			}
			s.pass(min(25*time.Hour, s.span(l)/4))
			s.take(t, limiter, "k", 1)
			after := resident()
			grown[third], before = after-before, after
		}
		runtime.KeepAlive(limiter)
	})
	t.Logf("%d keys that went idle took %d bytes, as many others later %d more, and others again %d", keys, grown[0], grown[1], grown[2])
	if least, more := max(int64(20*keys), 8<<20), min(grown[1], grown[2]); more > least && more > grown[0]/2 {
		t.Errorf("memory grows with every key: after %d keys have gone idle, as many others take %d bytes more, and others again %d",
			keys, grown[1], grown[2])
	}
}

// logAllocations logs how often a call allocates. It skips the test if parallel tests run, whose memory would count.
func logAllocations(t *testing.T, limiter Limiter) {
	defer func() {
		switch problem := recover(); {
		case problem == nil:
		case strings.HasPrefix(fmt.Sprint(problem), "testing: AllocsPerRun"):
			t.Skip("memory is not measured, because other tests run in parallel:", problem)
		default:
			t.Fatalf("Take panicked: %v\n%s", problem, debug.Stack())
		}
	}()
	t.Logf("a call of a key that is there allocates %v times", testing.AllocsPerRun(1000, func() { limiter.Take("k", 1) }))
}

// quick returns the limit whose keys are full again soonest, among those below a thousand a second.
func (s *suite) quick() Limit {
	best, soonest := s.limits[0], time.Duration(math.MaxInt64)
	for _, l := range s.limits {
		if d := refill(l, s.Promise); d >= time.Millisecond && d < soonest {
			best, soonest = l, d
		}
	}
	return best
}

// resident returns the memory of the process, in bytes: the resident memory if the system reports it, else the heap.
func resident() int64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			if pages, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				return pages * int64(os.Getpagesize())
			}
		}
	}
	return int64(m.HeapAlloc)
}
