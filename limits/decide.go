package limits

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir/engine"
)

// Decide checks a request against the limits. The handler of an allowed request must end it by [Result.Finish] if the
// outcome is known, and by [Result.Release] otherwise.
//
// If a limit has a MaxWait, Decide waits for tokens. A decision that needs no store, no Hold and no wait allocates
// nothing for up to eight limits, apart from the functions of the limits.
func (s *Set[R]) Decide(ctx context.Context, r R) (res Result[R]) {
	s.DecideInto(&res, ctx, r)
	return res
}

// DecideInto does what Decide does, and stores the result in res, which must be zero. Fronts use it, because copying a
// result is expensive.
func (s *Set[R]) DecideInto(res *Result[R], ctx context.Context, r R) {
	res.set, res.tightest = s, -1
	if s.options.Skip != nil && s.options.Skip(r) {
		return
	}
	if s.options.Modes == nil {
		for _, l := range s.limits {
			l.apply(r, res)
		}
	} else {
		s.applyModes(s.options.Modes(r), r, res)
	}
	if res.needs&(hasPlaces|isStored|mayWait) != 0 {
		res.decideOrAbandon(ctx, r)
		return
	}
	res.decide(ctx, r)
}

// decideOrAbandon gives back the tokens taken if a source or a callback panics. It is a separate function because the
// deferred call would cost time in every decision.
func (res *Result[R]) decideOrAbandon(ctx context.Context, r R) {
	decided := false
	defer func() {
		if !decided {
			res.abandon()
		}
	}()
	res.decide(ctx, r)
	decided = true
}

func (res *Result[R]) decide(ctx context.Context, r R) {
	if res.enforce(ctx) && res.needs&isShadow != 0 {
		res.takeShadows(ctx)
	}
	if res.isQueued {
		res.leave()
	}
	res.summarize()
	if o := &res.set.options; o.Metrics != nil || o.OnLimited != nil {
		res.set.report(r, res)
	}
}

// applyModes applies each limit in its mode, or [AsWritten] if mode is nil.
func (s *Set[R]) applyModes(mode func(limit int) Mode, r R, res *Result[R]) {
	for i, l := range s.limits {
		if mode != nil {
			switch mode(i) {
			case NotApplied:
				continue
			case InShadow:
				l = s.shadowed[i]
			case AsWritten:
			}
		}
		l.apply(r, res)
	}
}

// apply adds a check to the result if the limit applies to the request.
func (l *limit[R]) apply(r R, res *Result[R]) {
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
	if l.Source != nil || res.set.options.Text {
		var isLimited bool
		if text, isLimited = l.Key.Text(r); !isLimited {
			return
		}
	}
	c := res.add()
	c.limit, c.key, c.text, c.N, c.source = l, key, text, 1, l.Source
	if l.Tier != nil {
		c.Tier = l.Tier(r)
		c.key = key.Tier(c.Tier)
		if l.tiered != nil {
			c.source = l.sourceOf(c.Tier)
		}
	}
	if l.Quota != nil {
		p, err := l.Quota(r)
		if err = c.applyQuota(p, err); err != nil && l.QuotaElse != (engine.Policy{}) {
			res.set.failed(l, err)
			err = c.applyQuota(l.QuotaElse, nil)
		}
		if err != nil {
			res.set.failed(l, err)
			c.refuseQuota()
		}
	}
	if l.Formers.Any() {
		l.carryDebt(r, c)
	}
	if l.Cost != nil {
		c.N = l.Cost(r)
	}
	if l.Least != nil {
		c.least = uint32(min(max(l.Least(r), 1), 1<<32) - 1) // no limit is higher than 1<<32
	}
	res.needs |= l.needs
}

// carryDebt moves the key's debt from the previous limiters to the current limiter.
func (l *limit[R]) carryDebt(r R, c *Check[R]) {
	keyOf := func(former *engine.Limiter) (engine.Key, bool) {
		return l.Key(Hasher{limiter: former}, r)
	}
	if l.Spread != nil {
		l.Formers.MoveToSpread(l.Spread, keyOf)
		return
	}
	l.Formers.Move(l.Limiter, c.key, keyOf)
}

// applyQuota applies a policy that comes with the request to the check. If err is not nil, there is no policy, and
// applyQuota returns the error with the name of the limit.
func (c *Check[R]) applyQuota(p engine.Policy, err error) error {
	var quota engine.Quota
	source := c.source
	if err == nil && c.source != nil {
		var quotaSource Source
		switch quotaSource, err = c.source.Quota(p); {
		case err != nil:
		case quotaSource == nil:
			err = errors.New("the Source has no Source under the quota, and no error")
		default:
			source = quotaSource
		}
	}
	if err == nil && c.limit.Limiter != nil {
		quota, err = c.limit.Limiter.Quota(p)
	}
	if err != nil {
		return fmt.Errorf("limits: the Quota of limit %q: %w", c.limit.Name, err)
	}
	c.policy, c.source, c.key = p, source, c.key.With(quota)
	return nil
}

func (c *Check[R]) refuseQuota() {
	c.quotaFailed, c.policy = true, engine.Blocked()
	if c.limit.Limiter != nil {
		quota, _ := c.limit.Limiter.Quota(c.policy)
		c.key = c.key.With(quota)
	}
}

