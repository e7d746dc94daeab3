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
	Leases    int           // keys that the node has a lease of
	Held      uint64        // tokens in hand
	Debt      uint64        // tokens admitted and not charged yet
	OnFailure FailurePolicy // that of the limiter
	Fallbacks int64         // decisions by OnFailure, because the store failed to make them
	Store     Health
}

// Stats returns the limiter's statistics. It visits every lease.
func (l *Limiter) Stats() Stats {
	s := Stats{
		Mode: l.Mode(), OnFailure: l.config.onFailure, Fallbacks: l.fallbacks.Load(), Store: l.client.Health(),
	}
	if l.terms == nil {
		return s
	}
	l.leases.Range(func(_ string, held *lease.Lease) bool {
		tokens, debt := held.Held()
		s.Leases, s.Held, s.Debt = s.Leases+1, s.Held+tokens, s.Debt+debt
		return true
	})
	return s
}

// Bound returns the most that all nodes together admit of one key in a time: burst + rate*T + O + N*D
// for a token bucket that is leased, without O and N*D if it is strict; for windows as many limits as windows
// can begin in it, and one. It holds as long as the number of nodes is not larger than [Nodes].
func (l *Limiter) Bound(t time.Duration) uint64 {
	bound := float64(l.policy.Limit())
	periods := float64(t) / float64(l.policy.Rate().Period())
	switch l.policy.Algorithm() {
	case engine.AlgorithmTokenBucket:
		bound += l.policy.Rate().Tokens() * periods
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
