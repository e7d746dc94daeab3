package envoy

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
)

// count takes the hits of all asks and marks the asks that are over the limit. It adds all asks to the statistics.
func (s *Service) count(ctx context.Context, asks []ask) error {
	if s.tables.shared {
		s.recall(asks)
		return s.countStored(ctx, asks, (*ask).pending)
	}
	for i := range asks {
		if a := &asks[i]; a.counts() {
			if err := a.take(ctx, s.now()); err != nil {
				return err
			}
			a.tell(*s.options.NearLimitRatio)
		}
	}
	return nil
}

// countAllOrNothing is count under all_or_nothing: if one ask is refused, no ask is charged. Hits that were taken
// before the refusal are given back. Counters after the refusal are only read. engine.TakeAll cannot do this: a request
// may have any number of descriptors, several may share a counter, and rules in shadow mode are always charged.
func (s *Service) countAllOrNothing(ctx context.Context, asks []ask) error {
	if s.tables.shared {
		return s.countAllOrNothingStored(ctx, asks)
	}
	refused := false
	for i := range asks {
		a := &asks[i]
		if !a.counts() {
			continue
		}
		var err error
		if refused && !a.back {
			err = a.wouldPass(ctx, s.now())
		} else {
			err = a.takeOrLeave(ctx, s.now())
		}
		if err != nil {
			return err
		}
		a.tell(*s.options.NearLimitRatio)
		if !refused && a.refused() {
			refused = true
			for j := range asks[:i+1] {
				if err := asks[j].undo(ctx, s.now()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// countUnlessOver counts like envoyproxy/ratelimit with STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT. It reads all counters
// first. If some asks do not fit, it charges only these, and answers the others from what is left afterwards. As in
// envoyproxy/ratelimit, concurrent requests can come between the reads and the charges.
func (s *Service) countUnlessOver(ctx context.Context, asks []ask) error {
	over := s.recall(asks)
	if !over {
		err := s.each(asks, func(a *ask) bool { return a.counts() && !a.back }, func(a *ask) error {
			return a.wouldPass(ctx, s.now())
		})
		if err != nil {
			return err
		}
		over = slices.ContainsFunc(asks, func(a ask) bool { return a.counts() && a.over })
	}
	stays := func(a *ask) bool { return over && !a.over && !a.back }
	if s.tables.shared {
		err := s.each(asks, func(a *ask) bool { return a.counts() && stays(a) }, func(a *ask) error { return a.stay(ctx, s.now()) })
		if err != nil {
			return err
		}
		return s.countStored(ctx, asks, func(a *ask) bool { return a.pending() && !a.stayed })
	}
	for i := range asks {
		a := &asks[i]
		if !a.counts() {
			continue
		}
		take := a.take
		if stays(a) {
			take = a.stay
		}
		if err := take(ctx, s.now()); err != nil {
			return err
		}
		a.tell(*s.options.NearLimitRatio)
	}
	return nil
}

// stay is called instead of take for an ask that is not charged because another ask is over the limit. It reads the
// counter again, because the other ask may have charged the same counter.
func (a *ask) stay(ctx context.Context, now time.Time) error {
	a.stayed = true
	err := a.look(ctx, now)
	a.before = a.after - min(a.after, a.hits) // for the statistics, as if these hits had been counted last
	return err
}

// counts reports whether the ask has hits to count.
func (a *ask) counts() bool { return a.applies && !a.limit.Unlimited }

// wouldPass checks whether the hits would pass, and charges nothing.
func (a *ask) wouldPass(ctx context.Context, now time.Time) error {
	if err := a.look(ctx, now); err != nil || a.table == nil {
		return err
	}
	switch {
	case a.alone:
		a.over = a.hits > a.remaining
	case a.limit.Algorithm == engine.AlgorithmFixedWindow:
		a.over = a.before+a.hits > a.most()
	default:
		d, err := a.table.peek(ctx, a.counter, a.hits)
		a.over = !d.Allowed
		if err != nil {
			return a.lost(ctx, now, 0, err)
		}
	}
	return nil
}

// undo gives back the charged hits. An ask that is over the limit stays so.
func (a *ask) undo(ctx context.Context, now time.Time) error {
	if a.charged == 0 {
		return nil
	}
	if a.receipt != (engine.Receipt{}) {
		a.receipt.Refund(a.charged)
	} else if err := a.table.refund(ctx, a.counter, a.charged); err != nil {
		return err
	}
	a.charged = 0
	over := a.over
	err := a.look(ctx, now)
	a.over = over
	return err
}

func (s *Service) now() time.Time { return s.options.now() }

// take charges the hits, or gives them back, and compares the count with the limit.
func (a *ask) take(ctx context.Context, now time.Time) error {
	switch {
	case a.table == nil: // the limit is 0, so it needs no table
		a.over, a.after = a.hits > 0 && !a.back, a.hits
		return nil
	case a.back:
		if err := a.table.refund(ctx, a.counter, a.hits); err != nil {
			return a.lost(ctx, now, 0, err)
		}
		return a.look(ctx, now)
	case a.limit.Algorithm == engine.AlgorithmFixedWindow:
		d, err := a.charge(ctx)
		if err != nil {
			return a.lost(ctx, now, a.hits, err)
		}
		a.counted(d, now)
		return nil
	}
	take := a.takeLimited
	switch {
	case a.overdraws():
		take = a.overdraw
	case a.hits == 0: // a store does not compare 0 hits with the limit, so only read the count
		return a.look(ctx, now)
	}
	if err := take(ctx); err != nil {
		return a.lost(ctx, now, a.hits, err)
	}
	return nil
}

func (a *ask) takeLimited(ctx context.Context) error {
	d, err := a.table.take(ctx, a.counter, a.hits)
	a.decided(d)
	return err
}

func (a *ask) counted(d engine.Decision, now time.Time) {
	a.after = mostHits - d.Remaining
	a.before = a.after - min(a.charged, a.after)
	a.judge(a.after)
	a.reset = a.untilNext(d, now)
}

// untilNext returns how long the current window still lasts. It uses the store's clock if the decision shows the time.
func (a *ask) untilNext(d engine.Decision, now time.Time) time.Duration {
	if _, stored := a.table.(storeTable); stored && d.ResetAfter > 0 {
		return d.ResetAfter
	}
	return a.limit.UntilNext(now)
}

// overdraw charges the hits for a rule with overdraw. If they exceed what is left, they are charged nevertheless, and
// the ask is over the limit. An ask without hits charges nothing. It is over the limit if a single hit would be.
func (a *ask) overdraw(ctx context.Context) error {
	if a.hits == 0 {
		d, err := a.table.peek(ctx, a.counter, 1)
		a.decided(d)
		return err
	}
	if err := a.takeLimited(ctx); err != nil || !a.over {
		return err
	}
	d, err := a.table.charge(ctx, a.counter, a.hits)
	if err != nil {
		return err
	}
	a.remaining, a.reset, a.charged = d.Remaining, min(d.RetryAfter, d.ResetAfter), a.hits
	return nil
}

// takeOrLeave is take, except that it never counts hits beyond the limit, not even for a moment. So other requests
// never see such hits. With its receipt, undo can restore the counter exactly. takeOrLeave is only for counters in
// memory.
func (a *ask) takeOrLeave(ctx context.Context, now time.Time) error {
	local, ok := a.table.(localTable)
	window := a.limit.Algorithm == engine.AlgorithmFixedWindow
	if !ok || a.back || a.hits == 0 || window && a.shadow() && !a.holds {
		return a.take(ctx, now)
	}
	key := a.counter.hash
	if window {
		quota, err := local.quota(a.limit)
		if err != nil {
			return err
		}
		key = key.With(quota)
	}
	var d engine.Decision
	if a.holds {
		d, a.receipt = local.limiter.Hold(key, a.hits)
	} else {
		d, a.receipt = local.limiter.TakeReceipt(key, a.hits)
	}
	a.decided(d)
	if window {
		a.reset = a.limit.UntilNext(now)
	}
	return nil
}

// decided stores a decision. It is for tables that compare counters with the limit; for other tables, the service
// compares.
func (a *ask) decided(d engine.Decision) {
	a.over, a.remaining, a.reset = !d.Allowed, d.Remaining, d.ResetAfter
	if a.holds {
		a.hits = min(a.hits, d.Limit)
	}
	a.after = d.Limit - d.Remaining
	a.before = a.after
	if d.Allowed {
		a.before, a.charged = a.before-a.hits, a.hits
	} else {
		a.reset, a.after = min(d.RetryAfter, d.ResetAfter), a.before+a.hits
	}
}

// charge adds the hits, even if they exceed the limit. It stops at the largest possible count.
func (a *ask) charge(ctx context.Context) (engine.Decision, error) {
	n := min(a.hits, mostHits)
	if n == 0 {
		return a.table.peek(ctx, a.counter, 1)
	}
	for {
		d, err := a.table.take(ctx, a.counter, n)
		if err != nil {
			return d, err
		}
		if d.Allowed {
			a.charged = n
			return d, nil
		}
		if n = d.Remaining; n == 0 { // the counter is full, or there is no room for it
			return d, nil
		}
	}
}

// look reads the count, and charges nothing.
func (a *ask) look(ctx context.Context, now time.Time) error {
	if a.table == nil {
		return nil
	}
	d, err := a.table.peek(ctx, a.counter, 1)
	if err != nil {
		return a.lost(ctx, now, 0, err)
	}
	if a.limit.Algorithm != engine.AlgorithmFixedWindow {
		a.before, a.remaining, a.reset = d.Limit-d.Remaining, d.Remaining, d.ResetAfter
		a.after = a.before
		return nil
	}
	a.before = mostHits - d.Remaining
	a.after = a.before
	a.reset = a.untilNext(d, now)
	a.judge(a.after)
	return nil
}

// The method most returns how many hits can pass in one window or, for a token bucket, at one moment.
func (a *ask) most() uint64 {
	if a.limit.Algorithm == engine.AlgorithmTokenBucket {
		return a.limit.Burst
	}
	return uint64(a.limit.Requests)
}

func (a *ask) judge(count uint64) {
	limit := a.most()
	a.over = count > limit
	a.remaining = limit - min(count, limit)
}

// tell adds the hits to the statistics. Hits near the limit and hits beyond the limit are also counted separately. Hits
// that are given back count only in the total.
func (a *ask) tell(nearRatio float32) {
	if a.stats == nil {
		return
	}
	a.stats.totalHits.Add(a.hits)
	if a.back {
		return
	}
	limit := a.most()
	near := uint64(math.Floor(float64(float32(limit) * nearRatio)))
	if !a.over {
		a.stats.withinLimit.Add(a.hits)
		if a.after > near {
			a.stats.nearLimit.Add(a.after - max(near, a.before))
		}
		return
	}
	if a.remembered {
		a.stats.remembered.Add(a.hits)
	}
	if a.before >= limit {
		a.stats.overLimit.Add(a.hits)
	} else {
		a.stats.overLimit.Add(a.after - min(a.after, limit))
		a.stats.nearLimit.Add(limit - max(near, a.before))
	}
	if a.shadow() {
		a.stats.shadowMode.Add(a.hits)
	}
}
