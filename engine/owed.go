package engine

import (
	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// Owed returns how many tokens the key has used and not got back yet, rounded up, including tokens above the limit. It
// costs as much as [Limiter.Peek]. A token bucket counts in tokens of the quota or tier under which the key took last,
// even if that tier is now unlimited or blocked. The result under is the key under that quota or tier. Use that key for
// further takes or charges.
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

// lastCharged returns the key under the tier of its bucket's last charge, and what a token cost then. known is false if
// the charge was under another quota.
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
