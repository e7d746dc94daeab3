package httplimit

import (
	"context"
	"net/http"

	"github.com/weir-go/weir/engine"
)

// Decide checks a request against the limits, without answering it. The caller answers: of an allowed request it writes
// the headers by [Result.WriteHeaders] and, if a limit has a Refund function, calls [Result.Finish] at the end, or if
// one is of requests in flight, [Result.Release]; a refused one it answers by [Result.Refuse].
//
// It waits for tokens where a limit has a MaxWait.
//
// It does not allocate, as long as the limits' functions do not, no limit has a [Backend], and at most eight limits
// apply, and none waits.
func (m *Middleware) Decide(r *http.Request) (res Result) {
	m.decide(&res, r)
	return res
}

// decide is Decide into a result that is zero: a copy of one costs more than all else here.
func (m *Middleware) decide(res *Result, r *http.Request) {
	res.m, res.shown = m, -1
	if m.skip != nil && m.skip(r) {
		return
	}
	for _, l := range m.limits {
		l.apply(r, res)
	}
	decided := false
	if res.inFlight { // a backend or a callback that panics must not leave it so
		defer func() {
			if !decided {
				res.Release()
			}
		}()
	}
	if res.enforce(r) && res.wait(r) {
		for i := range res.n {
			if c := res.at(i); c.limit.Shadow {
				c.take(r, res)
				if c.outcome == Refused {
					c.outcome = ShadowRefused
				}
			}
		}
	}
	res.leave()
	res.sum()
	if m.metrics != nil || m.onLimited != nil {
		m.report(r, res)
	}
	decided = true
}

// apply adds a check to the result if the limit matches the request.
func (l *limit) apply(r *http.Request, res *Result) {
	if l.Match != nil && !l.Match(r) {
		return
	}
	var key engine.Key
	var text string
	if l.Limiter != nil {
		var isLimited bool
		if key, isLimited = l.Key(Hasher{limiter: l.Limiter}, r); !isLimited {
			return
		}
	}
	if l.Backend != nil || res.m.secret != nil {
		var isLimited bool
		if text, isLimited = l.Key.Text(r); !isLimited {
			return
		}
	}
	c := res.add()
	c.limit, c.key, c.text, c.n, c.backend = l, key, text, 1, l.Backend
	if l.Tier != nil {
		tier := l.Tier(r)
		c.key = key.Tier(tier)
		c.tier = uint8(min(uint(tier), uint(len(l.policies)-1))) // the last one is what no limiter has
	}
	if l.Quota != nil {
		c.ask(r)
	}
	if l.Cost != nil {
		c.n = l.Cost(r)
	}
	res.refundable = res.refundable || l.Refund != nil
	res.inFlight = res.inFlight || l.inFlight
}

// enforce takes from the limits that are not in shadow mode, one after the other, and reports whether all of them admit
// the request. If one does not, it gives back what was taken and peeks at the others.
//
// engine.TakeAll cannot be used here, since some limits may have backends and others may stand in for one that failed;
// what it does for limiters is done here for both.
func (res *Result) enforce(r *http.Request) bool {
	for i := range res.n {
		c := res.at(i)
		if c.limit.Shadow {
			continue
		}
		c.take(r, res)
		if c.outcome == Refused {
			res.verdict = limited
		} else if c.outcome == BackendFailed && (c.limit.OnError == FailClosed || c.failure != nil) {
			res.verdict = unavailable
		}
		if res.verdict != pass {
			res.undo(r, i)
			return false
		}
	}
	return true
}

// undo gives back what was taken before check i refused, and peeks at the others.
func (res *Result) undo(r *http.Request, i int) {
	for j := range res.n {
		c := res.at(j)
		if j == i || c.limit.Shadow {
			continue
		}
		c.giveBack(r, res.m)
		if c.outcome != BackendFailed {
			c.outcome = NotTaken
		}
		if c.limit.Backend != nil {
			continue // to a backend a peek costs as much as a take
		}
		c.decision = c.limit.Limiter.PeekKey(c.key, c.n)
		if !c.decision.Allowed && res.verdict == limited {
			c.outcome = Refused
		}
	}
}

// take takes from the limit.
func (c *check) take(r *http.Request, res *Result) {
	if c.limit.Backend != nil && c.failure == nil {
		d, err := c.backend.Take(r.Context(), c.text, c.n)
		if err == nil {
			d.RetryAfter, d.ResetAfter = max(d.RetryAfter, 0), max(d.ResetAfter, 0)
			c.decided(d, remote)
			return
		}
		res.m.failed(c.limit, err)
		c.outcome = BackendFailed
		if c.limit.OnError != FailLocal {
			return
		}
	}
	if c.failure != nil {
		res.m.failed(c.limit, c.failure)
		c.outcome = BackendFailed
		return
	}
	d, receipt := c.limit.Limiter.TakeReceipt(c.key, c.n)
	c.receipt = receipt
	if !d.Allowed && c.limit.MaxWait > 0 && d.RetryAfter <= c.limit.MaxWait && res.mayWait() {
		c.reserve(&d)
	}
	c.decided(d, local)
}

func (c *check) decided(d engine.Decision, by source) {
	c.decision, c.outcome, c.answered = d, Refused, true
	if d.Allowed {
		c.outcome, c.taken = Allowed, by
	}
}

// never reports whether the limit refuses the request for ever.
func (c *check) never() bool { return c.decision.RetryAfter == engine.Never }

// giveBack gives back what the check has taken. A second call does nothing.
func (c *check) giveBack(r *http.Request, m *Middleware) {
	switch c.taken {
	case local:
		c.giveBackLocal()
	case nowhere:
	case remote:
		if err := c.backend.Refund(context.WithoutCancel(r.Context()), c.text, c.n); err != nil {
			m.failed(c.limit, err)
		}
	}
	c.taken = nowhere
}

// sum chooses the check that the headers show, and computes Retry-After.
func (res *Result) sum() {
	for i := range res.n {
		c := res.at(i)
		decisive := Allowed
		if res.verdict == limited {
			decisive = Refused
		}
		if c.limit.Shadow || c.outcome != decisive || c.isUnlimited() {
			continue
		}
		if res.shown < 0 || c.tighter(res.at(res.shown), res.verdict) {
			res.shown = i
		}
	}
	if res.verdict != limited || res.never() || res.at(res.shown).limit.inFlight {
		return
	}
	res.retry = max(seconds(res.at(res.shown).decision.RetryAfter), 1)
	if res.m.jitter > 0 {
		res.retry += min(int64(res.m.random()*float64(res.m.jitter+1)), res.m.jitter)
	}
}

// tighter reports whether the check is shown rather than another: of refusals the longer RetryAfter, else the smaller
// Remaining. One of requests in flight, of which headers say nothing, is shown only where there is no other, or where
// it refuses for ever.
func (c *check) tighter(other *check, v verdict) bool {
	if c.limit.inFlight != other.limit.inFlight && (v != limited || c.never() == other.never()) {
		return other.limit.inFlight
	}
	if v == limited {
		return c.decision.RetryAfter > other.decision.RetryAfter
	}
	if c.decision.Remaining != other.decision.Remaining {
		return c.decision.Remaining < other.decision.Remaining
	}
	return c.decision.ResetAfter > other.decision.ResetAfter
}
