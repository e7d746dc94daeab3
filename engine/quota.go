package engine

import (
	"fmt"
	"math"
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/tsc"
	"github.com/weir-go/weir/shard"
)

// A Quota is a limit as a value: numbers that [Limiter.Quota] has checked against a limiter. It is small and
// comparable. A program may keep it, and any number of goroutines may use it. [Key.With] applies it. The zero Quota
// stands for the limiter's own policy.
//
// A Quota with numbers is valid in that limiter only. In another limiter every request under it is refused, and
// RetryAfter is [Never]. The same happens after a [Limiter.SetPolicy] that changes what its numbers mean: the rate of a
// [TokenBucket] or [BatchRefill], or the room for the limit of a window. Quotas of a limiter of [TokenBuckets] stay
// valid. The quotas of [Unlimited] and [Blocked] are valid in every limiter.
type Quota struct{ quota shard.Quota }

// Quota checks the numbers of a policy as [New] does, against this limiter, and returns them as a value. It takes some
// nanoseconds, no lock, and no memory that would have to be released. So a server may make a Quota for each request,
// for a limit that comes with an access token, from a database, or in an argument.
//
// A Quota that is larger than all before may have to wait for a SetPolicy that is under way. This applies to a Quota
// that takes more than 39 hours to come back, in a limiter of one rate to a Quota whose limit is above the limiter's,
// and in a limiter of windows or logs to the first Quota. With [Shared] the SetPolicy may be another process's. If that
// process is stopped, Quota returns an error after 5s.
//
// p may be:
//
//   - In a limiter of [TokenBuckets], any [TokenBucket] whose bucket fills within the longest time. In a limiter of one
//     TokenBucket, any other TokenBucket of the same rate, and with [MaxQuota] or [Tiers] any other whose numbers fit
//     the limiter's ticks. A token takes a whole number of ticks, rounded up, so a rate is never faster than asked for.
//     A rate that would be slower by more than a thousandth is an error.
//   - In any other limiter, its own policy with another limit, up to the highest limit at New, including tiers and
//     [MaxQuota].
//   - In any limiter, [Unlimited] and [Blocked].
//
// Two quotas for one key share its record: the debt belongs to the key, and each quota compares it with its own
// limit. However often the quota or tier of a key changes, the tokens that it has taken still count. So over any
// time t it gets at most the highest burst + the highest rate * t of the quotas and tiers under which it was asked
// for. (With fixed windows it may get one more limit: see [Limiter.SetPolicy].) Its debt comes back at the rate of
// the last admitted request, or of a later refused one if that has a faster rate. A request under a quota other than
// the last one takes some hundred nanoseconds.
//
// Numbers that do not fit are an error that names them and the range. Quota takes microseconds and some memory for an
// error, for a rate with more than 15 digits, and for a rate so fast that a token is a thousand ticks or less.
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

// under returns what policy p grants in a limiter whose policy is base.
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

// With returns the same key under a quota. Every method that takes a Key, such as TakeKey, Charge or Hold, as well as
// TakeBatch and [TakeAll], then decides by the quota instead of the limiter's own policy. With replaces an earlier
// quota or tier ([Key.Tier]). The zero Quota restores the limiter's own policy.
func (k Key) With(q Quota) Key {
	k.quota = q.quota
	return k
}

// allowQuota is AllowKey for a quota that has numbers of its own.
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

// takeOther is TakeKey for no tokens, and for a quota that has numbers of its own.
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

// MaxQuota makes room for quotas of up to n tokens in a limiter of windows or logs. Without it a [Quota] may have as
// many tokens as the highest limit among the limiter's own policy and its tiers. A log stores n timestamps for each
// key. A larger n leaves fewer bits of the record's word for the time. So [New] may refuse a limit and a window that
// it accepts without this option. n is 1 to 2^32.
//
// In a limiter of one [TokenBucket], MaxQuota makes room for quotas of other rates, with any burst: records then say
// what a token cost, which takes 54 bytes a key. A limiter of [TokenBuckets], or with [Tiers], does not need it.
func MaxQuota(n uint64) Option {
	return func(c *config) error {
		if n < 1 || n > atomicbucket.MaxLimit {
			return fmt.Errorf("engine: MaxQuota(%d): want 1 to %d", n, uint64(atomicbucket.MaxLimit))
		}
		c.terms.maxQuota = n
		return nil
	}
}
