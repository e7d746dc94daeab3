package engine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// plan checks the policies and returns a plan for them. The argument before is the algorithm of the table's records, or
// nil for a new table.
func (ps policies) plan(before atomicbucket.Algorithm, terms terms) (*shard.Plan, error) {
	p, tiers, most := ps.all[0], ps.all[1:], ps.most()
	if ps.base.algorithm != AlgorithmTokenBucket && ps.base.algorithm != AlgorithmBatchRefill {
		most = max(most, terms.maxQuota)
		if limits := max(terms.maxDebt, 1); most > math.MaxUint64/limits {
			return nil, fmt.Errorf("engine: %v: MaxDebt(%d): so large a count does not fit into a word", ps.base, limits)
		} else {
			most *= limits
		}
	}
	algorithm, err := ps.base.buildRoomy(most, ps.lasts())
	if terms.shared && ps.base.algorithm == AlgorithmConcurrency {
		algorithm, err = ps.base.buildEntries(most)
	}
	if err != nil && most > ps.base.limit && terms.maxDebt > 1 {
		return nil, fmt.Errorf("%w (with MaxDebt(%d) a key may owe %d)", err, terms.maxDebt, most)
	} else if err != nil && (ps.most() > ps.limit() || ps.lasts() > ps.base.window) {
		return nil, fmt.Errorf("%w (a key may still have used up %d of earlier limits, for %v)", err, most, ps.lasts())
	} else if err != nil {
		return nil, err
	}
	if bucket, ok := algorithm.(*atomicbucket.TokenBucket); ok && ps.base.algorithm != AlgorithmBatchRefill {
		if ps.areOfSeveralRates(terms) {
			bucket = bucket.Priced()
		}
		if algorithm, err = ps.roomy(bucket); err != nil {
			return nil, err
		}
	}
	if before != nil {
		if algorithm, err = algorithm.Following(before); err != nil {
			return nil, fmt.Errorf("engine: SetPolicy(%v) with %d tiers: %w", p, len(tiers), err)
		}
	}
	quotas, err := ps.tierQuotas(algorithm)
	if err != nil {
		return nil, err
	}
	plan, err := shard.NewPlan(algorithm, terms.lateness, quotas...)
	if err != nil {
		return nil, err
	}
	if err := terms.apply(plan, ps); err != nil {
		return nil, err
	}
	for i, policy := range ps.all {
		plan.SetHighest(uint8(i), ps.room[i])
		switch policy.grant {
		case grantsLimit:
		case grantsAll:
			plan.SetTier(uint8(i), shard.Unlimited())
		case grantsNone, grantsQuotas:
			plan.SetTier(uint8(i), shard.Blocked())
		}
	}
	plan.SetLongest(ps.longest)
	plan.SetSource(&ps)
	return plan, nil
}

func (ps policies) tierQuotas(algorithm atomicbucket.Algorithm) ([]atomicbucket.Quota, error) {
	quotas := make([]atomicbucket.Quota, len(ps.last)-1)
	for i, tier := range ps.last[1:] {
		var err error
		if quotas[i], err = ps.base.tier(algorithm, tier); err != nil {
			return nil, fmt.Errorf("engine: tier %d, %v: %w", i+1, tier, err)
		}
		if room := atomicbucket.Most(algorithm) / quotas[i].Token; ps.room[i+1] > room {
			return nil, fmt.Errorf("engine: tier %d, %v: a key may still owe %d tokens by earlier numbers, "+
				"and a record has room for %d at this rate", i+1, tier, ps.room[i+1], room)
		}
	}
	return quotas, nil
}

// areOfSeveralRates reports whether keys may have several rates, so that records must store what a token cost.
func (ps policies) areOfSeveralRates(terms terms) bool {
	return ps.base.algorithm == AlgorithmTokenBucket && (len(ps.all) > 1 || terms.maxQuota > 0)
}

// most returns the largest number of tokens for which a record must have room. Limits of earlier policies are included
// if the algorithm still counts their tokens.
func (ps policies) most() uint64 {
	switch ps.base.algorithm {
	case AlgorithmTokenBucket: // the tiers are checked separately
		return ps.room[0]
	case AlgorithmFixedWindow, AlgorithmSlidingWindow:
		if ps.base.limit > 0 { // a limit of 0 returns an error that names the highest limit
			return max(slices.Max(ps.room), ps.rounded)
		}
	}
	return ps.limit()
}

// lasts returns how long tokens may count after the length of windows has changed (R24). If keys may have several
// limits, it is the longest window so far, because a key may have taken tokens under another limit.
func (ps policies) lasts() time.Duration {
	window, longest := ps.base.window, ps.longest
	if ps.base.algorithm == AlgorithmSlidingWindow {
		longest *= 2
	}
	if len(ps.last) > 1 || ps.quotas > 0 || ps.last[0].isFixed() {
		return max(window, longest)
	}
	lasts := float64(window) * float64(ps.room[0]) / float64(max(ps.base.limit, 1))
	return max(window, duration(min(lasts*(1+1e-9), float64(longest))))
}

func (ps policies) limit() uint64 {
	most := ps.base.limit
	for _, tier := range ps.all[1:] {
		most = max(most, tier.limit)
	}
	return most
}

// terms are the settings of a limiter that apply to every plan.
type terms struct {
	lateness time.Duration // how late the limiter's clock may be
	maxQuota uint64        // highest quota of a window or log; 0 means the highest limit of the policies
	maxDebt  uint64        // in limits; 0 means the default
	refusals RefusalCharge
	shared   bool // the table is shared with other processes
}

func (p Policy) tier(algorithm atomicbucket.Algorithm, tier Policy) (atomicbucket.Quota, error) {
	if tier.isFixed() {
		return atomicbucket.Quota{Token: 1}, nil
	}
	if bucket, ok := algorithm.(*atomicbucket.TokenBucket); ok && p.isTokenBucket() && tier.algorithm == AlgorithmTokenBucket && tier.grant == grantsLimit && !tier.aligned {
		return bucket.Share(tier.rate.Tokens, tier.rate.Period, tier.limit)
	}
	same := p
	same.limit = tier.limit
	if tier != same || p.isTokenBucket() {
		return atomicbucket.Quota{}, fmt.Errorf("want %v with another limit", p)
	}
	_, err := tier.build(max(p.limit, tier.limit))
	return atomicbucket.Quota{Token: 1, Tokens: tier.limit}, err
}
