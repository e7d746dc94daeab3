package live

import (
	"math"

	"github.com/weir-go/weir/engine"
)

// owed returns how many tokens a key has used, rounded up: those of a token bucket by the tier under which it took
// last.
func owed(l *engine.Limiter, k engine.Key) uint64 {
	if tokens, known := l.Owed(k); known {
		return tokens
	}
	tier, known := l.LastTier(k)
	if known {
		k = k.Tier(tier)
	}
	d := l.PeekKey(k, 1)
	if d.Limit == math.MaxUint64 || d.Limit == 0 || d.ResetAfter == 0 {
		return 0
	}
	used := d.Limit - d.Remaining
	if d.Remaining > 0 {
		return used
	}
	const exact = 1e-6 // durations are rounded up to a nanosecond
	// above the limit: in the time that is left it comes back
	return max(used, uint64(math.Ceil(l.Policy(tier).Rate().PerSecond()*d.ResetAfter.Seconds()-exact)))
}
