package limitertest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// cancel checks two cases: tokens are given back, or their reservation is canceled. In both cases the tokens must
// become available again exactly once.
func (s *suite) cancel(t *testing.T) {
	isTried := false
	s.cancelPart(t, "Refund", &isTried, func(t *testing.T, limiter Limiter, l Limit) bool {
		r, ok := limiter.(Refunder)
		if ok = ok && s.hasCosts; ok {
			s.refund(t, r, l)
		}
		return ok
	})
	for name, orders := range map[string][]string{"Reserve": {lastFirst, eachTwice}, "Order": {firstFirst}} {
		s.cancelPart(t, name, &isTried, func(t *testing.T, limiter Limiter, l Limit) bool {
			r, ok := limiter.(Reserver)
			if ok = ok && refill(l, s.Promise) < s.span(l)/64; ok {
				s.reserve(t, r, l, orders)
				if name == "Reserve" {
					s.reserveAtRandom(t, r, l)
				}
			}
			return ok
		})
	}
	s.cancelPart(t, "Wait", &isTried, func(t *testing.T, limiter Limiter, l Limit) bool {
		w, ok := limiter.(Waiter)
		if ok = ok && !s.Outside && refill(l, s.Promise) < s.span(l)/64; ok {
			s.wait(t, w, l)
		}
		return ok
	})
	if !isTried {
		t.Skip("the limiter has no Refund, Reserve or Wait")
	}
}

// cancelPart runs a part of the subtest Cancel, the function f, for each limit. f reports whether the limiter has the
// method that this part needs.
func (s *suite) cancelPart(t *testing.T, name string, isTried *bool, f func(*testing.T, Limiter, Limit) bool) {
	t.Run(name, func(t *testing.T) {
		if reason, ok := s.Skip["Cancel/"+name]; ok {
			t.Skip("not promised:", reason)
		}
		hasMethod := false
		for _, l := range s.limits {
			s.bubble(t, func(t *testing.T) { hasMethod = f(t, s.open(t, l), l) || hasMethod })
			if t.Failed() {
				break
			}
		}
		if *isTried = hasMethod || *isTried; !hasMethod {
			t.Skip("the limiter has none")
		}
	})
}

// refund gives back the tokens that were taken, and then further tokens. It checks how many tokens can be taken
// afterwards.
func (s *suite) refund(t *testing.T, limiter Refunder, l Limit) {
	capacity := l.Capacity(s.Promise)
	half := int64(capacity+1) / 2
	for i, c := range []struct {
		take, refund int64
		minTokens    uint64
	}{
		{half, half, capacity}, {int64(capacity), half, uint64(half)}, {int64(capacity), 2 * int64(capacity), 0}, {0, half, capacity},
		{half, int64(capacity), 0}, {half, math.MaxInt64, 0}, {half, -half, 0}, {half, math.MinInt64, 0}, {0, math.MaxInt64, capacity},
	} {
		key := fmt.Sprintf("refund-%d", i)
		if c.take > 0 && !s.take(t, limiter, key, c.take).Allowed {
			t.Fatalf("%v of %v: a fresh key was refused %d", s.Promise, l, c.take)
		}
		func() {
			defer func() {
				if problem := recover(); problem != nil {
					t.Errorf("Refund(%d) panicked: %v", c.refund, problem)
				}
			}()
			limiter.Refund(key, c.refund)
		}()
		maxTokens := capacity - uint64(c.take)
		if c.refund > 0 {
			maxTokens = min(capacity, maxTokens+uint64(c.refund))
		}
		if got := s.drain(t, limiter, l, key); got < c.minTokens || got > maxTokens {
			t.Fatalf("%v of %v: after Take(%d) and Refund(%d) %d could be taken, want %d to %d", s.Promise, l, c.take, c.refund, got,
				c.minTokens, maxTokens)
		}
	}
}

// The orders in which reservations are canceled.
const (
	lastFirst  = "the last first"
	firstFirst = "the first first"
	eachTwice  = "the last first, each twice"
)

