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

type activeConfig struct {
	config *config.Config
	rules  []rule // indexed by config.Rule.Index
	uses   uses
	stop   context.CancelFunc // stops the goroutine that reads limits again; nil before that goroutine has started
}

type rule struct {
	*config.Rule
	table        table
	limiter      *live.Limiter // the limiter of the table in memory; set even if the rule does not need it now
	storeTable   *storeTable   // the table in a store; set even if the rule does not need it now
	currentLimit *rlsv3.RateLimitResponse_RateLimit
	stats        *ruleStats   // nil if the name in statistics depends on the request
	quotas       *quotas.Live // limits of single values; nil if there are none
}

func (s *Service) fill(next *activeConfig) error {
	var errs []error
	previous := s.active.Load().limits()
	limiters := previous.limitersFor(next.config.Rules())
	needed := map[config.Limit]bool{}
	for i, r := range next.config.Rules() {
		next.rules[i].Rule = r
		table, err := s.tables.getFor(r.Limit, needed)
		if err == nil {
			table, next.rules[i].limiter, err = s.tables.follow(r, table, limiters[i])
			next.rules[i].storeTable = previous.followStored(r, table)
		}
		if err == nil {
			err = s.openQuotas(&next.rules[i])
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.Stat, err))
			continue
		}
		next.rules[i].table, next.rules[i].currentLimit = table, currentLimit(r.Limit, r.Name)
		if !r.StatDepends() {
			next.rules[i].stats = s.stats.forRule(r.Stat)
		}
	}
	if n := next.previousTables(); n > maxTables {
		errs = append(errs, fmt.Errorf("%d previous tables still have counts: want at most %d: undo changes of "+
			"limits, or try again later", n, maxTables))
	}
	return errors.Join(errs...)
}

// previousLimits has the limits of the previous configuration with their limiters, by the IDs of their rules.
type previousLimits map[string][]*previousLimit

// A previousLimit is a limit of the previous configuration. At most one new limit takes its limiter over.
type previousLimit struct {
	limit      config.Limit
	limiter    *live.Limiter // nil: the limit had none, or a new limit already continues it
	storeTable *storeTable
}

func (a *activeConfig) limits() previousLimits {
	limits := previousLimits{}
	if a != nil {
		for _, r := range a.rules {
			limits[r.ID()] = append(limits[r.ID()], &previousLimit{r.Limit, r.limiter, r.storeTable})
		}
	}
	return limits
}

// limitersFor returns the previous limiter that each rule takes over, or nil. If a descriptor has several limits, a
// rule takes the limiter of the previous limit with the same algorithm and window. If there is none, it takes the first
// limiter that no other rule takes.
func (l previousLimits) limitersFor(rules []*config.Rule) []*live.Limiter {
	limiters := make([]*live.Limiter, len(rules))
	for _, exact := range []bool{true, false} {
		for i, r := range rules {
			for _, previous := range l[r.ID()] {
				isSame := previous.limit.Algorithm == r.Limit.Algorithm && previous.limit.Window == r.Limit.Window &&
					previous.limit.Calendar == r.Limit.Calendar
				if limiters[i] == nil && previous.limiter != nil && (isSame || !exact) {
					limiters[i], previous.limiter = previous.limiter, nil
				}
			}
		}
	}
	return limiters
}

// followStored makes the current table of a rule also count what the previous tables of its descriptor have admitted.
// If the current table is not in a store, followStored returns a previous table.
func (l previousLimits) followStored(r *config.Rule, current table) *storeTable {
	newTable, ok := current.(storeTable)
	for _, previous := range l[r.ID()] {
		switch {
		case previous.storeTable == nil:
		case ok:
			newTable.follow(*previous.storeTable)
		default:
			return previous.storeTable
		}
	}
	if !ok {
		return nil
	}
	return &newTable
}

func (a *activeConfig) previousTables() int {
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
func (a *activeConfig) release() {
	if a.stop != nil {
		a.stop()
	}
	for _, r := range a.rules {
		if r.limiter != nil {
			r.limiter.Release()
		}
	}
}
