package engine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// plan checks the policies and returns a plan for them. The argument previous is the algorithm of the table's records,
// or nil for a new table.
func (s policySet) plan(previous atomicbucket.Algorithm, terms terms) (*shard.Plan, error) {
	policy, tiers, maxTokens := s.byTier[0], s.byTier[1:], s.maxTokens()
	if s.base.algorithm != AlgorithmTokenBucket && s.base.algorithm != AlgorithmBatchRefill {
		maxTokens = max(maxTokens, terms.maxQuota)
		if maxDebt := max(terms.maxDebt, 1); maxTokens > math.MaxUint64/maxDebt {
			return nil, fmt.Errorf("engine: %v: MaxDebt(%d): so large a count does not fit into a word", s.base, maxDebt)
		} else {
			maxTokens *= maxDebt
		}
	}
	algorithm, err := s.base.buildRoomy(maxTokens, s.maxWindow())
	if terms.shared && s.base.algorithm == AlgorithmConcurrency {
		algorithm, err = s.base.buildEntries(maxTokens)
	}
	if err != nil && maxTokens > s.base.limit && terms.maxDebt > 1 {
		return nil, fmt.Errorf("%w (with MaxDebt(%d) a key may owe %d)", err, terms.maxDebt, maxTokens)
	} else if err != nil && (s.maxTokens() > s.highestLimit() || s.maxWindow() > s.base.window) {
		return nil, fmt.Errorf("%w (a key may still have used up %d of earlier limits, for %v)", err, maxTokens, s.maxWindow())
	} else if err != nil {
		return nil, err
	}
	if bucket, ok := algorithm.(*atomicbucket.TokenBucket); ok && s.base.algorithm != AlgorithmBatchRefill {
		if s.haveSeveralRates(terms) {
			bucket = bucket.Priced()
		}
		if algorithm, err = s.makeRoom(bucket); err != nil {
			return nil, err
		}
	}
	if previous != nil {
		if algorithm, err = algorithm.Following(previous); err != nil {
			return nil, fmt.Errorf("engine: SetPolicy(%v) with %d tiers: %w", policy, len(tiers), err)
		}
	}
	quotas, err := s.tierQuotas(algorithm)
	if err != nil {
		return nil, err
	}
	plan, err := shard.NewPlan(algorithm, terms.lateness, quotas...)
	if err != nil {
		return nil, err
	}
	if err := terms.apply(plan, s); err != nil {
		return nil, err
	}
	for i, policy := range s.byTier {
		plan.SetHighest(uint8(i), s.highest[i])
		switch policy.grant {
		case grantsLimit:
		case grantsAll:
			plan.SetTier(uint8(i), shard.Unlimited())
		case grantsNone, grantsQuotas:
			plan.SetTier(uint8(i), shard.Blocked())
		}
	}
	plan.SetLongest(s.longestWindow)
	plan.SetSource(&s)
	return plan, nil
}

func (s policySet) tierQuotas(algorithm atomicbucket.Algorithm) ([]atomicbucket.Quota, error) {
	quotas := make([]atomicbucket.Quota, len(s.bases)-1)
	for i, tier := range s.bases[1:] {
		var err error
		if quotas[i], err = s.base.tierQuota(algorithm, tier); err != nil {
			return nil, fmt.Errorf("engine: tier %d, %v: %w", i+1, tier, err)
		}
		if room := atomicbucket.Most(algorithm) / quotas[i].Token; s.highest[i+1] > room {
			return nil, fmt.Errorf("engine: tier %d, %v: a key may still owe %d tokens by earlier numbers, "+
				"and a record has room for %d at this rate", i+1, tier, s.highest[i+1], room)
		}
	}
	return quotas, nil
}

// haveSeveralRates reports whether keys may have several rates, so that records must store what a token cost.
func (s policySet) haveSeveralRates(terms terms) bool {
	return s.base.algorithm == AlgorithmTokenBucket && (len(s.byTier) > 1 || terms.maxQuota > 0)
}

// maxTokens returns the largest number of tokens for which a record must have room. It includes limits of earlier
// policies if the algorithm still counts their tokens.
func (s policySet) maxTokens() uint64 {
	switch s.base.algorithm {
	case AlgorithmTokenBucket: // the tiers are checked separately
		return s.highest[0]
	case AlgorithmFixedWindow, AlgorithmSlidingWindow:
		if s.base.limit > 0 { // a limit of 0 returns an error that names the highest limit
			return max(slices.Max(s.highest), s.maxEstimate)
		}
	}
	return s.highestLimit()
}

// maxWindow returns how long tokens may count after the length of windows has changed (R24). If keys may have several
// limits, this is the longest window so far, because a key may have taken tokens under another limit.
func (s policySet) maxWindow() time.Duration {
	window, longest := s.base.window, s.longestWindow
	if s.base.algorithm == AlgorithmSlidingWindow {
		longest *= 2
	}
	if len(s.bases) > 1 || s.quotaDebt > 0 || s.bases[0].isFixed() {
		return max(window, longest)
	}
	nanos := float64(window) * float64(s.highest[0]) / float64(max(s.base.limit, 1))
	return max(window, duration(min(nanos*(1+1e-9), float64(longest))))
}

func (s policySet) highestLimit() uint64 {
	highest := s.base.limit
	for _, tier := range s.byTier[1:] {
		highest = max(highest, tier.limit)
	}
	return highest
}

// terms are the settings of a limiter that apply to every plan.
type terms struct {
	lateness time.Duration // how late the limiter's clock may be
	maxQuota uint64        // highest quota of a window or log; 0 means the highest limit of the policies
	maxDebt  uint64        // in limits; 0 means the default
	refusals RefusalCharge
	shared   bool // the table is shared with other processes
}

func (p Policy) tierQuota(algorithm atomicbucket.Algorithm, tier Policy) (atomicbucket.Quota, error) {
	if tier.isFixed() {
		return atomicbucket.Quota{Token: 1}, nil
	}
	if bucket, ok := algorithm.(*atomicbucket.TokenBucket); ok && p.isTokenBucket() && tier.algorithm == AlgorithmTokenBucket && tier.grant == grantsLimit && !tier.aligned {
		return bucket.Share(tier.rate.Tokens, tier.rate.Period, tier.limit)
	}
	expected := p
	expected.limit = tier.limit
	if tier != expected || p.isTokenBucket() {
		return atomicbucket.Quota{}, fmt.Errorf("want %v with another limit", p)
	}
	_, err := tier.build(max(p.limit, tier.limit))
	return atomicbucket.Quota{Token: 1, Tokens: tier.limit}, err
}
