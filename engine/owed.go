package engine

import (
	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// Owed returns how many tokens the key has used and not got back yet, rounded up. The result includes tokens above the
// limit, for example after a [Limiter.SetPolicy] that lowered the limit. [Decision.Remaining] does not show such
// tokens. For a token bucket, Owed counts in tokens of the quota or tier under which the key took last, even if that
// tier is now unlimited or blocked. The result under is the key k under that quota or tier. Use this key for further
// takes or charges.
//
// Owed costs as much as [Limiter.Peek], and changes nothing.
func (l *Limiter) Owed(k Key) (tokens uint64, under Key) {
	l.requireMade()
	for {
		plan := l.table.Plan()
		under, token, known := k, uint64(1), true
		if base := plan.Source().(*policies).base; base.isTokenBucket() {
			under, token, known = l.lastCharged(plan, k)
			known = known && base.grant != grantsQuotas // the limiter's own policy grants nothing
		}
		most := min(atomicbucket.Most(plan.Algorithm())/token, atomicbucket.MaxBurst)
		counts := k.With(Quota{plan.NewQuota(atomicbucket.Quota{Token: token, Tokens: most})})
		if !known {
			under = counts
		}
		d := l.Peek(counts, 1)
		if l.table.Plan() == plan {
			return d.Limit - d.Remaining, under
		}
	}
}

// lastCharged returns the key under the tier whose numbers its bucket was charged with last, and what a token cost
// then. If the charge may have been under the quota of k, the result under is k itself. The result known is false if
// the charge was under no tier and not under that quota.
func (l *Limiter) lastCharged(plan *shard.Plan, k Key) (under Key, token uint64, known bool) {
	granted := plan.Granted(k.quota)
	if under, token = k, granted.Token; granted.Tokens == 0 {
		token = plan.LastToken(0)
	}
	place := l.table.Find(k.hash)
	if tier, known := l.table.LastTier(place); known {
		under, token = k.Tier(tier), plan.LastToken(tier)
	}
	if price, known := l.table.LastPrice(place); known && price != token {
		return k, price, false
	}
	return under, token, true
}
