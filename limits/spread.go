package limits

import (
	"context"
	"errors"

	"github.com/weir-go/weir/engine"
)

func (l *Limit[R]) checkSpread() error {
	switch {
	case l.Spread == nil:
		return nil
	case l.Limiter != nil || l.Source != nil:
		return errors.New("it has a Spread and also a Limiter or a Source: want one of them")
	case l.Key != nil:
		return errors.New("a Spread is one bucket for all requests, but Key is set: leave it out, or use a Limiter")
	case l.Quota != nil:
		return errors.New("a Spread has one limit for all requests, but Quota is set")
	case l.MaxWait != 0:
		return errors.New("MaxWait is set, but requests cannot wait for tokens of a Spread")
	case l.Hold:
		return errors.New("the field Hold is set, but a Spread gives back only what has not come back by time")
	case l.Refund != nil:
		return errors.New("the field Refund is set, but a Spread gives back only what has not come back by time")
	}
	return nil
}

func (l *limit[R]) policy(tier int) engine.Policy {
	switch {
	case l.Spread == nil:
		return l.Limiter.Policy(tier)
	case tier == 0:
		return l.Spread.Policy()
	}
	return engine.Policy{}
}

// askSpreads takes from the limits with a Spread, or only peeks if isTake is false, and reports whether all admit. The
// peek comes before a call to a store, so that no store is called for a request that a Spread refuses.
func (res *Result[R]) askSpreads(ctx context.Context, isTake bool) bool {
	for i := range res.n {
		c := res.at(i)
		if c.limit.Shadow || c.limit.Spread == nil {
			continue
		}
		if isTake {
			c.takeSpread()
		} else if c.Decision = c.peek(); !c.Decision.Allowed {
			c.setOutcome(nowhere)
		}
		if c.Outcome == Refused {
			res.verdict = Limited
			res.undo(ctx, i)
			return false
		}
	}
	return true
}

func (c *Check[R]) takeSpread() {
	if c.Tier != 0 {
		c.Decision = engine.Decision{RetryAfter: engine.Never}
	} else {
		c.Decision, c.receipt = c.limit.Spread.TakeReceipt(c.N)
	}
	c.setOutcome(memory)
}
