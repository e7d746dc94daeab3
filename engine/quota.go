package engine

import (
	"fmt"
	"math"
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/tsc"
	"github.com/weir-go/weir/shard"
)

// A Quota is a limit that is stored as a value: it has numbers that [Limiter.Quota] has checked for a limiter. It is
// small, and can be compared with ==. A program may keep it, and any number of goroutines may use it. [Key.With]
// returns a key under a quota. The zero Quota means the limiter's own policy.
//
// A Quota with numbers is valid only in the limiter that made it. In another limiter, every request under it is
// refused, and RetryAfter is [Never]. The same happens after a [Limiter.SetPolicy] that changes what its numbers mean:
// the rate of a [TokenBucket] or [BatchRefill], or the room for the limit of a window. Quotas of a limiter of
// [TokenBuckets] stay valid. The quotas of [Unlimited] and [Blocked] are valid in every limiter.
type Quota struct{ quota shard.Quota }

// Quota checks whether the limiter can apply the numbers of a policy, and returns these numbers as a value. It takes
// some nanoseconds. It takes no lock and allocates no memory that must be released. So a server may make a Quota for
// each request, if the limit comes from an access token, a database or an argument.
//
// If a Quota is larger than all earlier Quotas of the limiter, the call may have to wait for a SetPolicy that is under
// way. This can happen only in three cases:
//
//   - The tokens of the Quota take more than 39 hours to come back.
//   - The limiter has one rate, and the Quota is above the limiter's own limit.
//   - The limiter has windows or logs, and this is its first Quota.
//
// With [Shared], another process may have called SetPolicy. If that process is stopped, Quota returns an error after
// 5s.
//
// The policy p may be:
//
//   - In a limiter of [TokenBuckets], any [TokenBucket] that fills within the longest time. In a limiter of one
//     TokenBucket, any other TokenBucket with the same rate. If such a limiter has [MaxQuota] or [Tiers], also any
//     TokenBucket whose numbers fit the limiter's ticks. A token takes a whole number of ticks, rounded up, so a rate
//     is never faster than requested. If the rate would be slower by more than a thousandth, Quota returns an error.
//   - In any other limiter, the limiter's own policy with another limit. This limit may be up to the highest limit at
//     New, including tiers and [MaxQuota].
//   - In any limiter, [Unlimited] and [Blocked].
//
// Two quotas for one key share the record of the key: the debt belongs to the key, and each quota compares it with its
// own limit. However often the quota or tier of a key changes, the tokens that it has taken still count. So over any
// time t, the key gets at most B + R * t, where B is the highest burst and R is the highest rate of the quotas and
// tiers that its requests had. (With fixed windows, it may get the limit once more: see [Limiter.SetPolicy].) The debt
// comes back at the rate of the last admitted request, or of a later refused request if that has a faster rate. If a
// request has another quota than the last request of the key, it takes some hundred nanoseconds.
//
// If the numbers do not fit, Quota returns an error that names them and the range. In three cases, Quota takes
// microseconds and some memory: it returns an error, the rate has more than 15 digits, or the rate is so fast that a
// token takes a thousand ticks or less.
func (l *Limiter) Quota(p Policy) (Quota, error) {
	l.requireMade()
	switch p.grant {
	case grantsAll:
		return Quota{shard.Unlimited()}, nil
	case grantsNone:
		return Quota{shard.Blocked()}, nil
	}
	for {
		plan := l.table.Plan()
		base := plan.Source().(*policies).base
		quota, err := p.under(base, plan)
		if err != nil {
			return Quota{}, fmt.Errorf("engine: Quota(%v): %w", p, err)
		}
		needs := uint64(0)
		if bucket, ok := plan.Bucket(); ok {
			needs = extent(bucket, quota)
		} else if base.hasWindows() {
			needs = anyQuota
		}
		known, err := l.remembers(needs)
		if err != nil {
			return Quota{}, fmt.Errorf("engine: Quota(%v): %w", p, err)
		} else if known {
			return Quota{plan.NewQuota(quota)}, nil
		}
	}
}

