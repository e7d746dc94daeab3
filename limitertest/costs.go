package limitertest

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weir-go/weir/limitertest/check"
)

// costing checks unusual costs. A request that can never be admitted, or that costs more than what is left, takes
// nothing. A request for 0 or fewer tokens adds no tokens.
func (s *suite) costing(t *testing.T) {
	for _, l := range s.limits {
		if s.nearEdge(l) {
			t.Logf("%v: an aligned window is about to end", l)
			continue
		}
		s.bubble(t, func(t *testing.T) {
			limiter, capacity := s.open(t, l), l.Capacity(s.Promise)
			for i, n := range oddCosts(l, capacity) {
				for j, taken := range []uint64{0, 1, capacity} {
					key := fmt.Sprintf("cost-%d-%d", i, j)
					if taken > 0 && !s.take(t, limiter, key, int64(taken)).Allowed {
						t.Fatalf("%v of %v: a fresh key was refused %d of %d", s.Promise, l, taken, capacity)
					}
					d := s.take(t, limiter, key, n)
					if n > int64(capacity-taken) && d.Allowed {
						t.Fatalf("%v of %v: after Take(%d) there were %d, and Take(%d) was admitted", s.Promise, l, taken,
							capacity-taken, n)
					}
					want := capacity - taken
					if n > 0 && d.Allowed {
						want -= uint64(n)
					}
					if got := s.drain(t, limiter, l, key); got != want {
						t.Fatalf("%v of %v: after Take(%d) and Take(%d), which was %s, %d could be taken at the same instant, want %d",
							s.Promise, l, taken, n, map[bool]string{true: "admitted", false: "refused"}[d.Allowed], got, want)
					}
				}
			}
		})
		if t.Failed() {
			return
		}
	}
}

// oddCosts returns costs to try. For some of these costs, the product with the time of a token overflows.
func oddCosts(l Limit, capacity uint64) (costs []int64) {
	costs = []int64{0, -1, -5, -int64(capacity), math.MinInt32, math.MinInt64, math.MinInt64 + 1}
	for _, n := range []uint64{2, 3, capacity - 1, capacity, capacity + 1, 2 * capacity, 1<<31 - 1, 1 << 31, 1 << 32, 1<<32 + 1,
		1 << 53, 1<<53 + 1, 1 << 62, math.MaxInt64 - 1, math.MaxInt64} {
		costs = append(costs, int64(min(n, math.MaxInt64)))
	}
	for _, d := range []uint64{uint64(l.Per), max(uint64(l.Per)/l.Tokens, 1)} {
		for _, modulus := range []uint64{1 << 63, math.MaxUint64} {
			if n := modulus/d + 1; d > 1 && n < math.MaxInt64 {
				costs = append(costs, int64(n), int64(n+1))
			}
		}
	}
	return costs
}

// retry checks that a request is admitted after RetryAfter, and refused one RetryUnit before that time.
func (s *suite) retry(t *testing.T) {
	hasRetry := false
	for _, l := range s.limits {
		for seed := range uint64(4) {
			s.bubble(t, func(t *testing.T) { hasRetry = s.checkRetry(t, l, seed) || hasRetry })
			if t.Failed() {
				return
			}
		}
	}
	if !hasRetry {
		t.Skip("RetryAfter is negative: it promises none")
	}
}

// checkRetry drains keys, and then sends further requests for these keys. It reports whether the limiter returned a
// RetryAfter.
func (s *suite) checkRetry(t *testing.T, l Limit, seed uint64) (hasRetry bool) {
	limiter, random, model := s.open(t, l), s.random(seed), s.checker(l)
	s.pass(time.Duration(random.Int64N(int64(max(min(l.Per, s.span(l)/16), 1)))))
	n := 1 + random.Int64N(s.maxCost(l))
	unit := max(s.RetryUnit, 1)
	for i, adjust := range []func(time.Duration) time.Duration{
		func(wait time.Duration) time.Duration { return wait / 2 },
		func(wait time.Duration) time.Duration { return wait - unit - model.LateBy - model.EarlyBy },
		func(wait time.Duration) time.Duration { return wait },
	} {
		key := fmt.Sprintf("retry-%d", i)
		s.drain(t, limiter, l, key)
		d := s.take(t, limiter, key, n)
		if full := refill(l, s.Promise); !d.Allowed && d.RetryAfter-unit-model.LateBy > full {
			t.Fatalf("%v of %v: Take(%d) of a drained key was refused with a RetryAfter of %v, and the key is full after %v", s.Promise,
				l, n, d.RetryAfter, full)
		}
		wait := adjust(d.RetryAfter)
		if d.Allowed || d.RetryAfter < 0 || wait > s.span(l)/4 || i == 0 && d.RetryAfter < 4*(unit+model.LateBy) {
			continue
		}
		hasRetry = true
		if d.RetryAfter == 0 {
			t.Fatalf("%v of %v: Take(%d) was refused with a RetryAfter of 0", s.Promise, l, n)
		}
		if wait < 0 {
			continue
		}
		s.pass(wait)
		if second := s.take(t, limiter, key, n); second.Allowed != (wait == d.RetryAfter) {
			t.Fatalf("%v of %v: Take(%d) of a drained key was refused with a RetryAfter of %v; after %v it was %s", s.Promise, l, n,
				d.RetryAfter, wait, map[bool]string{true: "admitted", false: "refused"}[second.Allowed])
		}
	}
	if tooMany := s.maxCost(l) + 1; s.hasCosts && hasRetry {
		if d := s.take(t, limiter, "never", tooMany); d.RetryAfter >= 0 && d.RetryAfter < 100*365*24*time.Hour && !d.Allowed {
			t.Fatalf("%v of %v: Take(%d) can never pass, and RetryAfter is %v: want it below 0, or %v", s.Promise, l, tooMany,
				d.RetryAfter, check.Never)
		}
	}
	return hasRetry
}
