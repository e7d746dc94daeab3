package envoy

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
)

// isPending reports whether the check has hits to count and was not decided by the memo.
func (c *check) isPending() bool { return c.isCounted() && !c.fromMemo }

// decideFromMemo lets the memo decide the checks that it can. It reports whether the memo has decided any.
func (s *Service) decideFromMemo(checks []check) (decided bool) {
	now := s.now()
	for i := range checks {
		decided = checks[i].isCounted() && s.memo.decide(&checks[i], now) || decided
	}
	return decided
}

// forEach calls fn for the checks that filter selects. For counters in memory, the calls are in the order of the
// checks. For a store, they are concurrent, but checks for the same counter always keep their order.
func (s *Service) forEach(checks []check, filter func(*check) bool, fn func(*check) error) error {
	if !s.tables.inStore {
		for i := range checks {
			if c := &checks[i]; filter(c) {
				if err := fn(c); err != nil {
					return err
				}
			}
		}
		return nil
	}
	var group errgroup.Group
	for _, queue := range queues(checks, filter) {
		group.Go(func() error { return runInOrder(queue, fn) })
	}
	return group.Wait()
}

func runInOrder(queue []*check, fn func(*check) error) error {
	for _, c := range queue {
		if err := fn(c); err != nil {
			return err
		}
	}
	return nil
}

// queues returns a list of the selected checks for each counter. Each list is in the order of the request.
func queues(checks []check, filter func(*check) bool) [][]*check {
	type counterKey struct {
		table table
		key   string
	}
	indexes := make(map[counterKey]int, len(checks))
	var queues [][]*check
	for i := range checks {
		c := &checks[i]
		if !filter(c) {
			continue
		}
		key := counterKey{c.table, c.counter.text}
		index, found := indexes[key]
		if !found {
			index, indexes[key] = len(queues), len(queues)
			queues = append(queues, nil)
		}
		queues[index] = append(queues[index], c)
	}
	return queues
}

// countStored takes the hits of checks in stores, and adds them to the statistics. Each check is decided separately.
// The fixed windows of a store share one script, which never refuses. There are two exceptions, which have a separate
// script for each check: a cluster, because its parts decide concurrently, and a counter that the request names twice.
func (s *Service) countStored(ctx context.Context, checks []check, filter func(*check) bool) error {
	storeGroups, grouped := map[limits.Store][]*check{}, s.tables.haveSinglePart()
	var calls errgroup.Group
	for _, queue := range queues(checks, filter) {
		if t, ok := queue[0].batchable(); ok && grouped && len(queue) == 1 {
			store := t.limiter.Source().Store()
			storeGroups[store] = append(storeGroups[store], queue[0])
			continue
		}
		calls.Go(func() error { return runInOrder(queue, func(c *check) error { return s.take(ctx, c) }) })
	}
	for store, group := range storeGroups {
		calls.Go(func() error { return s.takeGroup(ctx, store, group) })
	}
	if err := calls.Wait(); err != nil {
		return err
	}
	for i := range checks {
		if checks[i].isCounted() {
			checks[i].addStats(*s.options.NearLimitRatio)
		}
	}
	return nil
}

func (c *check) batchable() (storeTable, bool) {
	t, ok := c.table.(storeTable)
	return t, ok && !c.isRefund && c.hits > 0 && c.limit.Algorithm == engine.AlgorithmFixedWindow
}

// take charges one check in a store with a separate call.
func (s *Service) take(ctx context.Context, c *check) error {
	now := s.now()
	err := c.take(ctx, now)
	if err == nil {
		s.memo.note(c, now)
	}
	return err
}

// takeGroup charges checks of a store with one script. Each check must be batchable and have a different counter.
func (s *Service) takeGroup(ctx context.Context, store limits.Store, group []*check) error {
	now := s.now()
	requests := make([]limits.Ask, len(group))
	for i, c := range group {
		requests[i] = limits.Ask{Source: c.table.(storeTable).limiter.Source(), Key: c.counter.text, N: min(c.hits, maxHits)}
	}
	if err := store.TakeAll(ctx, requests); err != nil {
		return err
	}
	isFull := slices.ContainsFunc(requests, func(r limits.Ask) bool { return r.Err == nil && !r.Decision.Allowed })
	for i, c := range group {
		switch r := requests[i]; {
		case isFull: // the counter is full, so it is charged separately
			if err := s.take(ctx, c); err != nil {
				return err
			}
		case r.Err != nil:
			if err := c.decideWithoutStore(ctx, now, c.hits, r.Err); err != nil {
				return err
			}
		default:
			c.charged = r.N
			c.applyCount(r.Decision, now)
			s.memo.note(c, now)
		}
	}
	return nil
}

