package engine

import (
	"fmt"
	"math"
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/tsc"
	"github.com/weir-go/weir/shard"
)

// A Quota is a limit as a small value that can be compared with ==: numbers that [Limiter.Quota] has checked for a
// limiter. [Key.With] returns a key under a quota. The zero Quota means the limiter's own policy. A Quota is safe for
// concurrent use.
//
// A Quota with numbers is valid only in the limiter that made it. It becomes void if [Limiter.SetPolicy] changes the
// rate of a [TokenBucket] or [BatchRefill], or the room for the limit of a window. Every request under a void Quota is
// refused, and RetryAfter is [Never]. Quotas of [TokenBuckets] stay valid in their limiter. Quotas of [Unlimited] and
// [Blocked] are valid everywhere.
type Quota struct{ quota shard.Quota }

// Quota checks whether the limiter can apply a policy to single keys, and returns it as a value. It takes some
// nanoseconds and keeps no memory, so a server may make a Quota for each request. If the numbers do not fit, the error
// names them and the range. The policy may be:
//
//   - In a limiter of [TokenBuckets], any [TokenBucket] that fills within the longest time.
//   - In a limiter of one TokenBucket, another TokenBucket with the same rate. With [MaxQuota] or [Tiers], also one of
//     another rate.
//   - In any other limiter, its own policy with another limit, up to the highest limit at New, including tiers and
//     [MaxQuota].
//   - In any limiter, [Unlimited] and [Blocked].
//
// Rates are rounded down. If a rate would be slower by more than a thousandth, Quota returns an error.
//
// All quotas of a key share its record, so tokens that were taken still count under another quota or tier. Over any
// time t a key gets at most B + R * t, where B is the highest burst and R the highest rate of the quotas and tiers of
// its requests. With fixed windows, it may get the limit once more, as after a [Limiter.SetPolicy]. The debt comes back
// at the rate of the last admitted request, or of a later refused request with a faster rate. The first request under
// another quota takes some hundred nanoseconds.
//
// Some calls of Quota take microseconds and some memory: for an error, for a rate of more than 15 digits, and if a
// token takes a thousand ticks or less. A tick is the limiter's unit of time. If the new Quota is larger than all
// earlier quotas of the limiter, the call may have to wait for a SetPolicy that is under way. With [Shared], if the
// process of that SetPolicy is stopped, the call returns an error after 5s.
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
		base := plan.Source().(*policySet).base
		q, err := p.quota(base, plan)
		if err != nil {
			return Quota{}, fmt.Errorf("engine: Quota(%v): %w", p, err)
		}
		need := uint64(0)
		if bucket, ok := plan.Bucket(); ok {
			need = extent(bucket, q)
		} else if base.hasWindows() {
			need = anyQuota
		}
		remembered, err := l.remember(need)
		if err != nil {
			return Quota{}, fmt.Errorf("engine: Quota(%v): %w", p, err)
		} else if remembered {
			return Quota{plan.NewQuota(q)}, nil
		}
	}
}

// quota returns the policy as a quota in a limiter with the policy base, or an error if the limiter cannot apply it.
func (p Policy) quota(base Policy, plan *shard.Plan) (atomicbucket.Quota, error) {
	if bucket, _ := plan.Bucket(); base.isTokenBucket() && p.algorithm == AlgorithmTokenBucket && p.grant == grantsLimit && !p.aligned {
		quota, err := bucket.Grant(p.rate.Tokens, p.rate.Period, p.limit)
		if err == nil && !bucket.HasPrices() && quota.Token != bucket.Quota().Token {
			err = fmt.Errorf("rate of %v: the limiter's records are of one rate, %v: want that, or a limiter with room for "+
				"others (engine.MaxQuota, engine.Tiers, engine.TokenBuckets)", p.rate, base.rate)
		}
		return quota, err
	}
	expected := base
	expected.limit = p.limit
	if p != expected || base.isTokenBucket() {
		return atomicbucket.Quota{}, fmt.Errorf("the limiter's policy is %v: want that with another limit, engine.Unlimited() or engine.Blocked()", base)
	}
	maxLimit := atomicbucket.Most(plan.Algorithm())
	if p.algorithm == AlgorithmBatchRefill {
		maxLimit = atomicbucket.MaxBurst
	}
	if p.limit < 1 || p.limit > maxLimit {
		return atomicbucket.Quota{}, fmt.Errorf("limit of %d tokens: this limiter has room for 1 to %d (engine.MaxQuota)", p.limit, maxLimit)
	}
	return atomicbucket.Quota{Token: 1, Tokens: p.limit}, nil
}

// With returns the same key under a quota, which replaces an earlier quota or tier ([Key.Tier]). Every call with that
// key applies the quota instead of the limiter's own policy. The zero Quota restores the limiter's own policy.
func (k Key) With(q Quota) Key {
	k.quota = q.quota
	return k
}

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
	return v == shard.Admitted || l.allowMissed(k, now, v)
}

// takeQuota is TakeKey for 0 tokens, and for a key whose quota has its own numbers.
func (l *Limiter) takeQuota(d *Decision, k Key, n uint64) {
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
		quota := plan.Granted(k.quota)
		d.Allowed, d.Limit = true, quota.Tokens
		d.Remaining, d.ResetAfter = plan.LeftUnder(s, nanos, quota)
		return
	case shard.Refused:
		status = plan.StatusOf(s, nanos, n, k.quota)
	}
	l.takeSlowly(d, k, n, place, o, status)
}

var unlimitedDecision = Decision{Allowed: true, Limit: math.MaxUint64, Remaining: math.MaxUint64}

func limitOf(plan *shard.Plan, k Key) uint64 {
	if plan.IsUnlimited(k.quota) {
		return math.MaxUint64
	}
	return plan.Granted(k.quota).Tokens
}

// MaxQuota makes room for quotas of up to n tokens, 1 to 2^32, in a limiter of windows or logs. Without it, a [Quota]
// may have as many tokens as the highest limit of the limiter and its tiers. A log then stores the times of n tokens
// for each key. In a window, a larger n leaves fewer bits for the time, so [New] may refuse numbers that it would
// accept otherwise.
//
// In a limiter of one [TokenBucket], MaxQuota allows quotas of other rates, with any burst. A key then takes 54 bytes.
// A limiter of [TokenBuckets] or with [Tiers] does not need this option.
func MaxQuota(n uint64) Option {
	return func(c *config) error {
		if n < 1 || n > atomicbucket.MaxLimit {
			return fmt.Errorf("engine: MaxQuota(%d): want 1 to %d", n, uint64(atomicbucket.MaxLimit))
		}
		c.terms.maxQuota = n
		return nil
	}
}
