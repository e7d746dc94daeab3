package shard

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/atomicbucket"
)

// MaxTiers is one more than the number of tiers that a plan may have.
const MaxTiers = 16

// A Plan is an algorithm and the quotas of its tiers, by which a table decides. It is immutable once in use.
// [Table.Adopt] replaces a table's plan by another of the same algorithm.
type Plan struct {
	bucket      atomicbucket.TokenBucket // the algorithm, if it is a token bucket
	isBucket    bool
	number      uint32           // position among the table's plans, from 1 on
	planned     uint64           // the same number for all processes of a shared table; else 0
	lastQuotas  [MaxTiers]quota  // of the tiers, for conversions: the latest prices and the highest limits
	source      any              // what SetSource set
	live        atomicbucket.Tag // the tag of the records that follow this plan
	skew        uint64           // how far a call may be ahead of the watermark, in nanoseconds
	trust       uint64           // as skew, but for the clock of a call: less than skew in a shared table (R23)
	lateTicks   uint64           // how many ticks a clock may be late, 0 if clocks are never late
	lateVerdict Verdict          // the verdict on a refusal with a shortfall below lateTicks
	maxDebt     uint64           // the bound of a debt from charges, as a multiple of the limit
	capacity    uint64           // what a record has room for, in units of the algorithm
	refusals    RefusalCharge    // what a refused request costs
	unit        uint32           // equal for successive plans of a table with the same units; otherwise different
	quotas      [MaxTiers]quota
	algorithm   atomicbucket.Algorithm
	inFlight    *atomicbucket.Concurrency // the algorithm, if it is a limit in flight of one process
	entries     *atomicbucket.Entries     // the algorithm, if it is a limit in flight of several processes
	conversion
}

// A conversion has what a plan knows about the previous plan, whose records it takes over (R24).
type conversion struct {
	from       atomicbucket.Algorithm // the algorithm of the previous plan, or nil
	changes    [MaxTiers]atomicbucket.Change
	clock      func() int64   // the clock of the requests; nil: not known
	takeover   *atomic.Uint64 // a time that clock returned while this plan was current; 0: not read yet
	hasNewGrid bool           // the plan's windows of the clock are not those of the previous plan
}

// NewPlan returns the plan of an algorithm. Tier 0 has the algorithm's quota. The parameter tiers has the quotas of the
// further tiers. If [Plan.SetTier] makes a tier unlimited or blocked, the plan keeps the tier's last numbers for
// conversions. The parameter lateness is how late the clock of the calls may be: see [Doubtful].
func NewPlan(algorithm atomicbucket.Algorithm, lateness time.Duration, tiers ...atomicbucket.Quota) (*Plan, error) {
	if len(tiers) >= noTier {
		return nil, fmt.Errorf("shard: %d tiers: want at most %d", len(tiers)+1, noTier)
	}
	p := &Plan{algorithm: algorithm, live: atomicbucket.Live, skew: uint64(algorithm.MaxSkew()), trust: uint64(algorithm.MaxSkew()), unit: units.Add(1), number: 1,
		lateVerdict: Doubtful, maxDebt: 1, capacity: atomicbucket.Most(algorithm)}
	if bucket, ok := algorithm.(*atomicbucket.TokenBucket); ok {
		p.bucket, p.isBucket, p.maxDebt = *bucket, true, DefaultMaxDebt
	}
	p.inFlight, _ = algorithm.(*atomicbucket.Concurrency)
	p.entries, _ = algorithm.(*atomicbucket.Entries)
	if lateness > 0 {
		p.lateTicks = algorithm.Ticks(int64(lateness)) + 2 // at least one tick, even if a tick is longer than lateness
		if p.isBucket {
			p.lateTicks += 2 * (p.bucket.Step() - 1) // the clock may count several ticks at a time
		}
	}
	p.quotas[0] = quotaOf(algorithm.Quota())
	for i := range p.quotas[1:] {
		p.quotas[i+1] = quota{Token: p.quotas[0].Token}
		if i < len(tiers) {
			p.quotas[i+1] = quotaOf(tiers[i])
		}
	}
	p.lastQuotas = p.quotas
	p.lastQuotas[noTier] = quota{}
	if p.isBucket && !p.bucket.HasPrices() { // a token costs the same under every quota
		p.lastQuotas[noTier] = quota{Token: p.quotas[0].Token, limit: p.capacity}
	}
	return p, nil
}

// A quota is an [atomicbucket.Quota] with its limit in units of the algorithm.
type quota struct{ Token, Tokens, limit uint64 }

func quotaOf(q atomicbucket.Quota) quota { return quota{q.Token, q.Tokens, q.Token * q.Tokens} }

// Demand returns the demand for n tokens. n must not be more than the limit.
func (q *quota) Demand(n uint64) atomicbucket.Demand {
	return atomicbucket.Demand{Cost: n * q.Token, Limit: q.limit, Token: q.Token}
}

// Algorithm returns the algorithm.
func (p *Plan) Algorithm() atomicbucket.Algorithm { return p.algorithm }

// SetSource sets the value that [Plan.Source] returns: the value from which the caller made the plan. The plan must not
// be in use.
func (p *Plan) SetSource(source any) { p.source = source }

