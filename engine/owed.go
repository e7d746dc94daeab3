package engine

import (
	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// Owed returns how many tokens the key has used and not got back yet, rounded up, including tokens above the limit. It
// costs as much as [Limiter.Peek]. A token bucket counts in tokens of the quota or tier under which the key took last,
// even if that tier is now unlimited or blocked. The result lastKey is the key under that quota or tier. Use lastKey
// for further takes or charges.
func (l *Limiter) Owed(k Key) (tokens uint64, lastKey Key) {
	l.requireMade()
	for {
		plan := l.table.Plan()
		lastKey, token, ok := k, uint64(1), true
		if base := plan.Source().(*policySet).base; base.isTokenBucket() {
			lastKey, token, ok = l.lastCharge(plan, k)
			ok = ok && base.grant != grantsQuotas // the limiter's own policy grants nothing
		}
		maxTokens := min(atomicbucket.Most(plan.Algorithm())/token, atomicbucket.MaxBurst)
		countingKey := k.With(Quota{plan.NewQuota(atomicbucket.Quota{Token: token, Tokens: maxTokens})})
		if !ok {
			lastKey = countingKey
		}
		d := l.Peek(countingKey, 1)
		if l.table.Plan() == plan {
			return d.Limit - d.Remaining, lastKey
		}
	}
}

// lastCharge returns the key under the tier of its bucket's last charge, and what a token cost then. ok is false if the
// charge was under another quota.
func (l *Limiter) lastCharge(plan *shard.Plan, k Key) (lastKey Key, token uint64, ok bool) {
	quota := plan.Granted(k.quota)
	if lastKey, token = k, quota.Token; quota.Tokens == 0 {
		token = plan.LastToken(0)
	}
	place := l.table.Find(k.hash)
	if tier, ok := l.table.LastTier(place); ok {
		lastKey, token = k.Tier(tier), plan.LastToken(tier)
	}
	if price, ok := l.table.LastPrice(place); ok && price != token {
		return k, price, false
	}
	return lastKey, token, true
}
