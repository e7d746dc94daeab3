package limitertest

import (
	"cmp"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/limitertest/check"
)

// A suite has the Config of the limiter under test, and what Test found out about the limiter at the start.
type suite struct {
	Config
	limits       []Limit        // the limits for which New returns a limiter
	hasCosts     bool           // the subtests use requests for more than one token
	hasTime      bool           // time can pass: in a bubble, or by the limiter's own clock
	clockLimiter ClockedLimiter // the limiter that was opened last, if it has a clock
	// spans has, for each limit, the fake time that may pass in a bubble. The time is limited because timers of
	// limiters run for real in a bubble.
	spans map[Limit]time.Duration
}

// maxSpan bounds how far a bubble's clock moves. The clock starts in 2000, and nanoseconds since 1970 overflow in 2262.
const maxSpan = 150 * 365 * 24 * time.Hour

// maxTolerance is the largest value that EarlyBy, LateBy and RetryUnit may have. Their sums must fit into a Duration.
const maxTolerance = 10 * 365 * 24 * time.Hour

// alive keeps all limiters reachable: see the pitfall about finalizers in the package comment.
var alive struct {
	sync.Mutex
	limiters []Limiter
}

// newSuite finds out which limits the limiter supports, whether it uses the bubble's time, and how much processor time
// the fake time costs.
func newSuite(t *testing.T, c Config) *suite {
	t.Helper()
	s := &suite{Config: c, hasTime: !c.Outside, spans: map[Limit]time.Duration{}}
	_, s.hasCosts = c.Skip["Costs"]
	s.hasCosts = !s.hasCosts
	if s.Keys == 0 {
		s.Keys = 10_000
	}
	limits := c.Limits
	if len(limits) == 0 {
		limits = Limits()
	}
	if c.Outside {
		s.hasTime = s.isClocked(t, limits)
	}
	if !s.hasTime {
		limits = slices.DeleteFunc(slices.Clone(limits), func(l Limit) bool { return l.Per < 24*time.Hour })
	}
	for _, l := range limits {
		var isSupported bool
		s.bubble(t, func(t *testing.T) { isSupported = s.open(t, l) != nil })
		if t.Failed() {
			t.FailNow()
		}
		if !isSupported {
			t.Logf("New has no limiter for %v", l)
			continue
		}
		if err := s.checkTolerance(l); err != nil {
			t.Fatal(err)
		}
		if !s.hasCosts && l.Capacity(c.Promise) > 10_000 {
			t.Logf("%v takes too long one by one", l)
			continue
		}
		s.limits = append(s.limits, l)
		if s.spans[l] = maxSpan; !c.Outside {
			s.measure(t, l)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	if len(s.limits) == 0 {
		t.Fatal("New has no limiter for any limit")
	}
	if s.hasTime {
		s.checkClock(t)
	}
	return s
}

// isClocked reports whether the first supported limiter has a clock.
func (s *suite) isClocked(t *testing.T, limits []Limit) bool {
	return slices.ContainsFunc(limits, func(l Limit) bool {
		_, ok := s.open(t, l).(ClockedLimiter)
		return ok
	})
}

func (c Config) checkTolerance(l Limit) error {
	for name, tolerance := range map[string]func(Limit) time.Duration{"EarlyBy": c.EarlyBy, "LateBy": c.LateBy} {
		if tolerance != nil && (tolerance(l) < 0 || tolerance(l) > maxTolerance) {
			return fmt.Errorf("limitertest: Config.%s(%v) is %v: want 0 to %v", name, l, tolerance(l), maxTolerance)
		}
	}
	return nil
}

// open returns a limiter, or nil if New returns none for the limit.
func (s *suite) open(tb testing.TB, l Limit) Limiter {
	limiter := s.make(tb, l)
	if limiter != nil {
		alive.Lock()
		defer alive.Unlock()
		alive.limiters = append(alive.limiters, limiter)
		if s.Outside {
			s.clockLimiter, _ = limiter.(ClockedLimiter)
		}
	}
	return limiter
}

// make calls New, and turns a panic into a failure.
func (s *suite) make(tb testing.TB, l Limit) Limiter {
	tb.Helper()
	defer func() {
		if problem := recover(); problem != nil {
			tb.Fatalf("New(%v) panicked: %v\n%s", l, problem, debug.Stack())
		}
	}()
	return s.New(tb, l)
}

// bubble runs the function f in a bubble, or without a bubble if Config.Outside is set. The result ended reports
// whether all goroutines in the bubble ended.
func (s *suite) bubble(t *testing.T, f func(*testing.T)) (ended bool) {
	t.Helper()
	if s.Outside {
		f(t)
		return true
	}
	defer func() {
		switch problem := recover(); fmt.Sprint(problem) {
		case "<nil>":
		case "deadlock: main bubble goroutine has exited but blocked goroutines remain":
			ended = false // the goroutines stay; Leak reports them
		case "deadlock: all goroutines in bubble are blocked":
			t.Error("a call never returns: all goroutines are blocked")
		default:
			panic(problem)
		}
	}()
	synctest.Test(t, f)
	return true
}

// startTime is a time before everything that is measured.
var startTime = time.Now()

// measure sets how much fake time may pass in a bubble. This fake time costs about a fifth of a second of processor
// time.
func (s *suite) measure(t *testing.T, l Limit) {
	costOf := func(fake time.Duration) time.Duration {
		begin := processorTime()
		s.bubble(t, func(t *testing.T) {
			s.take(t, s.open(t, l), "k", 1)
			time.Sleep(fake)
		})
		return processorTime() - begin
	}
	baseCost := min(costOf(0), costOf(0), costOf(0))
	for fake := time.Second; fake < maxSpan/4 && !t.Failed(); fake *= 4 {
		cost := costOf(fake) - baseCost
		for try := 0; try < 3 && cost > 5*time.Millisecond && cost < 100*time.Millisecond; try++ {
			cost = min(cost, costOf(fake)-baseCost)
		}
		if cost > 5*time.Millisecond { // the limiter has timers
			s.spans[l] = time.Duration(min(float64(fake)/float64(cost)*float64(time.Second/5), float64(maxSpan)))
			// A busy machine makes the cost look higher. So the bubble gets enough time to fill a key, if that does not
			// cost too much more.
			if fillTime := refill(l, s.Promise); fillTime < maxSpan/4 && fillTime/25 < s.spans[l] {
				s.spans[l] = max(s.spans[l], 4*fillTime)
			}
			t.Logf("%v: %v of fake time take %v, so a subtest waits for no more than %v", l, fake, cost, s.spans[l])
			return
		}
	}
}

// seeds returns how many random programs there are of each kind.
func (s *suite) seeds(l Limit) uint64 {
	if s.span(l) < maxSpan {
		return 1
	}
	return 3
}

// span returns how much fake time may pass in a bubble.
func (s *suite) span(l Limit) time.Duration { return s.spans[l] }

// checkClock fails the test if the limiter does not use the bubble's time, or if tokens never come back.
func (s *suite) checkClock(t *testing.T) {
	t.Helper()
	candidates := slices.DeleteFunc(slices.Clone(s.limits), func(l Limit) bool { return refill(l, s.Promise) > s.span(l)/2 })
	if len(candidates) == 0 {
		l := slices.MinFunc(s.limits, func(a, b Limit) int { return cmp.Compare(refill(a, s.Promise), refill(b, s.Promise)) })
		t.Fatalf("no limit can be waited for: %v fills a key in %v, and a subtest can wait for %v: longer limits need "+
			"shorter ones next to them, and a limiter fewer timers", l, refill(l, s.Promise), s.span(l)/2)
	}
	l := slices.MaxFunc(candidates, func(a, b Limit) int { return cmp.Compare(refill(a, s.Promise), refill(b, s.Promise)) })
	s.bubble(t, func(t *testing.T) {
		limiter := s.open(t, l)
		begin := s.now()
		s.drain(t, limiter, l, "k")
		if s.Promise != LeakyQueue && s.now() != begin {
			t.Fatalf("Take sleeps: the requests of a full key took %v", s.now()-begin)
		}
		s.pass(2 * refill(l, s.Promise))
		if d := s.take(t, limiter, "k", 1); !d.Allowed {
			t.Fatalf("%v: nothing came back in twice the time that fills a key. Either nothing ever does, or the "+
				"limiter's time is not that of package time: then set Config.Outside", l)
		}
	})
}

// take calls Take of the limiter, and turns a panic into a failure.
func (s *suite) take(t *testing.T, l Limiter, key string, n int64) (d Decision) {
	t.Helper()
	defer func() {
		if problem := recover(); problem != nil {
			t.Errorf("Take(%.40q, %d) panicked: %v", key, n, problem)
			d = Decision{RetryAfter: -1}
		}
	}()
	return l.Take(key, n)
}

// drain takes all tokens of a key and returns their number. It stops when this number is slightly above the tokens of a
// full key.
func (s *suite) drain(t *testing.T, l Limiter, limit Limit, key string) (sum uint64) {
	t.Helper()
	ceiling := limit.Capacity(s.Promise) + 2
	for n := s.maxCost(limit); n >= 1; n /= 2 {
		for sum < ceiling && s.take(t, l, key, n).Allowed {
			sum += uint64(n)
		}
	}
	return sum
}

func (s *suite) maxCost(l Limit) int64 {
	if !s.hasCosts {
		return 1
	}
	return int64(min(l.Capacity(s.Promise), math.MaxInt64/4))
}

// refill returns how long a drained key takes to be full.
func refill(l Limit, p Promise) time.Duration {
	c, err := check.New(l, p)
	if err != nil {
		panic(err)
	}
	c.Add(Event{N: int64(min(l.Capacity(p), math.MaxInt64)), Allowed: true})
	return c.Until("", 0, l.Capacity(p))
}

// checker returns a model of the limit, with the tolerances of the Config.
func (s *suite) checker(l Limit) *check.Checker {
	c, err := check.New(l, s.Promise)
	if err != nil {
		panic(err) // Config.check has already checked the limit
	}
	if s.EarlyBy != nil {
		c.EarlyBy = s.EarlyBy(l)
	}
	if s.LateBy != nil {
		c.LateBy = s.LateBy(l)
	}
	return c
}

// slowestLimit returns the limit with which the fewest tokens come back during a subtest. It considers only limits with
// a small capacity.
func (s *suite) slowestLimit() Limit {
	candidates := slices.DeleteFunc(slices.Clone(s.limits), func(l Limit) bool {
		return l.Capacity(s.Promise) < 2 || l.Capacity(s.Promise) > 100
	})
	if len(candidates) == 0 {
		candidates = s.limits
	}
	return slices.MaxFunc(candidates, func(a, b Limit) int { return cmp.Compare(refill(a, s.Promise), refill(b, s.Promise)) })
}

// now returns the time in the form that events use.
func (s *suite) now() time.Duration {
	if s.clockLimiter != nil {
		return time.Duration(s.clockLimiter.Now().UnixNano())
	}
	return time.Duration(time.Now().UnixNano())
}

// pass lets time pass in the bubble, or on the limiter's own clock.
func (s *suite) pass(d time.Duration) {
	if s.clockLimiter != nil {
		s.clockLimiter.Advance(max(d, 0))
		return
	}
	time.Sleep(d)
}