// Source returns the value that SetSource has set.
func (p *Plan) Source() any { return p.source }

// Live returns the tag of records that follow the plan.
func (p *Plan) Live() atomicbucket.Tag { return p.live }

// Quota returns the quota of a tier. For a tier that does not exist it grants nothing.
func (p *Plan) Quota(tier uint8) atomicbucket.Quota {
	q := &p.quotas[tier%MaxTiers]
	return atomicbucket.Quota{Token: q.Token, Tokens: q.Tokens}
}

// flush calls the algorithm's Flush if the record has a ring. Otherwise there is nothing to flush.
func (p *Plan) flush(r atomicbucket.Record, now int64, word *atomicbucket.Word) bool {
	return r.Ring == nil || p.algorithm.Flush(r, p.algorithm.Ticks(now), word)
}

func (p *Plan) refusalOf(v view, now int64, d atomicbucket.Demand) Verdict {
	if p.lateTicks == 0 || p.refusals != Nothing {
		return Refused
	}
	if !v.samePrice {
		return p.refusalAfter(p.shortfall(v, now, d))
	}
	return p.refusalAfter(p.algorithm.Shortfall(v.Record, p.algorithm.Ticks(now), d))
}

// refusalAfter returns the verdict on a record that admits the request only after shortfall ticks.
func (p *Plan) refusalAfter(shortfall uint64) Verdict {
	if shortfall < p.lateTicks {
		return p.lateVerdict
	}
	return Refused
}

func (p *Plan) status(r atomicbucket.Record, nanos int64, d atomicbucket.Demand) atomicbucket.Status {
	if p.isBucket {
		return p.bucket.Status(r, nanos, d) // without an indirect call
	}
	return p.algorithm.Status(r, nanos, d)
}

// setStatus sets the status that a key's first request gets. It needs no ring for this.
func (p *Plan) setStatus(s atomicbucket.State, nanos int64, r *request) {
	if r.status != nil {
		*r.status = p.status(s.Record(), nanos, r.statusDemand(p.granted(r.quota)))
	}
}

// Status returns the status of a token bucket's record, as returned by [Table.Hit], for a request for n tokens under a
// tier.
func (p *Plan) Status(s atomicbucket.State, nanos int64, n uint64, tier uint8) atomicbucket.Status {
	return p.bucket.Status(s.Record(), nanos, p.quotas[tier%MaxTiers].Demand(n))
}

// Left returns the part of Status that does not depend on a request: the limit of a tier, the tokens that are left, and
// the time until the bucket is full.
func (p *Plan) Left(s atomicbucket.State, nanos int64, tier uint8) (limit, tokens uint64, reset time.Duration) {
	q := &p.quotas[tier%MaxTiers]
	tokens, reset = p.bucket.Left(nanos, p.bucket.Debt(s.Record(), p.bucket.Ticks(nanos)), q.limit, q.Token)
	return q.Tokens, tokens, reset
}

// maxAhead returns how far a request may be ahead of the watermark. Once the watermark has followed the clock, this is
// the full skew, because only a time that the caller supplied can still be ahead.
func (p *Plan) maxAhead(r *request) uint64 {
	if r.hasFollowed {
		return p.skew
	}
	return p.trust
}

func (p *Plan) idle(s atomicbucket.State, nanos int64) bool {
	if p.isBucket {
		return p.bucket.Idle(s, p.bucket.Ticks(nanos)) // without an indirect call
	}
	return p.algorithm.Idle(s, p.algorithm.Ticks(nanos))
}

// bucketDebt returns the debt of a token bucket in ticks. It is 0 for other algorithms, and for a slot without a live
// record.
func (p *Plan) bucketDebt(s atomicbucket.State, nanos int64) uint64 {
	if !p.isBucket || !s.IsLive() {
		return 0
	}
	return p.bucket.UntilIdle(s, p.bucket.Ticks(nanos))
}

// idleFor returns for how many ticks a record that follows the plan has been idle, plus one, or 0 if it is not idle.
func (p *Plan) idleFor(s atomicbucket.State, nanos int64) rank {
	if p.isBucket {
		if now := p.bucket.Ticks(nanos); p.bucket.Idle(s, now) { // without an indirect call
			return 1 + rank(p.bucket.IdleFor(s, now))
		}
	} else if now := p.algorithm.Ticks(nanos); p.algorithm.Idle(s, now) {
		return 1 + rank(p.algorithm.IdleFor(s, now))
	}
	return 0
}

// idleSince returns when a record that is idle at the instant nanos became idle. This is known only if the record
// follows the plan, and if the plan has token buckets with a whole number of ticks per nanosecond. Otherwise idleSince
// returns nanos.
func (p *Plan) idleSince(s atomicbucket.State, nanos int64) int64 {
	if !p.bucket.Exact() || s.Tag() != p.live {
		return nanos
	}
	return nanos - int64(p.bucket.IdleFor(s, p.bucket.Ticks(nanos))/p.bucket.Ticks(1))
}

func (p *Plan) fullRecord(nanos int64) atomicbucket.Record {
	return atomicbucket.NewState(p.live, 0, p.algorithm.Full(p.algorithm.Ticks(nanos))).Record()
}
