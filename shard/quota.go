package shard

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/atomicbucket"
)

// A Quota is the limit of a call, as a value. It names a tier, whose numbers are in the plan, or has its own numbers,
// in units of one plan's algorithm. The zero Quota names tier 0. A quota's own numbers are valid for the plan for which
// they were made, and for later plans with the same unit. Under any other plan the quota grants nothing.
type Quota struct {
	token  uint64 // the cost of a token, unlimitedToken or blockedToken; 0: the quota names a tier
	packed uint64 // unit<<32 | tokens-1, or the tier
}

const (
	unlimitedToken = math.MaxUint64     // the token of a quota that admits everything
	blockedToken   = math.MaxUint64 - 1 // the token of a quota that admits nothing
	unitShift      = 32
)

var units atomic.Uint32

// TierQuota returns the quota of a tier.
func TierQuota(tier uint8) Quota { return Quota{packed: uint64(tier)} }

// Unlimited returns the quota that admits everything and touches no record.
func Unlimited() Quota { return Quota{token: unlimitedToken} }

// Blocked returns the quota that admits nothing and touches no record.
func Blocked() Quota { return Quota{token: blockedToken} }

// IsUnlimited reports whether q is Unlimited(). It returns false for a tier, even an unlimited one.
func (q Quota) IsUnlimited() bool { return q.token == unlimitedToken }

// IsTier reports whether q is the quota of a tier.
func (q Quota) IsTier() bool { return q.token == 0 }

// Tier returns the tier of q.
func (q Quota) Tier() uint8 { return uint8(q.packed) }

// NewQuota returns a quota with numbers that the plan's algorithm has checked: 1 to 2^32 tokens.
func (p *Plan) NewQuota(q atomicbucket.Quota) Quota {
	return Quota{q.Token, uint64(p.unit)<<unitShift | (q.Tokens - 1)}
}

// granted returns what a quota grants under the plan: nothing if its numbers are in another unit.
func (p *Plan) granted(q Quota) quota {
	switch {
	case q.token == 0:
		return p.quotas[q.packed%MaxTiers]
	case q.token == unlimitedToken:
		return unlimitedQuota
	case q.packed>>unitShift == uint64(p.unit): // R13
		tokens := q.packed&math.MaxUint32 + 1
		return quota{q.token, tokens, q.token * tokens}
	}
	return blockedQuota
}

// Both quotas have 0 tokens, so that Hit leaves their requests to insert. Their limits distinguish them.
var (
	blockedQuota   = quota{Token: 1}
	unlimitedQuota = quota{Token: 1, limit: math.MaxUint64}
)

func (q *quota) isUnlimited() bool { return q.limit == math.MaxUint64 }

// Granted returns what a quota grants under the plan. It has 0 tokens if the quota admits nothing, or everything.
func (p *Plan) Granted(q Quota) atomicbucket.Quota {
	g := p.granted(q)
	return atomicbucket.Quota{Token: g.Token, Tokens: g.Tokens}
}

// Span returns the time in which n tokens of a quota come back to a bucket. It may be too short by up to a tick, and is
// never too long.
func (p *Plan) Span(n uint64, q Quota) time.Duration { return p.bucket.Span(n * p.granted(q).Token) }

// SetTier gives a tier a quota without numbers. The plan must not be in use.
func (p *Plan) SetTier(tier uint8, q Quota) { p.quotas[tier] = p.granted(q) }

// SetHighest sets the highest limit, in tokens, that a tier had in this plan and all previous plans. Without it, only
// this plan's own limit counts. The plan must not be in use.
func (p *Plan) SetHighest(tier uint8, tokens uint64) {
	n := &p.lastQuotas[tier]
	n.limit = max(n.limit, p.product(tokens, n.Token))
}

// SetLongest sets the longest window of this plan and all previous plans. If it is not called, no window ends sooner
// because a new plan has shorter windows. The plan must not be in use.
func (p *Plan) SetLongest(window time.Duration) { p.changes[0].Longest = uint64(window) }

// LastToken returns what a token of a tier costs, or cost before the tier became unlimited or blocked.
func (p *Plan) LastToken(tier int) uint64 { return p.lastQuotas[tier].Token }

// Bucket returns the algorithm of a plan of token buckets. ok is false for other plans.
func (p *Plan) Bucket() (b *atomicbucket.TokenBucket, ok bool) { return &p.bucket, p.isBucket }