// reserve makes and cancels eight reservations in each of the orders. Each time, it checks when the next caller's turn
// is.
func (s *suite) reserve(t *testing.T, limiter Reserver, l Limit, orders []string) {
	for i, order := range orders {
		key, model := fmt.Sprintf("reserve-%d", i), s.checker(l)
		model.Add(Event{At: s.now(), N: int64(s.drain(t, limiter, l, key)), Allowed: true})
		var cancels []func()
		for range 8 {
			if _, cancel, ok := limiter.Reserve(key, 1); ok {
				cancels = append(cancels, cancel)
			}
		}
		if order != firstFirst {
			slices.Reverse(cancels)
		}
		for _, cancel := range cancels {
			if cancel(); order == eachTwice {
				cancel()
			}
		}
		want := model.Until("", s.now(), 1)
		wait, cancel, ok := limiter.Reserve(key, 1)
		if !ok || wait > want+model.LateBy {
			t.Fatalf("%v of %v: after %d reservations of a drained key were canceled (%s), the next has to wait for %v (%t), want %v",
				s.Promise, l, len(cancels), order, wait, ok, want)
		}
		if wait+model.EarlyBy < want {
			t.Fatalf("%v of %v: after %d reservations of a drained key were canceled (%s), the next waits for only %v, want %v",
				s.Promise, l, len(cancels), order, wait, want)
		}
		cancel()
	}
}

// reserveAtRandom makes and cancels reservations at random. Reservations that are not canceled at their turn must stay
// within the limit.
func (s *suite) reserveAtRandom(t *testing.T, limiter Reserver, l Limit) {
	random := s.random(4)
	for round := range 10 {
		key, model := fmt.Sprintf("random-%d", round), s.checker(l)
		type reservation struct {
			event  Event
			cancel func()
		}
		var reservations []reservation
		if got := s.drain(t, limiter, l, key); got > 0 {
			reservations = append(reservations, reservation{event: Event{At: s.now(), N: int64(got), Allowed: true}})
		}
		for range 30 {
			if i := random.IntN(max(len(reservations), 1)); random.IntN(3) == 0 && i > 0 {
				if reservations[i].event.At > s.now() { // otherwise its turn has come, so it counts as used
					reservations[i].cancel()
					reservations = slices.Delete(reservations, i, i+1)
				}
			} else if wait, cancel, ok := limiter.Reserve(key, 1); ok {
				reservations = append(reservations, reservation{Event{At: s.now() + wait, N: 1, Allowed: true}, cancel})
			}
			s.pass(time.Duration(random.Int64N(int64(l.Per)/int64(min(l.Tokens, uint64(l.Per))) + 1)))
		}
		log := make([]Event, 0, len(reservations))
		for _, r := range reservations {
			log = append(log, r.event)
		}
		if report := model.Log(log); report.Excess > 0 {
			t.Fatalf("%v of %v: reservations of a drained key, some of which were canceled, have their turns so that %v", s.Promise, l, report)
		}
	}
}

// wait lets eight waiters time out and cancels eight more. Then it checks when the next waiter's turn is.
func (s *suite) wait(t *testing.T, limiter Waiter, l Limit) {
	key, model := "wait", s.checker(l)
	model.Add(Event{At: s.now(), N: int64(s.drain(t, limiter, l, key)), Allowed: true})
	waitInVain := func(ctx context.Context, giveUp func()) {
		var waiters sync.WaitGroup
		for range 8 {
			waiters.Go(func() {
				if err := limiter.Wait(ctx, key, 1); err == nil {
					t.Errorf("%v of %v: Wait of a drained key returned before its turn", s.Promise, l)
				}
			})
		}
		synctest.Wait()
		giveUp()
		waiters.Wait()
	}
	if half := model.Until("", s.now(), 1) / 2; half > 0 { // the time of these waiters ends before their turn
		ctx, stop := context.WithTimeout(context.Background(), half)
		defer stop()
		waitInVain(ctx, func() {})
	}
	waitInVain(context.WithCancel(context.Background()))
	want, begin := model.Until("", s.now(), 1), time.Now()
	lateCtx, stop := context.WithTimeout(context.Background(), want+model.LateBy+max(want/8, 1))
	defer stop()
	if err := limiter.Wait(lateCtx, key, 1); err != nil || time.Since(begin) > want+model.LateBy {
		t.Fatalf("%v of %v: after 16 waiters of a drained key gave up, the next waited for %v (%v), want %v", s.Promise, l,
			time.Since(begin), err, want)
	}
	if elapsed := time.Since(begin); elapsed+model.EarlyBy < want {
		t.Fatalf("%v of %v: after 16 waiters of a drained key gave up, the next waited for only %v, want %v", s.Promise, l, elapsed, want)
	}
}
