package redislimit

import (
	"math"
	"time"

	"github.com/weir-go/weir/redislimit/internal/lease"

	"github.com/weir-go/weir/engine"
)

// Stats are a limiter's statistics.
type Stats struct {
	Mode     Mode
	Leases   int    // keys that a lease is held of
	Held     uint64 // tokens in hand
	Debt     uint64 // tokens admitted and not charged yet
	LostTo   int64  // decisions that the store failed to make: by the loss policy
	LossRule LossPolicy
	Store    Health
}

// Stats returns the limiter's statistics. It visits every lease.
func (l *Limiter) Stats() Stats {
	s := Stats{Mode: l.Mode(), LostTo: l.lost.Load(), LossRule: l.config.loss, Store: l.store.Health()}
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
	rate, bound := l.policy.Rate(), float64(l.policy.Limit())
	switch l.policy.Algorithm() {
	case engine.AlgorithmTokenBucket:
		bound += rate.Tokens() * float64(t) / float64(rate.Period())
	default:
		bound += bound * math.Ceil(float64(t)/float64(rate.Period()))
	}
	if l.terms != nil {
		bound += float64(l.config.nodes) * float64(l.terms.Cap()+l.config.overdraft)
	}
	return uint64(bound)
}
