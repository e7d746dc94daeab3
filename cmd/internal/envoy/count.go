package envoy

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
)

// count takes the hits of all checks and marks the checks that are over the limit. It adds all checks to the
// statistics.
func (s *Service) count(ctx context.Context, checks []check) error {
	if s.tables.inStore {
		s.decideFromMemo(checks)
		return s.countStored(ctx, checks, (*check).isPending)
	}
	for i := range checks {
		if c := &checks[i]; c.isCounted() {
			if err := c.take(ctx, s.now()); err != nil {
				return err
			}
			c.addStats(*s.options.NearLimitRatio)
		}
	}
	return nil
}

// countAllOrNothing is count under all_or_nothing: if one check is refused, no check is charged. Hits that were taken
// before the refusal are given back. Counters after the refusal are only read. engine.TakeAll cannot do this: a request
// may have any number of descriptors, several may share a counter, and rules in shadow mode are always charged.
func (s *Service) countAllOrNothing(ctx context.Context, checks []check) error {
	if s.tables.inStore {
		return s.countAllOrNothingStored(ctx, checks)
	}
	isRefused := false
	for i := range checks {
		c := &checks[i]
		if !c.isCounted() {
			continue
		}
		var err error
		if isRefused && !c.isRefund {
			err = c.wouldPass(ctx, s.now())
		} else {
			err = c.takeWithinLimit(ctx, s.now())
		}
		if err != nil {
			return err
		}
		c.addStats(*s.options.NearLimitRatio)
		if !isRefused && c.isRefused() {
			isRefused = true
			for j := range checks[:i+1] {
				if err := checks[j].undo(ctx, s.now()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// countUnlessOver counts like envoyproxy/ratelimit with STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT. It reads all counters
// first. If some checks do not fit, it charges only these, and answers the others from what is left afterwards. As in
// envoyproxy/ratelimit, concurrent requests can come between the reads and the charges.
func (s *Service) countUnlessOver(ctx context.Context, checks []check) error {
	isOver := s.decideFromMemo(checks)
	if !isOver {
		err := s.forEach(checks, func(c *check) bool { return c.isCounted() && !c.isRefund }, func(c *check) error {
			return c.wouldPass(ctx, s.now())
		})
		if err != nil {
			return err
		}
		isOver = slices.ContainsFunc(checks, func(c check) bool { return c.isCounted() && c.isOver })
	}
	isSkipped := func(c *check) bool { return isOver && !c.isOver && !c.isRefund }
	if s.tables.inStore {
		err := s.forEach(checks, func(c *check) bool { return c.isCounted() && isSkipped(c) }, func(c *check) error { return c.skip(ctx, s.now()) })
		if err != nil {
			return err
		}
		return s.countStored(ctx, checks, func(c *check) bool { return c.isPending() && !c.skipped })
	}
	for i := range checks {
		c := &checks[i]
		if !c.isCounted() {
			continue
		}
		take := c.take
		if isSkipped(c) {
			take = c.skip
		}
		if err := take(ctx, s.now()); err != nil {
			return err
		}
		c.addStats(*s.options.NearLimitRatio)
	}
	return nil
}

// skip is called instead of take for a check that is not charged because another check is over the limit. It reads the
// counter again, because the other check may have charged the same counter.
func (c *check) skip(ctx context.Context, now time.Time) error {
	c.skipped = true
	err := c.peek(ctx, now)
	c.before = c.after - min(c.after, c.hits) // for the statistics, as if these hits had been counted last
	return err
}

// isCounted reports whether the check has hits to count.
func (c *check) isCounted() bool { return c.applies && !c.limit.Unlimited }

// wouldPass checks whether the hits would pass, and charges nothing.
func (c *check) wouldPass(ctx context.Context, now time.Time) error {
	if err := c.peek(ctx, now); err != nil || c.table == nil {
		return err
	}
	switch {
	case c.withoutStore:
		c.isOver = c.hits > c.remaining
	case c.limit.Algorithm == engine.AlgorithmFixedWindow:
		c.isOver = c.before+c.hits > c.capacity()
	default:
		d, err := c.table.peek(ctx, c.counter, c.hits)
		c.isOver = !d.Allowed
		if err != nil {
			return c.decideWithoutStore(ctx, now, 0, err)
		}
	}
	return nil
}

// undo gives back the charged hits. A check that is over the limit remains over the limit.
func (c *check) undo(ctx context.Context, now time.Time) error {
	if c.charged == 0 {
		return nil
	}
	if c.receipt != (engine.Receipt{}) {
		c.receipt.Refund(c.charged)
	} else if err := c.table.refund(ctx, c.counter, c.charged); err != nil {
		return err
	}
	c.charged = 0
	wasOver := c.isOver
	err := c.peek(ctx, now)
	c.isOver = wasOver
	return err
}

func (s *Service) now() time.Time { return s.options.now() }

// take charges the hits, or gives them back, and compares the count with the limit.
func (c *check) take(ctx context.Context, now time.Time) error {
	switch {
	case c.table == nil: // the limit is 0, so it needs no table
		c.isOver, c.after = c.hits > 0 && !c.isRefund, c.hits
		return nil
	case c.isRefund:
		if err := c.table.refund(ctx, c.counter, c.hits); err != nil {
			return c.decideWithoutStore(ctx, now, 0, err)
		}
		return c.peek(ctx, now)
	case c.limit.Algorithm == engine.AlgorithmFixedWindow:
		d, err := c.charge(ctx)
		if err != nil {
			return c.decideWithoutStore(ctx, now, c.hits, err)
		}
		c.applyCount(d, now)
		return nil
	}
	take := c.takeLimited
	switch {
	case c.overdraws():
		take = c.overdraw
	case c.hits == 0: // a store does not compare 0 hits with the limit, so only read the count
		return c.peek(ctx, now)
	}
	if err := take(ctx); err != nil {
		return c.decideWithoutStore(ctx, now, c.hits, err)
	}
	return nil
}

func (c *check) takeLimited(ctx context.Context) error {
	d, err := c.table.take(ctx, c.counter, c.hits)
	c.applyDecision(d)
	return err
}

func (c *check) applyCount(d engine.Decision, now time.Time) {
	c.after = maxHits - d.Remaining
	c.before = c.after - min(c.charged, c.after)
	c.compare(c.after)
	c.reset = c.untilNext(d, now)
}

// untilNext returns how long the current window still lasts. It uses the store's clock if the decision shows the time.
func (c *check) untilNext(d engine.Decision, now time.Time) time.Duration {
	if _, isStored := c.table.(storeTable); isStored && d.ResetAfter > 0 {
		return d.ResetAfter
	}
	return c.limit.UntilNext(now)
}

// overdraw charges the hits for a rule with overdraw. If they exceed what is left, they are charged nevertheless, and
// the check is over the limit. A check without hits charges nothing. It is over the limit if a single hit would be.
func (c *check) overdraw(ctx context.Context) error {
	if c.hits == 0 {
		d, err := c.table.peek(ctx, c.counter, 1)
		c.applyDecision(d)
		return err
	}
	if err := c.takeLimited(ctx); err != nil || !c.isOver {
		return err
	}
	d, err := c.table.charge(ctx, c.counter, c.hits)
	if err != nil {
		return err
	}
	c.remaining, c.reset, c.charged = d.Remaining, min(d.RetryAfter, d.ResetAfter), c.hits
	return nil
}

// takeWithinLimit is take, except that it never counts hits that the limit refuses, not even for a moment. So other
// requests never see such hits. With its receipt, undo can restore the counter exactly. takeWithinLimit is only for
// counters in memory.
func (c *check) takeWithinLimit(ctx context.Context, now time.Time) error {
	local, ok := c.table.(localTable)
	window := c.limit.Algorithm == engine.AlgorithmFixedWindow
	if !ok || c.isRefund || c.hits == 0 || window && c.isShadow() && !c.isEstimate {
		return c.take(ctx, now)
	}
	key := c.counter.hash
	if window {
		quota, err := local.quota(c.limit)
		if err != nil {
			return err
		}
		key = key.With(quota)
	}
	var d engine.Decision
	if c.isEstimate {
		d, c.receipt = local.limiter.Hold(key, c.hits)
	} else {
		d, c.receipt = local.limiter.TakeReceipt(key, c.hits)
	}
	c.applyDecision(d)
	if window {
		c.reset = c.limit.UntilNext(now)
	}
	return nil
}

// applyDecision stores a decision. It is for tables that compare counters with the limit; for other tables, the service
// compares.
func (c *check) applyDecision(d engine.Decision) {
	c.isOver, c.remaining, c.reset = !d.Allowed, d.Remaining, d.ResetAfter
	if c.isEstimate {
		c.hits = min(c.hits, d.Limit)
	}
	c.after = d.Limit - d.Remaining
	c.before = c.after
	if d.Allowed {
		c.before, c.charged = c.before-c.hits, c.hits
	} else {
		c.reset, c.after = min(d.RetryAfter, d.ResetAfter), c.before+c.hits
	}
}

// charge adds the hits, even if they exceed the limit. It stops at the largest possible count.
func (c *check) charge(ctx context.Context) (engine.Decision, error) {
	n := min(c.hits, maxHits)
	if n == 0 {
		return c.table.peek(ctx, c.counter, 1)
	}
	for {
		d, err := c.table.take(ctx, c.counter, n)
		if err != nil {
			return d, err
		}
		if d.Allowed {
			c.charged = n
			return d, nil
		}
		if n = d.Remaining; n == 0 { // the counter is full, or there is no room for it
			return d, nil
		}
	}
}

// peek reads the count, and charges nothing.
func (c *check) peek(ctx context.Context, now time.Time) error {
	if c.table == nil {
		return nil
	}
	d, err := c.table.peek(ctx, c.counter, 1)
	if err != nil {
		return c.decideWithoutStore(ctx, now, 0, err)
	}
	if c.limit.Algorithm != engine.AlgorithmFixedWindow {
		c.before, c.remaining, c.reset = d.Limit-d.Remaining, d.Remaining, d.ResetAfter
		c.after = c.before
		return nil
	}
	c.before = maxHits - d.Remaining
	c.after = c.before
	c.reset = c.untilNext(d, now)
	c.compare(c.after)
	return nil
}

// capacity returns how many hits can pass in one window or, for a token bucket, at one moment.
func (c *check) capacity() uint64 {
	if c.limit.Algorithm == engine.AlgorithmTokenBucket {
		return c.limit.Burst
	}
	return uint64(c.limit.Requests)
}

func (c *check) compare(count uint64) {
	limit := c.capacity()
	c.isOver = count > limit
	c.remaining = limit - min(count, limit)
}

// addStats adds the hits to the statistics. Hits near the limit and hits beyond the limit are also counted separately.
// Hits that are given back count only in the total.
func (c *check) addStats(nearRatio float32) {
	if c.stats == nil {
		return
	}
	c.stats.totalHits.Add(c.hits)
	if c.isRefund {
		return
	}
	limit := c.capacity()
	nearThreshold := uint64(math.Floor(float64(float32(limit) * nearRatio)))
	if !c.isOver {
		c.stats.withinLimit.Add(c.hits)
		if c.after > nearThreshold {
			c.stats.nearLimit.Add(c.after - max(nearThreshold, c.before))
		}
		return
	}
	if c.fromMemo {
		c.stats.fromMemo.Add(c.hits)
	}
	if c.before >= limit {
		c.stats.overLimit.Add(c.hits)
	} else {
		c.stats.overLimit.Add(c.after - min(c.after, limit))
		c.stats.nearLimit.Add(limit - max(nearThreshold, c.before))
	}
	if c.isShadow() {
		c.stats.shadowMode.Add(c.hits)
	}
}
