package spec

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
)

// MaxTiers is the largest number of tiers of a limiter. If a limit has more tiers, each request brings the policy of
// its tier as a quota ([engine.Limiter.Quota]). The limiter is then made with [Room] for quotas.
const MaxTiers = 14

// DefaultQuota is the largest limit, in tokens, of a quota if the configuration sets no other number.
const DefaultQuota = 1_000_000

// LongestQuota is the longest time that a bucket of a quota may take to fill in a store. Up to this time, a store
// counts in nanoseconds, as memory does.
const LongestQuota = 26 * 24 * time.Hour

// StoredPolicy returns the policy for a limiter in a store whose requests bring quotas. The argument base is one of the
// limit's policies that count requests.
func StoredPolicy(base engine.Policy) engine.Policy {
	if base.Algorithm() == engine.AlgorithmTokenBucket {
		return engine.TokenBuckets(LongestQuota)
	}
	return base
}

// Room returns the argument of [engine.MaxQuota] for a limiter of the policy own, whose quotas have at most the given
// number of tokens.
func Room(own engine.Policy, most uint64) uint64 {
	if own.Algorithm() == engine.AlgorithmTokenBucket {
		return MaxBurst // for a token bucket, this takes no more memory than a room of 1
	}
	return max(own.Limit(), most)
}

// Highest returns the largest limit, in tokens, of the policies that are not [engine.Blocked] or [engine.Unlimited].
func Highest(policies ...engine.Policy) (most uint64) {
	for _, p := range policies {
		if counts(p) {
			most = max(most, p.Limit())
		}
	}
	return most
}

func counts(p engine.Policy) bool { return p != engine.Blocked() && p != engine.Unlimited() }

// base returns the policy with which the limiter is made. It also returns, in counted, the policies of the tiers that
// are neither blocked nor unlimited.
func (l *Limit) base(own engine.Policy, tiers []engine.Policy) (base engine.Policy, counted []engine.Policy) {
	counted = slices.DeleteFunc(slices.Clone(tiers), func(p engine.Policy) bool { return !counts(p) })
	switch base = own; {
	case l.Base != engine.Policy{}:
		base = l.Base
	case !counts(own) && len(counted) > 0:
		base = counted[0]
	}
	return base, counted
}

// checkQuotas checks each tier as a quota of a limiter with the policy base, and adds an error if the limiter would not
// accept it.
func (l *Limit) checkQuotas(es *Errors, own, base engine.Policy, tiers []engine.Policy) {
	if !counts(base) {
		if l.Quota > 0 {
			es.add("", "quota", "a rate of %v without a plan that counts leaves nothing to count: write a plan with a rate", l.Rate)
		}
		return
	}
	most := l.Quota
	if most == 0 {
		most = Highest(tiers...)
	}
	q, err := newQuotas(l, base, most)
	if err != nil {
		es.add("", "quota", "%s", plain(err))
		return
	}
	defer q.Close()
	if err := q.takes(own); err != nil { // the limit's own policy is a quota, too
		es.add("", "rate", "%s", plain(err))
	}
	for i, p := range tiers {
		if err := q.check(p); err != nil {
			es.add(l.Tiers[i].Name, "rate", "%s", plain(err))
		}
	}
}

// Quotas checks numbers that come from outside the configuration for one limit, such as from a file of customers. It is
// safe for concurrent use.
type Quotas struct {
	limit   Limit
	probe   *engine.Limiter
	inStore func(engine.Policy) error // nil if the limit is not in a store
	end     func()
}

// Quotas returns a checker of numbers for the limit. The limit must have a Quota, and [Limit.Policies] must have
// accepted it. The caller closes the checker.
func (l *Limit) Quotas() (*Quotas, error) {
	own, tiers, err := l.Policies()
	if err != nil {
		return nil, err
	}
	base, _ := l.base(own, tiers)
	return newQuotas(l, base, l.Quota)
}

func newQuotas(l *Limit, base engine.Policy, most uint64) (*Quotas, error) {
	probe, err := engine.New(base, engine.MaxQuota(Room(base, most)), engine.MaxKeys(1))
	if err != nil {
		return nil, err
	}
	of := *l
	of.Quota = most
	q := &Quotas{limit: of, probe: probe, end: func() {}}
	if l.InStore != nil {
		check, end, err := l.InStore(base, Room(base, most))
		if err != nil {
			q.Close()
			return nil, err
		}
		q.inStore, q.end = check, end
	}
	return q, nil
}

// Close frees the memory of the checker.
func (q *Quotas) Close() {
	_ = q.probe.Close() // always nil
	q.end()
}

// Policy returns the policy of the numbers ([Limit.Other]), if a limiter accepts it. The error says what is wrong with
// the numbers.
func (q *Quotas) Policy(n Numbers) (engine.Policy, error) {
	p, err := q.limit.Other(n)
	if err != nil {
		return engine.Policy{}, err
	}
	return p, q.takes(p)
}

// Other returns the policy for numbers that come with a request. The limit must have a Quota. A rate or burst that is
// missing is taken from the limit, as for a [Tier]. A limiter may still not accept the policy ([engine.Limiter.Quota]).
func (l *Limit) Other(n Numbers) (engine.Policy, error) {
	of := *l
	if of.Algorithm == engine.NoAlgorithm {
		of.Algorithm = engine.AlgorithmTokenBucket
	}
	var es Errors
	p := of.tier(&es, Tier{Numbers: n})
	if len(es) > 0 {
		return engine.Policy{}, es
	}
	return p, of.checkOther(p)
}

func (l *Limit) checkOther(p engine.Policy) error {
	switch {
	case !counts(p):
	case p.Limit() > l.Quota:
		return fmt.Errorf("limit of %d tokens: want at most %d, the max", p.Limit(), l.Quota)
	case l.Cost > p.Limit():
		return fmt.Errorf("limit of %d tokens: a request may cost %d, and could never pass", p.Limit(), l.Cost)
	}
	return nil
}

func (q *Quotas) check(p engine.Policy) error {
	if err := q.limit.checkOther(p); err != nil {
		return err
	}
	return q.takes(p)
}

func (q *Quotas) takes(p engine.Policy) error {
	if !counts(p) {
		return nil
	}
	if _, err := q.probe.Quota(p); err != nil {
		return errors.Unwrap(err) // removes the policy, which the caller knows, from the text
	}
	if q.inStore != nil {
		return q.inStore(p)
	}
	return nil
}
