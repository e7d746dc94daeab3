package rpclimit

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// Decide checks a call against the limits: when a stream opens, or of a unary call with its message. A front ends a
// refused call with [Result.Code], and an admitted one by [Result.Finish] if it is [Result.Refundable].
//
// It waits for tokens where a limit has a MaxWait. It does not allocate, as long as the limits' functions do not, at
// most eight limits apply, and none waits.
func (l *Limits) Decide(c Call) (res Result) {
	l.decide(&res, c, true, !c.Stream)
	return res
}

// DecideMessage checks a message of a stream against the limits that count messages.
func (l *Limits) DecideMessage(c Call) (res Result) {
	l.decide(&res, c, false, true)
	return res
}

func (l *Limits) decide(res *Result, c Call, calls, messages bool) {
	res.limits, res.call, res.shown = l, c, -1
	if c.Context == nil {
		res.call.Context = context.Background()
	}
	if l == nil || l.limits == nil {
		res.code = Internal
		return
	}
	if l.skip != nil && l.skip(res.call) {
		return
	}
	for i := range l.limits {
		limit := &l.limits[i]
		if (limit.On == Calls && calls || limit.On == Messages && messages) && (limit.Match == nil || limit.Match(res.call)) {
			res.apply(limit)
		}
	}
	decided := false
	if res.inFlight { // a callback that panics must not leave it so
		defer func() {
			if !decided {
				res.Release()
			}
		}()
	}
	if res.enforce() {
		for i := range res.n {
			if c := res.at(i); c.limit.Shadow {
				c.takeShadow(res)
			}
		}
	}
	res.sum()
	if l.metrics != nil || l.onLimited != nil || l.onError != nil {
		res.report()
	}
	decided = true
}

// apply adds a check to the result if the call has a key.
func (res *Result) apply(l *Limit) {
	key, limited := l.Key(httplimit.HasherOf(l.Limiter), res.call)
	if !limited {
		return
	}
	c := res.add()
	c.limit, c.key, c.n = l, key, 1
	if l.Tier != nil {
		c.tier = l.Tier(res.call)
		c.key = key.Tier(c.tier)
	}
	if l.Quota != nil {
		quota, err := l.Limiter.Quota(l.Quota(res.call))
		if err != nil {
			c.failure = fmt.Errorf("rpclimit: the Quota of limit %q: %w", l.Name, err)
		}
		c.key = key.With(quota)
	}
	if l.Cost != nil {
		c.n = l.Cost(res.call)
	}
	res.refundable = res.refundable || l.Refund != nil
	res.inFlight = res.inFlight || l.inFlight
	res.holding = res.holding || l.Hold
}

// enforce takes from the limits that are not in shadow mode and waits where it may, and reports whether all of them
// admit the call.
func (res *Result) enforce() bool {
	defer res.leave()
	for waited := time.Duration(0); ; {
		wait, ok := res.attempt(waited)
		if wait > 0 {
			if err := res.limits.pause(res.call.Context, wait); err != nil {
				res.end(err, wait)
				return false
			}
			waited += wait
		}
		if ok {
			res.come()
			return true
		}
		if wait == 0 {
			return false
		}
	}
}

// attempt takes from the limits one after the other. It is ok if all of them admit the call, after a wait if some of
// the tokens were taken ahead. If one refuses it gives back what was taken and looks at the others; a wait is then when
// to try again.
//
// engine.TakeAll cannot be used here, because it takes nothing ahead, and asks for one limit of each key; what it does
// is done here for both.
func (res *Result) attempt(waited time.Duration) (wait time.Duration, ok bool) {
	for i := range res.n {
		c := res.at(i)
		if c.limit.Shadow {
			continue
		}
		if c.failure != nil {
			res.code, c.outcome = Unavailable, httplimit.BackendFailed
			res.undo(i)
			return 0, false
		}
		again := c.take(res, waited)
		if c.outcome == httplimit.Refused {
			res.undo(i)
			if again {
				return c.decision.RetryAfter, false
			}
			res.code = ResourceExhausted
			return 0, false
		}
		if c.ahead != nil {
			wait = max(wait, c.ahead.Delay())
		}
	}
	return wait, true
}

