package engine

import "github.com/weir-go/weir/atomicbucket"

// Owed returns how many tokens the key has used and not got back yet, rounded up: also those above its limit, as after
// a [Limiter.SetPolicy] that lowered it, of which [Decision.Remaining] says nothing. Those of a token bucket are tokens
// of the tier under which the key took last, also if that is unlimited or blocked by now. If it took under a quota they
// are of that in a limiter of [TokenBuckets], and of the quota of k in any other. under is k under that tier or quota:
// to take or charge by it.
//
// It costs what [Limiter.Peek] does, and changes nothing.
func (l *Limiter) Owed(k Key) (tokens uint64, under Key) {
	l.requireMade()
	for {
		plan := l.table.Plan()
		under, token := k, uint64(1)
		if plan.Source().(*policies).base.isTokenBucket() {
			granted := plan.Granted(k.quota)
			if token = granted.Token; granted.Tokens == 0 {
				token = plan.LastToken(0)
			}
			if tier, known := l.table.LastTier(l.table.Find(k.hash)); known {
				under, token = k.Tier(tier), plan.LastToken(tier)
			}
		}
		price, known := l.table.LastPrice(l.table.Find(k.hash))
		if known {
			token = price
		}
		most := min(atomicbucket.Most(plan.Algorithm())/token, atomicbucket.MaxBurst)
		counts := k.With(Quota{plan.NewQuota(atomicbucket.Quota{Token: token, Tokens: most})})
		if known {
			under = counts
		}
		d := l.Peek(counts, 1)
		if l.table.Plan() == plan {
			return d.Limit - d.Remaining, under
		}
	}
}
