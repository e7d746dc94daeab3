package conformance

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/limits/live"
)

// LongestQuota is the longest time that a bucket of a limit with quotas may take to fill.
const LongestQuota = 26 * 24 * time.Hour

// A SourceFunc makes the source of a limit in a store.
type SourceFunc func(*Env, Config, Limit) (limits.Source, error)

// Limiters has the limiters of a program that uses the library, by name. If a limiter can take the new numbers of a
// changed configuration, it takes them. Otherwise a new limiter replaces it. The keys keep their debts if their records
// can move to the new limiter (sameKeys).
type Limiters struct {
	Env     *Env
	Source  SourceFunc // for limits that are Stored; nil for cases without a store
	entries map[string]*entry
	changes map[string]*entry // what Commit changes
}

// An entry is a limiter with the configuration of its limit.
type entry struct {
	*live.Limiter
	limit   Limit
	dir     string
	initial []engine.Policy // the policies with which the limiter was made
}

// LimitOf returns a limit of a new configuration, without the fields that depend on the type of requests.
// [Limiters.Commit] makes the limit active.
func LimitOf[R any](ls *Limiters, c Config, l Limit) (limit limits.Limit[R], err error) {
	limit = limits.Limit[R]{Name: l.Name, MaxWait: l.MaxWait, Shadow: l.Shadow, Hold: l.Hold}
	if !l.Stored {
		limiter, err := ls.limiterFor(l, c.Dir)
		if err != nil {
			return limit, err
		}
		limit.Limiter, limit.Spread, limit.Formers = limiter.Limiter, limiter.Spread, limiter.Formers()
		return limit, nil
	}
	limit.OnLoss = map[Loss]limits.FailurePolicy{Closed: limits.Closed}[c.OnLoss]
	limit.Source, err = ls.Source(ls.Env, c, l)
	return limit, err
}

// limiterFor returns the limiter of a limit in memory or in a file.
func (ls *Limiters) limiterFor(l Limit, dir string) (*live.Limiter, error) {
	if ls.entries == nil {
		ls.entries, ls.changes = map[string]*entry{}, map[string]*entry{}
	}
	next := &entry{limit: l, dir: dir, initial: l.Policies()}
	if m := ls.entries[l.Name]; m.canTake(l, dir) {
		next.Limiter, next.initial = m.Limiter, m.initial
	} else {
		var err error
		if next.Limiter, err = ls.newLimiter(l, dir); err == nil && m.sameKeys(l) {
			err = m.HandOver(next.Limiter)
		}
		if err != nil {
			return nil, fmt.Errorf("limit %s: %w", l.Name, err)
		}
	}
	ls.changes[l.Name] = next
	return next.Limiter, nil
}

// Commit activates the limits that LimitOf has returned. If a limiter stays, Commit sets its new numbers.
func (ls *Limiters) Commit() error {
	for name, to := range ls.changes {
		if from := ls.entries[name]; from != nil && from.Limiter == to.Limiter && !to.limit.ByQuota() {
			if policies := to.limit.Policies(); !slices.Equal(from.limit.Policies(), policies) {
				if err := to.setPolicies(policies); err != nil {
					return err
				}
			}
		}
		ls.entries[name] = to
	}
	clear(ls.changes)
	return nil
}

func (m *entry) canTake(l Limit, dir string) bool {
	return m != nil && m.limit.Key == l.Key && m.limit.Room() == l.Room() && m.limit.Overflow == l.Overflow &&
		m.limit.ByQuota() == l.ByQuota() && m.limit.Spread == l.Spread && m.dir == dir && (l.ByQuota() || engine.CheckChange(m.initial, l.Policies()) == nil)
}

// sameKeys reports whether the records of a limit can move to its new limiter: the old limiter is in memory, both
// limits have the same kind of key, and neither counts requests in flight.
func (m *entry) sameKeys(l Limit) bool {
	return m != nil && m.limit.Key == l.Key && m.dir == "" && m.limit.Concurrency == 0 && l.Concurrency == 0
}

func (m *entry) setPolicies(policies []engine.Policy) error {
	if m.Spread != nil {
		return m.Spread.SetPolicy(policies[0])
	}
	return m.SetPolicy(policies[0], policies[1:]...)
}

func (ls *Limiters) newLimiter(l Limit, dir string) (*live.Limiter, error) {
	policies := l.Policies()
	if l.Spread {
		bucket, err := engine.NewSpread(policies[0], engine.ClockFunc(ls.Env.Now))
		if err != nil {
			return nil, err
		}
		ls.Env.T.Cleanup(func() { _ = bucket.Close() })
		return live.NewSpread(bucket), nil
	}
	if l.ByQuota() {
		policies = []engine.Policy{engine.TokenBuckets(LongestQuota)}
	}
	options := []engine.Option{engine.MaxKeys(l.Room()), engine.Overflow(l.Overflow), engine.ClockFunc(ls.Env.Now)}
	if len(policies) > 1 {
		options = append(options, engine.Tiers(policies[1:]...))
	}
	if dir != "" {
		options = append(options, engine.Shared(filepath.Join(dir, l.Name)))
	}
	limiter, err := engine.New(policies[0], options...)
	if err != nil {
		return nil, err
	}
	ls.Env.T.Cleanup(func() { _ = limiter.Close() })
	return live.New(limiter), nil
}

// Policies returns the limit's own policy and those of its tiers.
func (l Limit) Policies() []engine.Policy {
	policies := []engine.Policy{l.Own()}
	for _, t := range l.Tiers {
		policies = append(policies, t.Policy(l.algorithm()))
	}
	return policies
}

// Under returns the policy that a request carries. If it carries none, Under returns the policy of its user, or else
// the limit's own policy.
func (l Limit) Under(r Request) engine.Policy {
	if r.Quota != nil {
		return r.Quota.Policy(l.algorithm())
	}
	if n, ok := l.Users[r.User]; ok {
		return n.Policy(l.algorithm())
	}
	return l.Own()
}