// countAllOrNothingStored is countAllOrNothing for stores. For each store, all limits that may refuse share one script.
// Checks that charge no hits are decided before the script. Checks that cannot refuse are decided after it.
func (s *Service) countAllOrNothingStored(ctx context.Context, checks []check) error {
	isFirst := func(c *check) bool { return c.isCounted() && (c.table == nil || c.isRefund || c.hits == 0) }
	isTogether := func(c *check) bool { return c.isCounted() && !isFirst(c) && !c.isShadow() }
	isShadowCheck := func(c *check) bool { return c.isCounted() && !isFirst(c) && c.isShadow() }
	now := s.now()
	err := s.forEach(checks, isFirst, func(c *check) error { return s.take(ctx, c) })
	isRefused := err == nil && slices.ContainsFunc(checks, func(c check) bool { return isFirst(&c) && c.isRefused() })
	if err == nil && !isRefused {
		isRefused, err = s.takeTogether(ctx, checks, isTogether, now)
	}
	if err == nil {
		err = s.forEach(checks, isShadowCheck, func(c *check) error {
			if isRefused || c.isEstimate { // an estimate under a rule in shadow mode holds nothing
				return c.wouldPass(ctx, s.now())
			}
			return s.take(ctx, c)
		})
	}
	if err == nil && isRefused {
		isAdmitted := func(c *check) bool { return isTogether(c) && !c.isOver }
		err = s.forEach(checks, isAdmitted, func(c *check) error { return c.wouldPass(ctx, s.now()) })
	}
	for i := range checks {
		if c := &checks[i]; err == nil && c.isCounted() {
			c.addStats(*s.options.NearLimitRatio)
		}
	}
	return err
}

// takeTogether takes the hits of all selected checks, or of none. It reports whether a limit refuses. If a limit
// refuses or a store fails, it gives back what it took.
func (s *Service) takeTogether(ctx context.Context, checks []check, filter func(*check) bool, now time.Time) (isRefused bool, err error) {
	var refunds []func(context.Context) error
	for store, group := range byStore(checks, filter) {
		requests, err := storeRequests(group)
		if err == nil {
			err = store.TakeAll(ctx, requests)
		}
		if slices.ContainsFunc(requests, isRefusal) {
			err = nil // if giving hits back fails, more is refused than necessary, but never less
		}
		var taken []limits.Ask // taken checks; if one check refuses, the store has already given the others back
		for i, c := range group {
			switch r := requests[i]; {
			case err != nil:
			case r.Err != nil:
				err = c.decideWithoutStore(ctx, now, c.hits, r.Err)
			case r.Decision.Limit > 0 || r.Decision.RetryAfter > 0: // the store has decided this check
				c.applyStoreDecision(r.Decision, now)
				c.hold = r.Held
				taken = append(taken, r)
			}
			isRefused = isRefused || c.isRefused()
		}
		if !isRefused {
			refunds = append(refunds, func(ctx context.Context) error { return store.RefundAll(ctx, taken) })
		}
		if isRefused || err != nil {
			for _, refund := range refunds {
				_ = refund(context.WithoutCancel(ctx))
			}
			return isRefused, err
		}
	}
	return false, nil
}

// isRefusal reports whether a store has decided that the hits exceed the limit.
func isRefusal(r limits.Ask) bool {
	return r.Err == nil && !r.Decision.Allowed && (r.Decision.Limit > 0 || r.Decision.RetryAfter > 0)
}

func byStore(checks []check, filter func(*check) bool) map[limits.Store][]*check {
	groups := map[limits.Store][]*check{}
	for i := range checks {
		if c := &checks[i]; filter(c) {
			store := c.table.(storeTable).limiter.Source().Store()
			groups[store] = append(groups[store], c)
		}
	}
	return groups
}

func storeRequests(group []*check) ([]limits.Ask, error) {
	requests := make([]limits.Ask, len(group))
	for i, c := range group {
		limiter, policy := c.table.(storeTable).limiterFor(c.limit)
		source, err := limiter.Source().Quota(policy)
		if err != nil {
			return requests, err
		}
		requests[i] = limits.Ask{Source: source, Key: c.counter.text, N: c.hits, Hold: c.isEstimate}
	}
	return requests, nil
}

func (c *check) applyStoreDecision(d engine.Decision, now time.Time) {
	c.applyDecision(d)
	if c.limit.Algorithm == engine.AlgorithmFixedWindow {
		c.reset = c.untilNext(d, now)
	}
}
