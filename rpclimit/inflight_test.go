package rpclimit_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/rpclimit"
)

func inFlight(t testing.TB, limit uint64) rpclimit.Limit {
	return rpclimit.Limit{Name: "in flight", Key: rpclimit.Everyone,
		Limiter: testclock.New().Limiter(t, engine.Concurrency(limit, time.Hour))}
}

func left(l *engine.Limiter) uint64 { return l.Peek(l.KeyUint64(0), 0).Remaining }

// TestACallIsInFlightUntilItEnds: a call gives its place back once. How the call ends does not matter.
func TestACallIsInFlightUntilItEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, end := range map[string]func(res *rpclimit.Result){
		"well":            func(res *rpclimit.Result) { res.Finish(ok) },
		"badly":           func(res *rpclimit.Result) { res.Finish(rpclimit.Internal) },
		"nobody knows":    func(res *rpclimit.Result) { res.Release() },
		"more than once":  func(res *rpclimit.Result) { res.Release(); res.Finish(ok); res.Finish(ok); res.Release() },
		"its client went": func(res *rpclimit.Result) { res.Finish(rpclimit.Canceled) },
	} {
		l := inFlight(t, 2)
		set := newLimits(t, []rpclimit.Limit{l})
		other := set.Decide(from(""))
		c := from("")
		c.Context = ctx
		res := set.Decide(c)
		require.True(t, res.Allowed())
		require.True(t, res.InFlight())
		require.True(t, res.Refundable())
		require.Equal(t, []rpclimit.Code{refused}, codes(set, 1, from("")))
		end(&res)
		assert.EqualValues(t, 1, left(l.Limiter), name)
		other.Finish(ok)
		assert.EqualValues(t, 2, left(l.Limiter), name)
	}
}

// TestCallsInFlightBesideRates: a limit in flight and a limit of the rate apply together. If one of them refuses,
// nothing is taken from the other. RetryAfter is the wait for the rate.
func TestCallsInFlightBesideRates(t *testing.T) {
	for _, rateFirst := range []bool{false, true} {
		c := testclock.New()
		rate := rpclimit.Limit{Name: "rate", Key: rpclimit.Everyone, Limiter: c.Burst(t, 2)}
		gate := inFlight(t, 1)
		list := []rpclimit.Limit{gate, rate}
		if rateFirst {
			list = []rpclimit.Limit{rate, gate}
		}
		set := newLimits(t, list, rpclimit.RetryJitter(time.Nanosecond, func() float64 { return 0 }))
		first := set.Decide(from(""))
		require.True(t, first.Allowed())
		shown, _ := first.Tightest()
		assert.Equal(t, "rate", shown.Name())
		res := set.Decide(from(""))
		assert.Equal(t, refused, res.Code(), "one is inside")
		assert.Equal(t, "too many calls are in flight", res.Reason())
		assert.Zero(t, res.RetryAfter())
		assert.False(t, res.InFlight())
		assert.EqualValues(t, 1, left(rate.Limiter), "and it took nothing from the rate")
		first.Finish(ok)
		second := set.Decide(from(""))
		require.True(t, second.Allowed())
		res = set.Decide(from(""))
		assert.Equal(t, time.Second, res.RetryAfter(), "both refuse: the time of the rate is known")
		assert.Equal(t, "rate limit exceeded", res.Reason())
		second.Finish(ok)
		res = set.Decide(from(""))
		assert.Equal(t, refused, res.Code(), "the rate")
		assert.EqualValues(t, 1, left(gate.Limiter), "it is not inside")
	}
}

// TestACallThatIsMoreThanTheLimitInFlight: a call whose cost is higher than a limit of calls in flight never passes.
func TestACallThatIsMoreThanTheLimitInFlight(t *testing.T) {
	l := inFlight(t, 2)
	l.Cost = func(rpclimit.Call) uint64 { return 3 }
	res := one(t, l).Decide(from(""))
	assert.Equal(t, engine.Never, res.RetryAfter())
	assert.Equal(t, "the call costs more than the limit of calls in flight", res.Reason())
}

// TestNoMoreCallsInside: never are more calls in flight at the same time than the limit allows. The other calls are
// refused.
func TestNoMoreCallsInside(t *testing.T) {
	const limit = 3
	l := inFlight(t, limit)
	set := newLimits(t, []rpclimit.Limit{l})
	var inside atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				res := set.Decide(from(""))
				if !res.Allowed() {
					continue
				}
				if n := inside.Add(1); n > limit {
					t.Errorf("%d are inside", n)
				}
				inside.Add(-1)
				res.Finish(ok)
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, limit, left(l.Limiter))
}

// TestAShadowedLimitInFlight: a limit in flight in shadow mode counts calls while they are in flight, and refuses none.
func TestAShadowedLimitInFlight(t *testing.T) {
	l := inFlight(t, 1)
	l.Shadow = true
	set := newLimits(t, []rpclimit.Limit{l})
	first, second := set.Decide(from("")), set.Decide(from(""))
	assert.True(t, second.Allowed())
	assert.Equal(t, limits.ShadowRefused, second.Check(0).Outcome)
	second.Finish(ok)
	assert.Zero(t, left(l.Limiter), "the second has not entered")
	first.Finish(ok)
	assert.EqualValues(t, 1, left(l.Limiter))
}

// TestADecisionThatPanicsLeaves: a decision takes a place in flight and then panics. The place is given back.
func TestADecisionThatPanicsLeaves(t *testing.T) {
	l := inFlight(t, 1)
	set := newLimits(t, []rpclimit.Limit{l}, rpclimit.ObserveWith(panics{}))
	assert.Panics(t, func() { set.Decide(from("")) })
	assert.EqualValues(t, 1, left(l.Limiter))
}

type panics struct{}

func (panics) Observe(string, limits.Outcome) { panic("observed") }

// TestLimitsThatMakeNoSense: New refuses limits that make no sense.
func TestLimitsThatMakeNoSense(t *testing.T) {
	rate := func() rpclimit.Limit { return rpclimit.Limit{Name: "rate", Limiter: testclock.New().Burst(t, 1)} }
	for want, c := range map[string]struct {
		limit  rpclimit.Limit
		change func(*rpclimit.Limit)
	}{
		"Refund is set, but a limit of requests in flight": {inFlight(t, 1), func(l *rpclimit.Limit) { l.Refund = rpclimit.RefundCodes(ok) }},
		"Hold is set, but a limit of requests in flight":   {inFlight(t, 1), func(l *rpclimit.Limit) { l.Hold = true }},
		"requests in flight, whose end is not known":       {inFlight(t, 1), func(l *rpclimit.Limit) { l.MaxWait = time.Second }},
		"Hold and MaxWait are both set":                    {rate(), func(l *rpclimit.Limit) { l.Hold, l.MaxWait = true, time.Second }},
	} {
		if c.limit.Limiter.Algorithm() == engine.AlgorithmConcurrency {
			require.NoError(t, c.limit.Limiter.SetPolicy(engine.Unlimited())) // it still limits calls in flight
		}
		c.change(&c.limit)
		_, err := rpclimit.New([]rpclimit.Limit{c.limit})
		assert.ErrorContains(t, err, want)
	}
}
