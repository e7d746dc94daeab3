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
	limits []Limit        // the limits for which New returns a limiter
	costs  bool           // the subtests use requests for more than one token
	timed  bool           // time can pass: in a bubble, or by the limiter's own clock
	own    ClockedLimiter // the limiter that was opened last, if it has a clock
	// spans has, for each limit, the fake time that may pass in a bubble. The time is limited because timers of
	// limiters run for real in a bubble.
	spans map[Limit]time.Duration
}

// longest bounds how far a bubble's clock moves. The clock starts in 2000, and nanoseconds since 1970 overflow in 2262.
const longest = 150 * 365 * 24 * time.Hour

// latest is the largest value that EarlyBy, LateBy and RetryUnit may have. Their sums must fit into a Duration.
const latest = 10 * 365 * 24 * time.Hour

// alive keeps all limiters reachable: see the pitfall about finalizers in the package comment.
var alive struct {
	sync.Mutex
	limiters []Limiter
}

// newSuite finds out which limits the limiter supports, whether it uses the bubble's time, and how much processor time
// the fake time costs.
func newSuite(t *testing.T, c Config) *suite {
	t.Helper()
	s := &suite{Config: c, timed: !c.Outside, spans: map[Limit]time.Duration{}}
	_, s.costs = c.Skip["Costs"]
	s.costs = !s.costs
	if s.Keys == 0 {
		s.Keys = 10_000
	}
	all := c.Limits
	if len(all) == 0 {
		all = Limits()
	}
	if c.Outside {
		s.timed = s.isClocked(t, all)
	}
	if !s.timed {
		all = slices.DeleteFunc(slices.Clone(all), func(l Limit) bool { return l.Per < 24*time.Hour })
	}
	for _, l := range all {
		var has bool
		s.bubble(t, func(t *testing.T) { has = s.open(t, l) != nil })
		if t.Failed() {
			t.FailNow()
		}
		if !has {
			t.Logf("New has no limiter for %v", l)
			continue
		}
		if err := s.checkTolerance(l); err != nil {
			t.Fatal(err)
		}
		if !s.costs && l.Capacity(c.Promise) > 10_000 {
			t.Logf("%v takes too long one by one", l)
			continue
		}
		s.limits = append(s.limits, l)
		if s.spans[l] = longest; !c.Outside {
			s.measure(t, l)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	if len(s.limits) == 0 {
		t.Fatal("New has no limiter for any limit")
	}
	if s.timed {
		s.ownClock(t)
	}
	return s
}

// isClocked reports whether the first supported limiter has a clock.
func (s *suite) isClocked(t *testing.T, all []Limit) bool {
	return slices.ContainsFunc(all, func(l Limit) bool {
		_, has := s.open(t, l).(ClockedLimiter)
		return has
	})
}

func (c Config) checkTolerance(l Limit) error {
	for name, by := range map[string]func(Limit) time.Duration{"EarlyBy": c.EarlyBy, "LateBy": c.LateBy} {
		if by != nil && (by(l) < 0 || by(l) > latest) {
			return fmt.Errorf("limitertest: Config.%s(%v) is %v: want 0 to %v", name, l, by(l), latest)
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
			s.own, _ = limiter.(ClockedLimiter)
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

// started is a time before everything that is measured.
var started = time.Now()

// measure sets how much fake time may pass in a bubble. This fake time costs about a fifth of a second of processor
// time.
func (s *suite) measure(t *testing.T, l Limit) {
	takes := func(fake time.Duration) time.Duration {
		begin := spent()
		s.bubble(t, func(t *testing.T) {
			s.take(t, s.open(t, l), "k", 1)
			time.Sleep(fake)
		})
		return spent() - begin
	}
	alone := min(takes(0), takes(0), takes(0))
	for fake := time.Second; fake < longest/4 && !t.Failed(); fake *= 4 {
		cost := takes(fake) - alone
		for try := 0; try < 3 && cost > 5*time.Millisecond && cost < 100*time.Millisecond; try++ {
			cost = min(cost, takes(fake)-alone)
		}
		if cost > 5*time.Millisecond { // the limiter has timers
			s.spans[l] = time.Duration(min(float64(fake)/float64(cost)*float64(time.Second/5), float64(longest)))
			// A busy machine makes the cost look higher. So the bubble gets enough time to fill a key, if that does not
			// cost too much more.
			if need := refill(l, s.Promise); need < longest/4 && need/25 < s.spans[l] {
				s.spans[l] = max(s.spans[l], 4*need)
			}
			t.Logf("%v: %v of fake time take %v, so a subtest waits for no more than %v", l, fake, cost, s.spans[l])
			return
		}
	}
}

// seeds returns how many random programs there are of each kind.
func (s *suite) seeds(l Limit) uint64 {
	if s.span(l) < longest {
		return 1
	}
	return 3
}

// span returns how much fake time may pass in a bubble.
func (s *suite) span(l Limit) time.Duration { return s.spans[l] }

// ownClock fails the test if the limiter does not use the bubble's time, or if tokens never come back.
func (s *suite) ownClock(t *testing.T) {
	t.Helper()
	possible := slices.DeleteFunc(slices.Clone(s.limits), func(l Limit) bool { return refill(l, s.Promise) > s.span(l)/2 })
	if len(possible) == 0 {
		l := slices.MinFunc(s.limits, func(a, b Limit) int { return cmp.Compare(refill(a, s.Promise), refill(b, s.Promise)) })
		t.Fatalf("no limit can be waited for: %v fills a key in %v, and a subtest can wait for %v: longer limits need "+
			"shorter ones next to them, and a limiter fewer timers", l, refill(l, s.Promise), s.span(l)/2)
	}
	l := slices.MaxFunc(possible, func(a, b Limit) int { return cmp.Compare(refill(a, s.Promise), refill(b, s.Promise)) })
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
	most := limit.Capacity(s.Promise) + 2
	for n := s.most(limit); n >= 1; n /= 2 {
		for sum < most && s.take(t, l, key, n).Allowed {
			sum += uint64(n)
		}
	}
	return sum
}

func (s *suite) most(l Limit) int64 {
	if !s.costs {
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

// slow returns the limit with which the fewest tokens come back during a subtest. It considers only limits with a small
// capacity.
func (s *suite) slow() Limit {
	small := slices.DeleteFunc(slices.Clone(s.limits), func(l Limit) bool {
		return l.Capacity(s.Promise) < 2 || l.Capacity(s.Promise) > 100
	})
	if len(small) == 0 {
		small = s.limits
	}
	return slices.MaxFunc(small, func(a, b Limit) int { return cmp.Compare(refill(a, s.Promise), refill(b, s.Promise)) })
}

// now returns the time in the form that events use.
func (s *suite) now() time.Duration {
	if s.own != nil {
		return time.Duration(s.own.Now().UnixNano())
	}
	return time.Duration(time.Now().UnixNano())
}

// pass lets time pass in the bubble, or on the limiter's own clock.
func (s *suite) pass(d time.Duration) {
	if s.own != nil {
		s.own.Advance(max(d, 0))
		return
	}
	time.Sleep(d)
}