// under returns the quota that policy p grants in a limiter with the policy base.
func (p Policy) under(base Policy, plan *shard.Plan) (atomicbucket.Quota, error) {
	if bucket, _ := plan.Bucket(); base.isTokenBucket() && p.algorithm == AlgorithmTokenBucket && p.grant == grantsLimit && !p.aligned {
		quota, err := bucket.Grant(p.rate.Tokens, p.rate.Period, p.limit)
		if err == nil && !bucket.HasPrices() && quota.Token != bucket.Quota().Token {
			err = fmt.Errorf("rate of %v: the limiter's records are of one rate, %v: want that, or a limiter with room for "+
				"others (engine.MaxQuota, engine.Tiers, engine.TokenBuckets)", p.rate, base.rate)
		}
		return quota, err
	}
	same := base
	same.limit = p.limit
	if p != same || base.isTokenBucket() {
		return atomicbucket.Quota{}, fmt.Errorf("the limiter's policy is %v: want that with another limit, engine.Unlimited() or engine.Blocked()", base)
	}
	most := atomicbucket.Most(plan.Algorithm())
	if p.algorithm == AlgorithmBatchRefill {
		most = atomicbucket.MaxBurst
	}
	if p.limit < 1 || p.limit > most {
		return atomicbucket.Quota{}, fmt.Errorf("limit of %d tokens: this limiter has room for 1 to %d (engine.MaxQuota)", p.limit, most)
	}
	return atomicbucket.Quota{Token: 1, Tokens: p.limit}, nil
}

// With returns the same key under a quota. Every call with that key, such as TakeKey, Charge, Hold, TakeBatch or
// [TakeAll], then applies the quota instead of the limiter's own policy. With replaces an earlier quota or tier
// ([Key.Tier]). The zero Quota restores the limiter's own policy.
func (k Key) With(q Quota) Key {
	k.quota = q.quota
	return k
}

// allowQuota does what AllowKey does, for a key whose quota has its own numbers.
func (l *Limiter) allowQuota(k Key) bool {
	if k.quota.IsUnlimited() {
		return true
	}
	place := l.table.Find(k.hash)
	place.Touch()
	var now int64
	if line := l.clock.line.Load(); line != nil { // like nanos, with one call less
		now = line.nanosAt(tsc.Read())
	} else if now = l.clock.coarse.Load(); now == 0 {
		now = l.clock.nanos()
	}
	_, _, v := l.table.HitQuota(place, now, 1, k.quota)
	runtime.KeepAlive(l)
	return v == shard.Admitted || l.mayYet(k, now, v)
}

// takeOther does what TakeKey does, for a take of 0 tokens, and for a key whose quota has its own numbers.
func (l *Limiter) takeOther(d *Decision, k Key, n uint64) {
	if n == 0 {
		*d = l.Peek(k, n)
		return
	}
	place := l.table.Find(k.hash)
	place.Touch()
	nanos := l.clock.nanos()
	s, plan, v := l.table.HitQuota(place, nanos, n, k.quota)
	runtime.KeepAlive(l)
	o := shard.Outcome{State: s, Plan: plan, At: nanos, Verdict: v}
	var status atomicbucket.Status
	switch v {
	case shard.Admitted:
		granted := plan.Granted(k.quota)
		d.Allowed, d.Limit = true, granted.Tokens
		d.Remaining, d.ResetAfter = plan.LeftUnder(s, nanos, granted)
		return
	case shard.Refused:
		status = plan.StatusOf(s, nanos, n, k.quota)
	}
	l.takeSlowly(d, k, n, place, o, status)
}

// everything is the decision of a key without a limit.
var everything = Decision{Allowed: true, Limit: math.MaxUint64, Remaining: math.MaxUint64}

// limitOf returns the limit of a key under a plan.
func limitOf(plan *shard.Plan, k Key) uint64 {
	if plan.IsUnlimited(k.quota) {
		return math.MaxUint64
	}
	return plan.Granted(k.quota).Tokens
}

// MaxQuota makes room for quotas of up to n tokens in a limiter of windows or logs. Without this option, a [Quota] may
// have as many tokens as the highest limit of the limiter's own policy and its tiers. A log stores n timestamps for
// each key. A larger n leaves fewer bits of the record's word for the time. So [New] may refuse a limit and a window
// that it would accept without this option. The parameter n is 1 to 2^32.
//
// In a limiter of one [TokenBucket], MaxQuota makes quotas of other rates possible, with any burst. Each record then
// also stores what a token cost, so a key takes 54 bytes. A limiter of [TokenBuckets] does not need this option, and
// neither does a limiter with [Tiers].
func MaxQuota(n uint64) Option {
	return func(c *config) error {
		if n < 1 || n > atomicbucket.MaxLimit {
			return fmt.Errorf("engine: MaxQuota(%d): want 1 to %d", n, uint64(atomicbucket.MaxLimit))
		}
		c.terms.maxQuota = n
		return nil
	}
}
