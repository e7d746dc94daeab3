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
	// Differs names the settings or numbers of another node that are not those of this node. It is "" if no difference
	// was found in the last minute.
	Differs string
}

// Stats returns the statistics of the limiter and its tiers together. The mode is that of its own policy. Stats visits
// every lease.
func (l *Limiter) Stats() Stats {
	s := Stats{
		Mode: l.Mode(), OnLoss: l.config.onLoss, Fallbacks: l.fallbacks.Load(), Store: l.client.Health(),
	}
	if l.agreement != nil && l.agreement.difference.Load() != nil {
		s.Differs = *l.agreement.difference.Load()
	}
	if l.terms != nil {
		l.leases.Range(func(_ string, keyLease *lease.Lease) bool {
			tokens, debt := keyLease.Balance()
			s.Leases, s.Held, s.Debt = s.Leases+1, s.Held+tokens, s.Debt+debt
			return true
		})
	}
	s.Debt += l.debts.Total()
	for _, l := range l.tiers {
		tier := l.Stats()
		s.Leases, s.Held, s.Debt, s.Fallbacks = s.Leases+tier.Leases, s.Held+tier.Held, s.Debt+tier.Debt, s.Fallbacks+tier.Fallbacks
	}
	return s
}

// Bound returns the largest number of tokens of one key that all nodes together admit in any time t, while the store
// answers:
//
//   - For a token bucket, burst + rate*t.
//   - For windows and logs, one limit, plus one for each window that can begin in t. For the calendar, the shortest
//     period counts.
//   - For [engine.Concurrency], the limit, which bounds the requests in flight at any moment.
//   - For [engine.TokenBuckets], 0, because each quota has its own bound.
//
// For leases, the bound also contains O + N*D. O is the number of tokens that N nodes ([Nodes]) may have in hand when t
// begins, and D is their [Overdraft]. With more nodes than N, the bound is not true.
func (l *Limiter) Bound(t time.Duration) uint64 {
	if l.limit.IsOfQuotas() {
		return 0
	}
	bound := float64(l.policy.Limit())
	periods := float64(t) / float64(shortestPeriod(l.policy))
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

// shortest returns the length of the shortest period of a policy. For a month, this is 28 days. Three hours are
// subtracted from periods of a calendar, because clocks may be put forward.
func shortestPeriod(p engine.Policy) time.Duration {
	switch period, _, _ := p.Calendar(); period {
	case engine.Day, engine.Week:
		return period.Longest() - 3*time.Hour
	case engine.Month:
		return period.Longest() - 3*24*time.Hour - 3*time.Hour
	}
	return p.Rate().Period
}