// HitQuota does what [Table.Hit] does, for a quota with its own numbers.
func (t *Table) HitQuota(p Place, now int64, n uint64, q Quota) (atomicbucket.State, *Plan, Verdict) {
	tokens := q.packed&math.MaxUint32 + 1
	if n > tokens || q.token >= blockedToken {
		return 0, nil, Undecided
	}
	demand := atomicbucket.Demand{Cost: n * q.token, Limit: q.token * tokens, Token: q.token}
	sl, label := p.home, p.fingerprint|tierMask
	for i := uint64(0); i < t.hitQuotaSlots; { // as in Hit
		s := sl.state.Load()
		if sl.key.Load() != label { // R1
			if s == 0 {
				break // R5
			}
			i++
			sl = p.slot(i)
			continue
		}
		plan := t.plan.Load() // R9
		if s.Tag() != plan.live {
			if s.IsLive() {
				break
			}
			i++
			sl = p.slot(i)
			continue
		}
		if q.packed>>unitShift != uint64(plan.unit) || uint64(now)-t.watermark.Load() > plan.trust || // R13, R7
			t.planned.Load() != plan.planned || // R21
			t.prices != nil && !atomicbucket.PriceIs(t.priceWord(sl, s).Load(), s, q.token) { // R27
			break
		}
		tick := plan.bucket.Ticks(now)
		payload, ok := plan.bucket.Take(s.Record(), tick, demand)
		if !ok {
			if sl.state.Load() == s { // R2
				return s, plan, plan.refusalAfter(payload - tick - demand.Limit)
			}
		} else if s, ok = sl.state.Move(s, payload); ok {
			return s, plan, Admitted
		}
	}
	return 0, nil, Undecided
}

// HitTier does what [Table.Hit] does, for a tier in a table whose records have prices. For other tables and quotas, its
// verdict is Undecided.
func (t *Table) HitTier(p Place, now int64, n uint64, q Quota) (atomicbucket.State, *Plan, Verdict) {
	if t.prices == nil || !q.IsTier() {
		return 0, nil, Undecided
	}
	tier := q.Tier() % MaxTiers
	sl, label := p.home, p.fingerprint|uint64(tier)<<tierShift
	for i := uint64(0); i < t.hitQuotaSlots; { // as in Hit
		s := sl.state.Load()
		if sl.key.Load() != label { // R1
			if s == 0 {
				break // R5
			}
			i++
			sl = p.slot(i)
			continue
		}
		plan := t.plan.Load() // R9
		if s.Tag() != plan.live {
			if s.IsLive() {
				break
			}
			i++
			sl = p.slot(i)
			continue
		}
		quota := &plan.quotas[tier]
		if n > quota.Tokens || uint64(now)-t.watermark.Load() > plan.trust || // R7
			t.planned.Load() != plan.planned || // R21
			!atomicbucket.PriceIs(t.priceWord(sl, s).Load(), s, quota.Token) { // R27
			break
		}
		tick, demand := plan.bucket.Ticks(now), quota.Demand(n)
		payload, ok := plan.bucket.Take(s.Record(), tick, demand)
		if !ok {
			if sl.state.Load() == s { // R2
				return s, plan, plan.refusalAfter(payload - tick - demand.Limit)
			}
		} else if s, ok = sl.state.Move(s, payload); ok {
			return s, plan, Admitted
		}
	}
	return 0, nil, Undecided
}

// StatusOf does what [Plan.Status] does, for any quota.
func (p *Plan) StatusOf(s atomicbucket.State, nanos int64, n uint64, q Quota) atomicbucket.Status {
	g := p.granted(q)
	return p.bucket.Status(s.Record(), nanos, g.Demand(n))
}

// LeftUnder does what [Plan.Left] does, for a client under the quota g.
func (p *Plan) LeftUnder(s atomicbucket.State, nanos int64, g atomicbucket.Quota) (tokens uint64, reset time.Duration) {
	return p.bucket.Left(nanos, p.bucket.Debt(s.Record(), p.bucket.Ticks(nanos)), g.Token*g.Tokens, g.Token)
}

// ignoresRecords reports whether a quota admits nothing or everything, so that its decisions depend on no record.
func (p *Plan) ignoresRecords(q Quota) bool { return p.granted(q).Tokens == 0 }

// IsUnlimited reports whether a quota admits everything under the plan.
func (p *Plan) IsUnlimited(q Quota) bool {
	g := p.granted(q)
	return g.isUnlimited()
}
