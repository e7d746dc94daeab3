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
	made    map[string]*made
	changes map[string]*made // what Commit changes
}

type made struct {
	*live.Limiter
	limit Limit
	dir   string
	first []engine.Policy // the policies with which the limiter was made
}

// LimitOf returns a limit of a new configuration, without the fields that depend on the type of requests.
// [Limiters.Commit] makes the limit active.
func LimitOf[R any](ls *Limiters, c Config, l Limit) (made limits.Limit[R], err error) {
	made = limits.Limit[R]{Name: l.Name, MaxWait: l.MaxWait, Shadow: l.Shadow, Hold: l.Hold}
	if !l.Stored {
		of, err := ls.of(l, c.Dir)
		if err != nil {
			return made, err
		}
		made.Limiter, made.Spread, made.Formers = of.Limiter, of.Spread, of.Formers()
		return made, nil
	}
	made.OnLoss = map[Loss]limits.FailurePolicy{Closed: limits.Closed}[c.OnLoss]
	made.Source, err = ls.Source(ls.Env, c, l)
	return made, err
}

// The method of returns the limiter of a limit in memory or in a file.
func (ls *Limiters) of(l Limit, dir string) (*live.Limiter, error) {
	if ls.made == nil {
		ls.made, ls.changes = map[string]*made{}, map[string]*made{}
	}
	next := &made{limit: l, dir: dir, first: l.Policies()}
	if m := ls.made[l.Name]; m.takes(l, dir) {
		next.Limiter, next.first = m.Limiter, m.first
	} else {
		var err error
		if next.Limiter, err = ls.fresh(l, dir); err == nil && m.sameKeys(l) {
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
		if from := ls.made[name]; from != nil && from.Limiter == to.Limiter && !to.limit.ByQuota() {
			if all := to.limit.Policies(); !slices.Equal(from.limit.Policies(), all) {
				if err := to.setPolicies(all); err != nil {
					return err
				}
			}
		}
		ls.made[name] = to
	}
	clear(ls.changes)
	return nil
}

func (m *made) takes(l Limit, dir string) bool {
	return m != nil && m.limit.Key == l.Key && m.limit.Room() == l.Room() && m.limit.Overflow == l.Overflow &&
		m.limit.ByQuota() == l.ByQuota() && m.limit.Spread == l.Spread && m.dir == dir && (l.ByQuota() || engine.CheckChange(m.first, l.Policies()) == nil)
}

// sameKeys reports whether the records of a limit can move to its new limiter: the old limiter is in memory, both
// limits have the same kind of key, and neither counts requests in flight.
func (m *made) sameKeys(l Limit) bool {
	return m != nil && m.limit.Key == l.Key && m.dir == "" && m.limit.Concurrency == 0 && l.Concurrency == 0
}

func (m *made) setPolicies(all []engine.Policy) error {
	if m.Spread != nil {
		return m.Spread.SetPolicy(all[0])
	}
	return m.SetPolicy(all[0], all[1:]...)
}

func (ls *Limiters) fresh(l Limit, dir string) (*live.Limiter, error) {
	all := l.Policies()
	if l.Spread {
		bucket, err := engine.NewSpread(all[0], engine.ClockFunc(ls.Env.Now))
		if err != nil {
			return nil, err
		}
		ls.Env.T.Cleanup(func() { _ = bucket.Close() })
		return live.NewSpread(bucket), nil
	}
	if l.ByQuota() {
		all = []engine.Policy{engine.TokenBuckets(LongestQuota)}
	}
	options := []engine.Option{engine.MaxKeys(l.Room()), engine.Overflow(l.Overflow), engine.ClockFunc(ls.Env.Now)}
	if len(all) > 1 {
		options = append(options, engine.Tiers(all[1:]...))
	}
	if dir != "" {
		options = append(options, engine.Shared(filepath.Join(dir, l.Name)))
	}
	limiter, err := engine.New(all[0], options...)
	if err != nil {
		return nil, err
	}
	ls.Env.T.Cleanup(func() { _ = limiter.Close() })
	return live.New(limiter), nil
}

// Policies returns the limit's own policy and those of its tiers.
func (l Limit) Policies() []engine.Policy {
	all := []engine.Policy{l.Own()}
	for _, t := range l.Tiers {
		all = append(all, t.Policy(l.algorithm()))
	}
	return all
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
