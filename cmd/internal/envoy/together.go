package envoy

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
)

// pending reports whether the ask has hits to count and was not decided by the memo.
func (a *ask) pending() bool { return a.counts() && !a.remembered }

// recall lets the memo decide the asks that it can. It reports whether the memo has decided any.
func (s *Service) recall(asks []ask) (any bool) {
	now := s.now()
	for i := range asks {
		any = asks[i].counts() && s.memo.answers(&asks[i], now) || any
	}
	return any
}

// The method each calls a function (do) for the asks that a second function (which) selects. For counters in memory,
// the calls are in the order of the asks. For a store, they are concurrent, but asks for the same counter always keep
// their order.
func (s *Service) each(asks []ask, which func(*ask) bool, do func(*ask) error) error {
	if !s.tables.shared {
		for i := range asks {
			if a := &asks[i]; which(a) {
				if err := do(a); err != nil {
					return err
				}
			}
		}
		return nil
	}
	var all errgroup.Group
	for _, queue := range queues(asks, which) {
		all.Go(func() error { return inOrder(queue, do) })
	}
	return all.Wait()
}

func inOrder(queue []*ask, do func(*ask) error) error {
	for _, a := range queue {
		if err := do(a); err != nil {
			return err
		}
	}
	return nil
}

// queues returns a list of the selected asks for each counter. Each list is in the order of the request.
func queues(asks []ask, which func(*ask) bool) [][]*ask {
	type place struct {
		table table
		key   string
	}
	at := make(map[place]int, len(asks))
	var all [][]*ask
	for i := range asks {
		a := &asks[i]
		if !which(a) {
			continue
		}
		here := place{a.table, a.counter.text}
		n, known := at[here]
		if !known {
			n, at[here] = len(all), len(all)
			all = append(all, nil)
		}
		all[n] = append(all[n], a)
	}
	return all
}