// take takes from the limit, also ahead of the time. If it refuses, again says that the call may wait and try again.
func (c *check) take(res *Result, waited time.Duration) (again bool) {
	if c.limit.Hold {
		c.hold = new(engine.Hold)
		*c.hold, c.decision = c.limit.Limiter.HoldKey(c.key, c.n)
	} else {
		c.decision, c.receipt = c.limit.Limiter.TakeReceipt(c.key, c.n)
	}
	if !c.decision.Allowed && c.limit.MaxWait > 0 {
		again = c.reserve(res, waited)
	}
	c.outcome, c.taken = httplimit.Refused, c.decision.Allowed
	if c.taken {
		c.outcome = httplimit.Allowed
	}
	return again
}

// takeShadow takes from a limit in shadow mode.
func (c *check) takeShadow(res *Result) {
	if c.failure != nil {
		c.outcome = httplimit.BackendFailed
		return
	}
	c.take(res, 0)
	if c.outcome == httplimit.Refused {
		c.outcome = httplimit.ShadowRefused
	}
}

// undo gives back what was taken before check i refused, and looks at the others.
func (res *Result) undo(i int) {
	for j := range res.n {
		c := res.at(j)
		if j == i || c.limit.Shadow {
			continue
		}
		c.giveBack()
		c.outcome = httplimit.NotTaken
		if c.failure != nil {
			continue
		}
		c.decision = c.peek()
		if !c.decision.Allowed && c.decision.RetryAfter > c.limit.MaxWait {
			c.outcome = httplimit.Refused
		}
	}
}

// peek returns what the limit says without taking anything.
func (c *check) peek() engine.Decision {
	d := c.limit.Limiter.PeekKey(c.key, c.n)
	if c.limit.Hold && c.n > d.Limit && d.Limit > 0 {
		return c.limit.Limiter.PeekKey(c.key, d.Limit)
	}
	return d
}

// giveBack gives back what the check has taken, and reports whether it did: not a second time, nor what the handler has
// settled.
func (c *check) giveBack() (given bool) {
	given = c.taken
	switch {
	case !c.taken:
	case c.hold != nil:
		given = c.hold.Cancel()
	case c.ahead == nil:
		c.receipt.Refund(c.n)
	default:
		c.ahead.Cancel()
	}
	c.taken, c.ahead = false, nil
	return given
}

// sum chooses the tightest check and computes RetryAfter.
func (res *Result) sum() {
	decisive := httplimit.Allowed
	if res.code != OK {
		decisive = httplimit.Refused
	}
	for i := range res.n {
		c := res.at(i)
		if c.limit.Shadow || c.outcome != decisive {
			continue
		}
		if res.shown < 0 || c.tighter(res.at(res.shown)) {
			res.shown = i
		}
	}
	if res.code != ResourceExhausted {
		return
	}
	shown := res.at(res.shown)
	if shown.limit.inFlight && shown.decision.RetryAfter != engine.Never {
		return
	}
	res.retry = max(shown.decision.RetryAfter, 1)
	if jitter := res.limits.jitter; jitter > 0 && res.retry < engine.Never-jitter {
		res.retry += min(max(time.Duration(res.limits.random()*float64(jitter)), 0), jitter)
	}
}

// tighter reports whether the check says more than another. One of calls in flight, of which no time is known, does so
// only where there is no other, or where it refuses for ever.
func (c *check) tighter(other *check) bool {
	d, o := c.decision, other.decision
	never := func(d engine.Decision) bool { return d.RetryAfter == engine.Never }
	if c.limit.inFlight != other.limit.inFlight && (d.Allowed || never(d) == never(o)) {
		return other.limit.inFlight
	}
	if !d.Allowed {
		return d.RetryAfter > o.RetryAfter
	}
	return d.Remaining < o.Remaining || d.Remaining == o.Remaining && d.ResetAfter > o.ResetAfter
}

// report passes the outcomes to the metrics and the callbacks.
func (res *Result) report() {
	l := res.limits
	for i := range res.n {
		c := res.at(i)
		if l.onError != nil && c.failure != nil {
			l.onError(c.limit.Name, c.failure)
		}
		if l.metrics != nil && c.outcome != httplimit.NotTaken {
			l.metrics.Observe(c.limit.Name, c.outcome)
		}
		if l.onLimited != nil && (c.outcome == httplimit.Refused || c.outcome == httplimit.ShadowRefused) {
			l.onLimited(res.call, c.public())
		}
	}
}
