package envoy

import (
	"context"
	"errors"
	"fmt"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/live"
	"github.com/weir-go/weir/limits/quotas"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

type active struct {
	config *config.Config
	rules  []rule // indexed by config.Rule.Index
	uses   uses
	stop   context.CancelFunc // stops the goroutine that reads limits again; nil before that goroutine has started
}

type rule struct {
	*config.Rule
	table   table
	limiter *live.Limiter // the limiter of the table in memory; set even if the rule does not need it now
	stored  *storeTable   // the table in a store; set even if the rule does not need it now
	current *rlsv3.RateLimitResponse_RateLimit
	stats   *ruleStats   // nil if the name in statistics depends on the request
	quotas  *quotas.Live // limits of single values; nil if there are none
}

func (s *Service) fill(next *active) error {
	var errs []error
	before := s.active.Load().limiters()
	had := before.of(next.config.Rules())
	wanted := map[config.Limit]bool{}
	for i, r := range next.config.Rules() {
		next.rules[i].Rule = r
		table, err := s.tables.getFor(r.Limit, wanted)
		if err == nil {
			table, next.rules[i].limiter, err = s.tables.follow(r, table, had[i])
			next.rules[i].stored = before.followStored(r, table)
		}
		if err == nil {
			err = s.openQuotas(&next.rules[i])
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.Stat, err))
			continue
		}
		next.rules[i].table, next.rules[i].current = table, currentLimit(r.Limit, r.Name)
		if !r.StatDepends() {
			next.rules[i].stats = s.stats.rule(r.Stat)
		}
	}
	if n := next.previous(); n > maxTables {
		errs = append(errs, fmt.Errorf("%d previous tables still have counts: want at most %d: undo changes of "+
			"limits, or try again later", n, maxTables))
	}
	return errors.Join(errs...)
}

// The type before has the limits of the previous configuration with their limiters. Its keys are the IDs of rules.
type before map[string][]*had

// had is a previous limit with its limiter. At most one new limit takes the limiter over.
type had struct {
	limit   config.Limit
	limiter *live.Limiter // nil: the limit had none, or a new limit already continues it
	stored  *storeTable
}

func (a *active) limiters() before {
	all := before{}
	if a != nil {
		for _, r := range a.rules {
			all[r.ID()] = append(all[r.ID()], &had{r.Limit, r.limiter, r.stored})
		}
	}
	return all
}

// The method of returns the previous limiter that each rule takes over, or nil. If a descriptor has several limits, a
// rule takes the limiter of the previous limit with the same algorithm and window. If there is none, it takes the first
// limiter that no other rule takes.
func (b before) of(rules []*config.Rule) []*live.Limiter {
	all := make([]*live.Limiter, len(rules))
	for _, exactly := range []bool{true, false} {
		for i, r := range rules {
			for _, h := range b[r.ID()] {
				same := h.limit.Algorithm == r.Limit.Algorithm && h.limit.Window == r.Limit.Window &&
					h.limit.Calendar == r.Limit.Calendar
				if all[i] == nil && h.limiter != nil && (same || !exactly) {
					all[i], h.limiter = h.limiter, nil
				}
			}
		}
	}
	return all
}

// followStored makes the new table t of a rule also count what the previous tables of its descriptor have admitted. If
// the rule has no new table in a store, it returns a previous table.
func (b before) followStored(r *config.Rule, t table) *storeTable {
	now, ok := t.(storeTable)
	for _, h := range b[r.ID()] {
		switch {
		case h.stored == nil:
		case ok:
			now.follow(*h.stored)
		default:
			return h.stored
		}
	}
	if !ok {
		return nil
	}
	return &now
}

func (a *active) previous() int {
	tables := map[*engine.Limiter]bool{}
	for _, r := range a.rules {
		if r.limiter != nil {
			for _, l := range r.limiter.Formers().Limiters() {
				tables[l] = true
			}
		}
	}
	return len(tables)
}

// release ends this configuration's use of the limiters. No request may use them afterwards.
func (a *active) release() {
	if a.stop != nil {
		a.stop()
	}
	for _, r := range a.rules {
		if r.limiter != nil {
			r.limiter.Release()
		}
	}
}
