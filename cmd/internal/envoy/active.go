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

// active has the active configuration and the tables of its rules.
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

// fill gives the rules of a configuration their tables.
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

// The type before has the limits of the previous configuration, each with its limiter. The keys of the map are the IDs
// of the rules.
type before map[string][]*had

// The type had is a previous limit with its limiter. At most one new limit continues to use this limiter.
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

// b.of(rules) returns, for each rule, the previous limiter that the rule continues; nil for a new rule. If a descriptor
// has several limits, a new limit continues the previous limit with the same algorithm and window. If there is no such
// previous limit, the new limit continues the first previous limit that no other new limit continues.
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

// If the table t of a rule is in a store, followStored makes t follow the previous tables of the rule's descriptor, and
// returns t. If the rule needs no table now, followStored returns a previous table.
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

// previous returns how many previous tables the rules have together.
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

// release ends the use of the limiters by this configuration. No request may use them any more.
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