// attempt takes from all limits that are not in shadow mode, those in memory first, and reports whether all of them
// admit the request. Otherwise it gives everything back. If the request may wait for all limits that refuse, the
// verdict stays Admitted.
func (res *Result[R]) attempt(ctx context.Context, w *waiting) bool {
	for i := range res.n {
		c := res.at(i)
		if c.limit.Shadow || c.limit.Spread != nil || c.source != nil && !c.quotaFailed {
			continue
		}
		if c.quotaFailed {
			c.Outcome, res.verdict = Failed, Unavailable
		} else if c.takenFrom == nowhere {
			if c.takeMemory(); c.Outcome == Refused && !res.mayWaitFor(ctx, i, w) {
				res.verdict = Limited
			}
		}
		if res.verdict != Admitted {
			res.undo(ctx, i)
			return false
		}
	}
	if res.needs&(isSpread|isStored) == isSpread|isStored && !res.askSpreads(ctx, false) {
		return false
	}
	if res.needs&isStored != 0 && !res.takeStores(ctx) {
		return false
	}
	if w.check != noCheck {
		res.yield(ctx, w)
		return false
	}
	return res.needs&isSpread == 0 || res.askSpreads(ctx, true)
}

func (c *Check[R]) takeMemory() {
	l := c.limit
	if l.Spread != nil {
		c.takeSpread()
		return
	}
	if l.Hold {
		hold := new(Hold)
		if l.Least != nil {
			c.Decision, hold.receipt = l.Limiter.HoldUpTo(c.key, uint64(c.least)+1, c.N)
		} else {
			c.Decision, hold.receipt = l.Limiter.Hold(c.key, c.N)
		}
		hold.held, c.hold = &hold.receipt, hold
	} else {
		c.Decision, c.receipt = l.Limiter.TakeReceipt(c.key, c.N)
	}
	c.setOutcome(memory)
}

// setOutcome sets the outcome of the check by its decision. The tokens of an allowed request were taken from a place.
func (c *Check[R]) setOutcome(from place) {
	c.Outcome, c.answered = Refused, true
	if c.Decision.Allowed {
		c.Outcome, c.takenFrom = Allowed, from
	}
}

func (res *Result[R]) takeShadows(ctx context.Context) {
	for i := range res.n {
		if res.at(i).limit.Shadow {
			res.takeShadow(ctx, i)
			res.verdict = Admitted
		}
	}
}

func (res *Result[R]) takeShadow(ctx context.Context, i int) {
	c := res.at(i)
	switch {
	case c.quotaFailed:
		c.Outcome = Failed
	case c.source != nil:
		asks := []Ask{c.newAsk(i)}
		res.applyAnswers([]int{i}, asks, c.source.Store().TakeAll(ctx, asks))
		if c.Outcome == Failed && c.limit.OnLoss == Local {
			c.takeMemory()
		}
	default:
		if c.takeMemory(); c.Outcome == Refused && c.limit.MaxWait > 0 {
			c.takeAhead(ctx)
			c.setOutcome(memory)
		}
	}
	if c.Outcome == Refused {
		c.Outcome = ShadowRefused
	}
}

// undo gives back all tokens of a refused request, and peeks at limits in memory for current decisions. The decision of
// the i-th limit stays as it is.
func (res *Result[R]) undo(ctx context.Context, i int) {
	res.giveBackAll(ctx, false)
	for j := range res.n {
		c := res.at(j)
		if j == i || c.limit.Shadow || c.Outcome == Failed || c.Outcome == Refused {
			continue
		}
		c.Outcome = NotTaken
		if c.quotaFailed || c.source != nil {
			continue // a peek at a store costs as much as a take
		}
		c.Decision = c.peek()
		maxWait := c.limit.MaxWait
		if !c.Decision.Allowed && res.verdict == Limited && (maxWait == 0 || c.Decision.RetryAfter > maxWait) {
			c.Outcome = Refused
		}
	}
}

func (c *Check[R]) peek() engine.Decision {
	switch {
	case c.limit.Spread == nil:
	case c.Tier != 0:
		return engine.Decision{RetryAfter: engine.Never}
	default:
		return c.limit.Spread.Peek(c.N)
	}
	n := c.N
	if c.limit.Least != nil {
		n = uint64(c.least) + 1
	}
	d := c.limit.Limiter.Peek(c.key, n)
	if c.limit.Hold && n > d.Limit && d.Limit > 0 {
		return c.limit.Limiter.Peek(c.key, d.Limit)
	}
	return d
}

// giveBackAll gives tokens back to all limits. If beforeWait is true, the request keeps its places in flight.
func (res *Result[R]) giveBackAll(ctx context.Context, beforeWait bool) {
	var asks []Ask
	for i := range res.n {
		c := res.at(i)
		if beforeWait && c.limit.needs&hasPlaces != 0 {
			continue
		}
		if c.takenFrom == store {
			asks = append(asks, c.newAsk(i))
			c.takenFrom = nowhere
		}
		c.giveBack()
	}
	res.refund(ctx, asks)
}

// abandon cleans up after a panic. Tokens that a store has taken without a hold stay taken.
func (res *Result[R]) abandon() {
	for i := range res.n {
		if c := res.at(i); c.takenFrom == memory || c.hold != nil {
			c.giveBack()
		}
	}
	res.needs &^= hasPlaces
	res.leave()
}

// giveBack gives back, at most once, the tokens that the check has taken. Tokens that a store took without a hold are
// given back by the method refund instead.
func (c *Check[R]) giveBack() (gaveBack bool, lost uint64) {
	gaveBack = c.takenFrom != nowhere
	switch {
	case c.takenFrom != nowhere && c.hold != nil:
		gaveBack, lost = c.hold.Release()
	case c.takenFrom != memory:
	case c.turn != nil:
		c.turn.Leave()
		c.turn = nil
	default:
		c.receipt.Release()
	}
	c.takenFrom = nowhere
	return gaveBack, lost
}