// countStored takes the hits of asks in stores, and adds them to the statistics. Each ask is decided separately. The
// fixed windows of a store share one script, which never refuses. There are two exceptions, which have a separate
// script for each ask: a cluster, because its parts decide concurrently, and a counter that the request names twice.
func (s *Service) countStored(ctx context.Context, asks []ask, which func(*ask) bool) error {
	groups, inGroups := map[limits.Store][]*ask{}, s.tables.haveOnePart()
	var all errgroup.Group
	for _, queue := range queues(asks, which) {
		if t, ok := queue[0].groups(); ok && inGroups && len(queue) == 1 {
			store := t.limiter.Source().Store()
			groups[store] = append(groups[store], queue[0])
			continue
		}
		all.Go(func() error { return inOrder(queue, func(a *ask) error { return s.take(ctx, a) }) })
	}
	for store, group := range groups {
		all.Go(func() error { return s.takeGroup(ctx, store, group) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	for i := range asks {
		if asks[i].counts() {
			asks[i].tell(*s.options.NearLimitRatio)
		}
	}
	return nil
}

func (a *ask) groups() (storeTable, bool) {
	t, ok := a.table.(storeTable)
	return t, ok && !a.back && a.hits > 0 && a.limit.Algorithm == engine.AlgorithmFixedWindow
}

// take charges one ask in a store with a separate call.
func (s *Service) take(ctx context.Context, a *ask) error {
	now := s.now()
	err := a.take(ctx, now)
	if err == nil {
		s.memo.note(a, now)
	}
	return err
}

// takeGroup charges asks of a store with one script. The method groups must be true for each ask, and each must have a
// different counter.
func (s *Service) takeGroup(ctx context.Context, store limits.Store, group []*ask) error {
	now := s.now()
	parts := make([]limits.Ask, len(group))
	for i, a := range group {
		parts[i] = limits.Ask{Source: a.table.(storeTable).limiter.Source(), Key: a.counter.text, N: min(a.hits, mostHits)}
	}
	if err := store.TakeAll(ctx, parts); err != nil {
		return err
	}
	full := slices.ContainsFunc(parts, func(p limits.Ask) bool { return p.Err == nil && !p.Decision.Allowed })
	for i, a := range group {
		switch p := parts[i]; {
		case full: // the counter is full, so it is charged separately
			if err := s.take(ctx, a); err != nil {
				return err
			}
		case p.Err != nil:
			if err := a.lost(ctx, now, a.hits, p.Err); err != nil {
				return err
			}
		default:
			a.charged = p.N
			a.counted(p.Decision, now)
			s.memo.note(a, now)
		}
	}
	return nil
}

// countAllOrNothingStored is countAllOrNothing for stores. For each store, all limits that may refuse share one script.
// Asks that charge no hits are decided before the script. Asks that cannot refuse are decided after it.
func (s *Service) countAllOrNothingStored(ctx context.Context, asks []ask) error {
	first := func(a *ask) bool { return a.counts() && (a.table == nil || a.back || a.hits == 0) }
	together := func(a *ask) bool { return a.counts() && !first(a) && !a.shadow() }
	shadows := func(a *ask) bool { return a.counts() && !first(a) && a.shadow() }
	now := s.now()
	err := s.each(asks, first, func(a *ask) error { return s.take(ctx, a) })
	refused := err == nil && slices.ContainsFunc(asks, func(a ask) bool { return first(&a) && a.refused() })
	if err == nil && !refused {
		refused, err = s.takeTogether(ctx, asks, together, now)
	}
	if err == nil {
		err = s.each(asks, shadows, func(a *ask) error {
			if refused || a.holds { // an estimate under a rule in shadow mode holds nothing
				return a.wouldPass(ctx, s.now())
			}
			return s.take(ctx, a)
		})
	}
	if err == nil && refused {
		left := func(a *ask) bool { return together(a) && !a.over }
		err = s.each(asks, left, func(a *ask) error { return a.wouldPass(ctx, s.now()) })
	}
	for i := range asks {
		if a := &asks[i]; err == nil && a.counts() {
			a.tell(*s.options.NearLimitRatio)
		}
	}
	return err
}

// takeTogether takes the hits of all selected asks, or of none. It reports whether a limit refuses. If a limit refuses
// or a store fails, it gives back what it took.
func (s *Service) takeTogether(ctx context.Context, asks []ask, which func(*ask) bool, now time.Time) (refused bool, err error) {
	var back []func(context.Context) error
	for store, group := range byStore(asks, which) {
		parts, err := partsOf(group)
		if err == nil {
			err = store.TakeAll(ctx, parts)
		}
		if slices.ContainsFunc(parts, refuses) {
			err = nil // if giving hits back fails, more is refused than necessary, but never less
		}
		var kept []limits.Ask // taken asks; if one ask refuses, the store has already given the others back
		for i, a := range group {
			switch p := parts[i]; {
			case err != nil:
			case p.Err != nil:
				err = a.lost(ctx, now, a.hits, p.Err)
			case p.Decision.Limit > 0 || p.Decision.RetryAfter > 0: // the store has decided this ask
				a.underLimit(p.Decision, now)
				a.held = p.Held
				kept = append(kept, p)
			}
			refused = refused || a.refused()
		}
		if !refused {
			back = append(back, func(ctx context.Context) error { return store.RefundAll(ctx, kept) })
		}
		if refused || err != nil {
			for _, give := range back {
				_ = give(context.WithoutCancel(ctx))
			}
			return refused, err
		}
	}
	return false, nil
}

// refuses reports whether a store has decided that the hits exceed the limit.
func refuses(p limits.Ask) bool {
	return p.Err == nil && !p.Decision.Allowed && (p.Decision.Limit > 0 || p.Decision.RetryAfter > 0)
}

func byStore(asks []ask, which func(*ask) bool) map[limits.Store][]*ask {
	all := map[limits.Store][]*ask{}
	for i := range asks {
		if a := &asks[i]; which(a) {
			store := a.table.(storeTable).limiter.Source().Store()
			all[store] = append(all[store], a)
		}
	}
	return all
}

func partsOf(group []*ask) ([]limits.Ask, error) {
	parts := make([]limits.Ask, len(group))
	for i, a := range group {
		limiter, policy := a.table.(storeTable).under(a.limit)
		source, err := limiter.Source().Quota(policy)
		if err != nil {
			return parts, err
		}
		parts[i] = limits.Ask{Source: source, Key: a.counter.text, N: a.hits, Hold: a.holds}
	}
	return parts, nil
}

func (a *ask) underLimit(d engine.Decision, now time.Time) {
	a.decided(d)
	if a.limit.Algorithm == engine.AlgorithmFixedWindow {
		a.reset = a.untilNext(d, now)
	}
}
