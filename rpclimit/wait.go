package rpclimit

import (
	"errors"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// reserve takes tokens that the limiter has refused ahead of their time, if that is soon enough and the call may wait.
// Of an algorithm that is no token bucket it says whether the call may try again.
func (c *check) reserve(res *Result, waited time.Duration) (again bool) {
	longest := c.limit.MaxWait - waited
	if deadline, ok := res.call.Context.Deadline(); ok {
		longest = min(longest, time.Until(deadline))
	}
	if c.decision.RetryAfter > longest || c.decision.RetryAfter == engine.Never || !c.limit.Shadow && !res.mayWait() {
		return false
	}
	ahead, err := c.limit.Limiter.ReserveKey(c.key, c.n, longest)
	if err != nil {
		// Else another call was faster, and the tokens are too far away now.
		return errors.Is(err, engine.ErrNotTokenBucket)
	}
	if c.ahead = ahead; ahead.Delay() == 0 || c.limit.Shadow { // they have come meanwhile, or are not waited for
		c.come()
	}
	c.decision.Allowed, c.decision.RetryAfter, c.decision.ResetAfter = true, 0, c.decision.ResetAfter+ahead.Delay()
	return false
}

// Waiting returns how many calls and messages wait for tokens now, of all limits with a MaxWait together.
func (l *Limits) Waiting() int64 {
	if l == nil {
		return 0
	}
	return min(l.waiting.Load(), l.maxWaiting) // one too many is about to leave
}

// mayWait reports whether the call may wait: it has a place among those that do, or takes one.
func (res *Result) mayWait() bool {
	if !res.queued {
		if res.queued = res.limits.waiting.Add(1) <= res.limits.maxWaiting; !res.queued {
			res.limits.waiting.Add(-1)
		}
	}
	return res.queued
}

// leave gives the place up.
func (res *Result) leave() {
	if res.queued {
		res.queued = false
		res.limits.waiting.Add(-1)
	}
}

// come notes that the time of all tokens has come.
func (res *Result) come() {
	for i := range res.n {
		if c := res.at(i); c.ahead != nil {
			c.come()
		}
	}
}

// come notes that the time of tokens has come: there is a receipt for them now.
func (c *check) come() { c.receipt, c.ahead = c.ahead.Receipt(), nil }

// end ends a call whose context is done while it waits: everything goes back that can.
func (res *Result) end(err error, wait time.Duration) {
	res.code = endedBy(err)
	for i := range res.n {
		c := res.at(i)
		if c.limit.Shadow {
			continue
		}
		refused := c.outcome == httplimit.Refused || c.ahead != nil && c.ahead.Delay() == wait
		c.giveBack()
		c.outcome = httplimit.NotTaken
		if refused {
			c.decision.Allowed, c.decision.RetryAfter, c.outcome = false, wait, httplimit.Refused
		}
	}
}
