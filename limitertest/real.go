package limitertest

import (
	"fmt"
	"math"
	"math/big"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// real checks that many goroutines in real time together get at most what the limit allows. It checks this over the
// complete time, and in the interval with the most tokens beyond the rate.
func (s *suite) real(t *testing.T) {
	const rounds = 3
	limits := []Limit{{Tokens: 1e6, Per: time.Second, Burst: 1000}, {Tokens: 1000, Per: time.Second, Burst: 50}}
	if len(s.Config.Limits) > 0 {
		limits = s.Config.Limits
	}
	tried := false
	if s.clockLimiter != nil {
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
			r := s.ask(t, limiter, begin)
			elapsed := time.Since(begin)
			if maxTokens := s.maxTokensIn(l, elapsed); big.NewInt(int64(len(r.starts))).Cmp(maxTokens) > 0 {
				t.Fatalf("%v of %v: %d goroutines were admitted %d times in %v of real time, and no more than %v are allowed",
					s.Promise, l, goroutines, len(r.starts), elapsed, maxTokens)
			}
			n, interval := r.densest(l)
			if maxTokens := s.maxTokensIn(l, interval); big.NewInt(int64(n)).Cmp(maxTokens) > 0 {
				t.Fatalf("%v of %v: %d goroutines were admitted %d times within %v of real time, and no more than %v are allowed",
					s.Promise, l, goroutines, n, interval, maxTokens)
			}
			t.Logf("%v: %d calls, %d admitted, the longest took %v", l, r.calls, len(r.starts), r.longest)
		}
	}
	if !tried {
		t.Skip("New has no limiter for", limits)
	}
}

const goroutines = 16

// A callLog has the calls of many goroutines in real time.
type callLog struct {
	calls        int
	longest      time.Duration
	starts, ends []time.Duration // times of the calls that were admitted
}

// ask makes many goroutines send requests for one key. On a busy machine, the goroutines run only part of the time. So
// they continue until they have made enough calls, for up to five times the usual time.
func (s *suite) ask(t *testing.T, limiter Limiter, begin time.Time) (total callLog) {
	const length, minCalls = 100 * time.Millisecond, goroutines * 200
	var mu sync.Mutex
	var calls atomic.Int64
	runConcurrently(goroutines, func(int) {
		var local callLog
		for last := time.Since(begin); last < length || last < 5*length && calls.Load() < minCalls; {
			allowed := s.take(t, limiter, "real", 1).Allowed
			next := time.Since(begin)
			if allowed {
				local.starts, local.ends = append(local.starts, last), append(local.ends, next)
			}
			calls.Add(1)
			local.longest = max(local.longest, next-last)
			last = next
		}
		mu.Lock()
		defer mu.Unlock()
		total.starts, total.ends = append(total.starts, local.starts...), append(total.ends, local.ends...)
		total.longest = max(total.longest, local.longest)
	})
	total.calls = int(calls.Load())
	slices.Sort(total.starts)
	slices.Sort(total.ends)
	return total
}

// densest finds the interval in which admitted calls exceed the rate of a limit most. It returns the length of this
// interval, and how many calls were certainly admitted within it.
func (a callLog) densest(l Limit) (n int, interval time.Duration) {
	rate := float64(l.Tokens) / float64(l.Per)
	started, lowest, from := 0, math.Inf(1), 0 // from is the number of calls that started before the interval
	best := math.Inf(-1)
	for i, end := range a.ends {
		for ; started < len(a.starts) && a.starts[started] <= end; started++ {
			if v := float64(started) - rate*float64(a.starts[started]); v < lowest {
				lowest, from = v, started
			}
		}
		// By the end of the interval, i+1 calls had ended. Only the calls that began before the interval may have been
		// admitted before it. Their number is at most from, so at least i+1-from calls were admitted within it.
		if v := float64(i+1) - rate*float64(end) - lowest; v > best {
			best, n, interval = v, i+1-from, end-a.starts[from]
		}
	}
	return n, interval
}

// maxTokensIn returns the most tokens that a key may get in any interval of length d.
func (s *suite) maxTokensIn(l Limit, d time.Duration) *big.Int {
	tokens, per := new(big.Int).SetUint64(l.Tokens), big.NewInt(int64(l.Per))
	if s.EarlyBy != nil {
		d += s.EarlyBy(l)
	}
	elapsed := big.NewInt(int64(d))
	switch s.Promise {
	case Bucket, LeakyQueue:
		sum := new(big.Int).Div(elapsed.Mul(elapsed, tokens), per)
		return sum.Add(sum, new(big.Int).SetUint64(l.Burst))
	case BatchRefill:
		sum := new(big.Int).Mul(elapsed.Add(elapsed.Div(elapsed, per), big.NewInt(1)), tokens)
		return sum.Add(sum, new(big.Int).SetUint64(l.Burst))
	}
	windows := elapsed.Add(elapsed.Div(elapsed, per), big.NewInt(2))
	return windows.Mul(windows, tokens)
}

// leak checks that a closed limiter leaves no goroutines, and that the memory of idle keys is released.
func (s *suite) leak(t *testing.T) {
	l := s.fastestLimit()
	if !s.bubble(t, func(t *testing.T) {
		limiter := s.open(t, l)
		s.drain(t, limiter, l, "k")
		s.pass(min(time.Hour, s.span(l)))
	}) {
		t.Error("goroutines of the limiter are still there after Cleanup")
	}
	const minKeys = 200_000 // the memory of fewer keys would be too small to measure
	keys := max(100*s.Keys, minKeys)
	if testing.Short() {
		keys = minKeys
	}
	var growth [3]int64
	s.bubble(t, func(t *testing.T) {
		limiter := s.open(t, l)
		s.take(t, limiter, "k", 1)
		logAllocations(t, limiter)
		before := resident()
		for third := range growth {
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
			growth[third], before = after-before, after
		}
		runtime.KeepAlive(limiter)
	})
	t.Logf("%d keys that went idle took %d bytes, as many others later %d more, and others again %d", keys, growth[0], growth[1], growth[2])
	if minGrowth, laterGrowth := max(int64(20*keys), 8<<20), min(growth[1], growth[2]); laterGrowth > minGrowth && laterGrowth > growth[0]/2 {
		t.Errorf("memory grows with every key: after %d keys have gone idle, as many others take %d bytes more, and others again %d",
			keys, growth[1], growth[2])
	}
}

// logAllocations logs how often a call allocates. In parallel tests it logs nothing, because the memory of the other
// tests would count.
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

// fastestLimit returns the limit with which a drained key is full again soonest. It considers only limits below a
// thousand tokens per second.
func (s *suite) fastestLimit() Limit {
	best, soonest := s.limits[0], time.Duration(math.MaxInt64)
	for _, l := range s.limits {
		if d := refill(l, s.Promise); d >= time.Millisecond && d < soonest {
			best, soonest = l, d
		}
	}
	return best
}

// resident returns the resident memory of the process in bytes, or the heap if the system does not report it.
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
