package limits

import (
	"cmp"
	"context"

	"github.com/weir-go/weir/engine"
)

// takeStores takes from the limits in stores, with one call for each store, and reports whether all admit the request.
func (res *Result[R]) takeStores(ctx context.Context) bool {
	asks := make([]Ask, 0, inlineChecks)
	indices := make([]int, 0, inlineChecks) // of checks; pointers to checks would move the result to the heap
	for i := range res.n {
		first := res.at(i)
		if !first.needsAsk() {
			continue
		}
		st := first.source.Store()
		asks, indices = asks[:0], indices[:0]
		for j := i; j < res.n; j++ {
			if c := res.at(j); c.needsAsk() && c.source.Store() == st {
				asks, indices = append(asks, c.newAsk(j)), append(indices, j)
			}
		}
		err := st.TakeAll(ctx, asks)
		if err != nil && ctx.Err() != nil && refusalTest(asks, err) == nil {
			// OnLoss does not apply when the client has gone, so that a client cannot avoid being counted by going
			// away.
			res.verdict, res.err = Ended, ctx.Err()
			res.undo(ctx, -1)
			return false
		}
		res.applyAnswers(indices, asks, err)
		for _, j := range indices {
			c := res.at(j)
			if c.Outcome == Failed && c.limit.OnLoss == Local && res.verdict == Admitted {
				if c.takeMemory(); c.Outcome == Refused {
					res.verdict = Limited
				}
			}
		}
		if res.verdict != Admitted {
			res.undo(ctx, -1)
			return false
		}
	}
	return true
}

func (c *Check[R]) needsAsk() bool {
	return c.source != nil && !c.limit.Shadow && !c.answered && c.Outcome != Failed
}

func (res *Result[R]) applyAnswers(indices []int, asks []Ask, err error) {
	isRefusal := refusalTest(asks, err)
	for i, j := range indices {
		c := res.at(j)
		c.Decision, c.answered = asks[i].Decision, asks[i].Err == nil && (err == nil || isRefusal != nil)
		c.Decision.RetryAfter, c.Decision.ResetAfter = max(c.Decision.RetryAfter, 0), max(c.Decision.ResetAfter, 0)
		switch {
		case !c.answered:
			res.set.failed(c.limit, cmp.Or(asks[i].Err, err))
			c.Decision, c.Outcome = engine.Decision{}, Failed
			if c.limit.OnLoss == Closed && isRefusal == nil {
				res.verdict = Unavailable
			}
		case isRefusal == nil:
			if c.Outcome, c.takenFrom = Allowed, store; asks[i].Held != nil {
				c.hold = &Hold{held: asks[i].Held}
			}
		case isRefusal(asks[i].Decision):
			c.Outcome, res.verdict = Refused, Limited
		default:
			c.Outcome = NotTaken
		}
	}
	if err != nil && isRefusal != nil {
		res.set.failed(res.at(indices[0]).limit, err)
	}
}

// refusalTest returns a function that reports whether a decision is a refusal, or nil if no decision is one. A zero
// Decision usually means that the store did not reach the ask. It is a refusal only if no other decision is a refusal
// and the store returned no error.
func refusalTest(asks []Ask, err error) func(engine.Decision) bool {
	isRefusal := func(d engine.Decision) bool { return !d.Allowed && d != (engine.Decision{}) }
	hasZero := false
	for _, a := range asks {
		if isRefusal(a.Decision) {
			return isRefusal
		}
		hasZero = hasZero || !a.Decision.Allowed && a.Err == nil
	}
	if err == nil && hasZero {
		return func(d engine.Decision) bool { return !d.Allowed }
	}
	return nil
}

// refund gives tokens back to stores, with one call for each. If a store panics, the others still get their tokens
// back.
func (res *Result[R]) refund(ctx context.Context, asks []Ask) {
	if len(asks) == 0 {
		return
	}
	st := asks[0].Source.Store()
	var sameStore, otherStores []Ask
	for _, a := range asks {
		if a.Source.Store() == st {
			sameStore = append(sameStore, a)
		} else {
			otherStores = append(otherStores, a)
		}
	}
	defer res.refund(ctx, otherStores)
	first := res.at(sameStore[0].check) // read before the store gets the asks
	if err := st.RefundAll(context.WithoutCancel(ctx), sameStore); err != nil {
		res.set.failed(first.limit, err)
	}
}
