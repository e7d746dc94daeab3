package engine

import "github.com/weir-go/weir/atomicbucket"

// Owed returns how many tokens the key has used and not got back yet, rounded up: also those above its limit, as after
// a [Limiter.SetPolicy] that lowered it, of which [Decision.Remaining] says nothing. It is false for token buckets,
// whose tokens are those of a tier: see [Limiter.LastTier]. The tier of k does not matter. It costs what
// [Limiter.PeekKey] does, and changes nothing.
func (l *Limiter) Owed(k Key) (tokens uint64, known bool) {
	l.requireMade()
	plan := l.table.Plan()
	if plan.Source().(*policies).base.isTokenBucket() {
		return 0, false
	}
	most := min(atomicbucket.Most(plan.Algorithm()), atomicbucket.MaxBurst)
	d := l.PeekKey(k.With(Quota{plan.NewQuota(atomicbucket.Quota{Token: 1, Tokens: most})}), 1)
	return d.Limit - d.Remaining, true
}
