package limits

import (
	"cmp"
	"context"

	"github.com/weir-go/weir/engine"
)

// takeStores takes from the limits in stores, with one call for each store, and reports whether all admit the request.
func (res *Result[R]) takeStores(ctx context.Context) bool {
	asks := make([]Ask, 0, inlineChecks)
	of := make([]int, 0, inlineChecks) // indices of checks; a pointer to a check would move the result to the heap
	for i := range res.n {
		first := res.at(i)
		if !first.unasked() {
			continue
		}
		st := first.source.Store()
		asks, of = asks[:0], of[:0]
		for j := i; j < res.n; j++ {
			if c := res.at(j); c.unasked() && c.source.Store() == st {
				asks, of = append(asks, c.ask(j)), append(of, j)
			}
		}
		err := st.TakeAll(ctx, asks)
		if err != nil && ctx.Err() != nil && refusals(asks, err) == nil {
			// OnLoss does not apply when the client has gone, so that a client cannot avoid being counted by going
			// away.
			res.verdict, res.err = Ended, ctx.Err()
			res.undo(ctx, -1)
			return false
		}
		res.answer(of, asks, err)
		for _, j := range of {
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

func (c *Check[R]) unasked() bool {
	return c.source != nil && !c.limit.Shadow && !c.answered && c.Outcome != Failed
}

func (res *Result[R]) answer(of []int, asks []Ask, err error) {
	refuses := refusals(asks, err)
	for i, j := range of {
		c := res.at(j)
		c.Decision, c.answered = asks[i].Decision, asks[i].Err == nil && (err == nil || refuses != nil)
		c.Decision.RetryAfter, c.Decision.ResetAfter = max(c.Decision.RetryAfter, 0), max(c.Decision.ResetAfter, 0)
		switch {
		case !c.answered:
			res.set.failed(c.limit, cmp.Or(asks[i].Err, err))
			c.Decision, c.Outcome = engine.Decision{}, Failed
			if c.limit.OnLoss == Closed && refuses == nil {
				res.verdict = Unavailable
			}
		case refuses == nil:
			if c.Outcome, c.taken = Allowed, store; asks[i].Held != nil {
				c.hold = &Hold{of: asks[i].Held}
			}
		case refuses(asks[i].Decision):
			c.Outcome, res.verdict = Refused, Limited
		default:
			c.Outcome = NotTaken
		}
	}
	if err != nil && refuses != nil {
		res.set.failed(res.at(of[0]).limit, err)
	}
}

// refusals returns a function that reports whether a decision is a refusal, or nil if no decision is one. A zero
// Decision usually means that the store did not reach the ask. It is a refusal only if no other decision is a refusal
// and the store returned no error.
func refusals(asks []Ask, err error) func(engine.Decision) bool {
	refuses := func(d engine.Decision) bool { return !d.Allowed && d != (engine.Decision{}) }
	zero := false
	for _, a := range asks {
		if refuses(a.Decision) {
			return refuses
		}
		zero = zero || !a.Decision.Allowed && a.Err == nil
	}
	if err == nil && zero {
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
	var same, others []Ask
	for _, a := range asks {
		if a.Source.Store() == st {
			same = append(same, a)
		} else {
			others = append(others, a)
		}
	}
	defer res.refund(ctx, others)
	first := res.at(same[0].check) // read before the store gets the asks
	if err := st.RefundAll(context.WithoutCancel(ctx), same); err != nil {
		res.set.failed(first.limit, err)
	}
}
