package redislimit

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/lease"
)

// Stats are a limiter's statistics.
type Stats struct {
	Mode      Mode
	Leases    int           // number of keys for which the node has a lease
	Held      uint64        // tokens in hand
	Debt      uint64        // tokens admitted and not charged yet
	OnLoss    FailurePolicy // the limiter's failure policy
	Fallbacks int64         // decisions by OnLoss, because the store failed to make them
	Store     Health
	// Differs names settings or numbers of another node that differ from those of this node. It is "" if no difference
	// was found in the last minute.
	Differs string
}

// Stats returns the limiter's statistics. The counts include the counts of its tiers. Mode is the mode for the
// limiter's own policy. Stats visits every lease.
func (l *Limiter) Stats() Stats {
	s := Stats{
		Mode: l.Mode(), OnLoss: l.config.onLoss, Fallbacks: l.fallbacks.Load(), Store: l.client.Health(),
	}
	if l.agreement != nil && l.agreement.differs.Load() != nil {
		s.Differs = *l.agreement.differs.Load()
	}
	if l.terms != nil {
		l.leases.Range(func(_ string, held *lease.Lease) bool {
			tokens, debt := held.Held()
			s.Leases, s.Held, s.Debt = s.Leases+1, s.Held+tokens, s.Debt+debt
			return true
		})
	}
	s.Debt += l.owed.Total()
	for _, l := range l.tiers {
		tier := l.Stats()
		s.Leases, s.Held, s.Debt, s.Fallbacks = s.Leases+tier.Leases, s.Held+tier.Held, s.Debt+tier.Debt, s.Fallbacks+tier.Fallbacks
	}
	return s
}

// Bound returns the maximum number of tokens that all nodes together admit of one key in any time T:
//
//   - For a token bucket it is burst + rate*T.
//   - For windows and logs it is one limit, plus one for each window that can begin in T. For the calendar, the
//     shortest period counts.
//   - For [engine.Concurrency] it is the limit, which bounds the requests in flight at any moment.
//   - For [engine.TokenBuckets], it is 0, because such a limiter admits only by quotas, and each quota has its own
//     bound.
//
// If the limit is leased, O + N*D is added. N is the number set by [Nodes]. The bound is true only if there are not
// more nodes. O is N times the largest number of tokens that a lease may have in hand. The store may have charged these
// tokens before T began. D is the [Overdraft]. The store may charge these tokens after T has ended.
//
// The bound is true while the store answers. docs/distributed.md describes how many tokens shares admit beyond the
// bound while the store is lost.
func (l *Limiter) Bound(t time.Duration) uint64 {
	if l.limit.IsOfQuotas() {
		return 0
	}
	bound := float64(l.policy.Limit())
	periods := float64(t) / float64(shortest(l.policy))
	switch l.policy.Algorithm() {
	case engine.AlgorithmConcurrency: // at any moment
	case engine.AlgorithmTokenBucket:
		bound += l.policy.Rate().Tokens * periods
	case engine.AlgorithmFixedWindow, engine.AlgorithmSlidingWindow, engine.AlgorithmSlidingLog:
		bound += bound * math.Ceil(periods)
	default:
		panic(fmt.Sprintf("redislimit: %v has no bound", l.policy)) // New takes no other algorithm
	}
	if l.terms != nil {
		bound += float64(l.config.nodes) * float64(l.terms.Cap()+l.config.overdraft)
	}
	return uint64(bound)
}

// shortest returns the period of a policy. For the calendar it returns the shortest possible period: 28 days for a
// month, minus three hours because clocks may be put forward.
func shortest(p engine.Policy) time.Duration {
	switch per, _, _ := p.Calendar(); per {
	case engine.Day, engine.Week:
		return per.Longest() - 3*time.Hour
	case engine.Month:
		return per.Longest() - 3*24*time.Hour - 3*time.Hour
	}
	return p.Rate().Period
}
