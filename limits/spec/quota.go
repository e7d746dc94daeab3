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

// Room returns the argument of [engine.MaxQuota] for a limiter whose quotas have at most maxTokens tokens.
func Room(policy engine.Policy, maxTokens uint64) uint64 {
	if policy.Algorithm() == engine.AlgorithmTokenBucket {
		return MaxBurst // for a token bucket, this takes no more memory than a room of 1
	}
	return max(policy.Limit(), maxTokens)
}

// Highest returns the largest limit, in tokens, of the policies that are not [engine.Blocked] or [engine.Unlimited].
func Highest(policies ...engine.Policy) (highest uint64) {
	for _, p := range policies {
		if counts(p) {
			highest = max(highest, p.Limit())
		}
	}
	return highest
}

func counts(p engine.Policy) bool { return p != engine.Blocked() && p != engine.Unlimited() }

// base returns the policy with which the limiter is made. It also returns, in counted, the policies of the tiers that
// are neither blocked nor unlimited.
func (l *Limit) base(policy engine.Policy, tiers []engine.Policy) (base engine.Policy, counted []engine.Policy) {
	counted = slices.DeleteFunc(slices.Clone(tiers), func(p engine.Policy) bool { return !counts(p) })
	switch base = policy; {
	case l.Base != engine.Policy{}:
		base = l.Base
	case !counts(policy) && len(counted) > 0:
		base = counted[0]
	}
	return base, counted
}

// checkQuotas checks each tier as a quota of a limiter with the policy base, and adds an error if the limiter would not
// accept it.
func (l *Limit) checkQuotas(problems *Errors, policy, base engine.Policy, tiers []engine.Policy) {
	if !counts(base) {
		if l.Quota > 0 {
			problems.add("", "quota", "a rate of %v without a plan that counts leaves nothing to count: write a plan with a rate", l.Rate)
		}
		return
	}
	maxTokens := l.Quota
	if maxTokens == 0 {
		maxTokens = Highest(tiers...)
	}
	q, err := newQuotas(l, base, maxTokens)
	if err != nil {
		problems.add("", "quota", "%s", plain(err))
		return
	}
	defer q.Close()
	if err := q.checkAccepted(policy); err != nil { // the limit's own policy is a quota, too
		problems.add("", "rate", "%s", plain(err))
	}
	for i, p := range tiers {
		if err := q.check(p); err != nil {
			problems.add(l.Tiers[i].Name, "rate", "%s", plain(err))
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
	policy, tiers, err := l.Policies()
	if err != nil {
		return nil, err
	}
	base, _ := l.base(policy, tiers)
	return newQuotas(l, base, l.Quota)
}

func newQuotas(l *Limit, base engine.Policy, maxTokens uint64) (*Quotas, error) {
	probe, err := engine.New(base, engine.MaxQuota(Room(base, maxTokens)), engine.MaxKeys(1))
	if err != nil {
		return nil, err
	}
	limit := *l
	limit.Quota = maxTokens
	q := &Quotas{limit: limit, probe: probe, end: func() {}}
	if l.InStore != nil {
		check, end, err := l.InStore(base, Room(base, maxTokens))
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
func (q *Quotas) Policy(numbers Numbers) (engine.Policy, error) {
	p, err := q.limit.Other(numbers)
	if err != nil {
		return engine.Policy{}, err
	}
	return p, q.check(p)
}

// Other returns the policy for numbers that come with a request. The limit must have a Quota. A rate or burst that is
// missing is taken from the limit, as for a [Tier]. The policy may be below the limit's Cost. A limiter may still not
// accept the policy ([engine.Limiter.Quota]).
func (l *Limit) Other(numbers Numbers) (engine.Policy, error) {
	limit := *l
	if limit.Algorithm == engine.NoAlgorithm {
		limit.Algorithm = engine.AlgorithmTokenBucket
	}
	var problems Errors
	p := limit.tier(&problems, Tier{Numbers: numbers})
	if len(problems) > 0 {
		return engine.Policy{}, problems
	}
	return p, l.checkMax(p)
}

func (l *Limit) checkMax(p engine.Policy) error {
	if counts(p) && p.Limit() > l.Quota {
		return fmt.Errorf("limit of %d tokens: want at most %d, the max", p.Limit(), l.Quota)
	}
	return nil
}

// check checks numbers that a key has until its file or plan changes.
func (q *Quotas) check(p engine.Policy) error {
	if err := q.limit.checkMax(p); err != nil {
		return err
	}
	if counts(p) && q.limit.Cost > p.Limit() {
		return fmt.Errorf("limit of %d tokens: a request may cost %d, and could never pass", p.Limit(), q.limit.Cost)
	}
	return q.checkAccepted(p)
}

func (q *Quotas) checkAccepted(p engine.Policy) error {
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
