package live

import (
	"math"
	"time"

	"github.com/weir-go/weir/engine"
)

// owed returns how many tokens a key has used, rounded up: those of a bucket by the tier under which it took last. A
// batch refill above its limit is rounded down to whole refills.
func owed(l *engine.Limiter, k engine.Key) (most uint64) {
	if tier, known := l.LastTier(k); known {
		return owedUnder(l.PeekKey(k.Tier(tier), 1), l.Policy(tier))
	}
	most = owedUnder(l.PeekKey(k, 1), l.Policy(0))
	for tier := 1; l.Policy(tier) != (engine.Policy{}); tier++ { // a smaller limit than the key has used hides the rest
		if p := l.Policy(tier); p.Algorithm() != engine.AlgorithmTokenBucket {
			most = max(most, owedUnder(l.PeekKey(k.Tier(tier), 1), p))
		}
	}
	return most
}

// owedUnder returns how many tokens are used by what a limiter says of a request for one.
func owedUnder(d engine.Decision, p engine.Policy) uint64 {
	if d.Limit == math.MaxUint64 || d.ResetAfter == 0 {
		return 0
	}
	used := d.Limit - d.Remaining
	switch {
	case d.Remaining > 0 || d.Limit == 0:
	case p.Algorithm() == engine.AlgorithmTokenBucket: // above the limit: in the time that is left it comes back
		const exact = 1e-6 // durations are rounded up to a nanosecond
		used = max(used, uint64(math.Ceil(p.Rate().PerSecond()*d.ResetAfter.Seconds()-exact)))
	case p.Algorithm() == engine.AlgorithmBatchRefill && d.RetryAfter > 0:
		interval := p.Rate().Period()
		used += uint64((d.RetryAfter-1)/max(interval, time.Nanosecond)) * uint64(p.Rate().Tokens())
	}
	return used
}
