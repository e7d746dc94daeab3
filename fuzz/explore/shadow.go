//go:build explore

package explore

import (
	"fmt"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// A shadow is the sequential model: for every key, the tick at which its bucket is full, as if its record were never
// forgotten. Every change of a slot is also made in the shadow as it happens. A record must always agree with the
// shadow. This implies three properties:
//
//   - A key is charged the admitted tokens once (I2).
//   - A key never gets more than its burst and the tokens that come back with time (I1).
//   - No caller can notice that an idle key was forgotten (I7).
type shadow struct {
	algorithm *atomicbucket.TokenBucket // of the plan with the shortest ticks; the shadow counts in these ticks
	table     *shard.Table
	plans     [3]*shard.Plan
	round     uint64 // tokens taken from an idle bucket start to come back this many ticks later
	overflow  shard.Overflow
	refusals  shard.RefusalCharge
	limited   uint64  // the limit of a sliding log; 0 for token buckets
	inFlight  bool    // the algorithm is a limit in flight
	keys      []owner // the keys of the scenario
	counts
	changes
}

// An owner is a key of the scenario.
type owner struct {
	key           uint64
	full          uint64 // the tick at which its bucket is full; 0: it was always full
	burst         uint64 // in ticks of the plan that its record follows; 0: it has no record
	plan          *shard.Plan
	label         uint64  // the key word that was written by the call that was charged last
	pendingLabel  uint64  // the key word that was written by a call that is not charged yet
	pendingThread *thread // the thread of that call
	pendingCall   int
	times         []uint64 // in a log, the tick of every token; in flight, the tick and the thread that took the token

	tenure uint64  // how many of its records were evicted, reset or converted
	grants []grant // takes from its bucket, in scenarios with refunds by receipts
}

// endTenure forgets the calls that charged a record, when the record is forgotten or converted.
func (o *owner) endTenure() {
	o.tenure++
	for i := range o.grants {
		o.grants[i].cost = 0
	}
}

// A grant is a granted cost, which a refund lowers. The field at is the tick of the take, or the tick at which the
// reservation is due. The field full is the tick at which the bucket is full again.
type grant struct{ at, cost, full uint64 }

type counts struct{ evictions, forgiven, noRoom, unrecorded, forgotten uint64 }

// changes has the data to check replacements of a shared table's plan.
type changes struct {
	charged           int64            // the latest time of a call that was charged
	announced         [maxPlans]uint64 // for each plan number, the index of its plan in the scenario, plus one
	chargedBefore     int64            // the value of charged when the latest plan was announced
	announceWatermark int64            // the watermark at that time
	since             int64            // when the current plan became current: no record is converted earlier
}

// maxPlans is one more than the largest number of successive plans of a table.
const maxPlans = 8

// owner returns the owner for a key or a key word.
func (s *shadow) owner(key uint64) *owner {
	key &^= shard.TierMask
	for i := range s.keys {
		if s.keys[i].key == key {
			return &s.keys[i]
		}
	}
	s.keys = append(s.keys, owner{key: key})
	return &s.keys[len(s.keys)-1]
}

// recordPlan returns the plan that a live record follows: the current or the previous one.
func (s *shadow) recordPlan(record atomicbucket.State) *shard.Plan {
	plan := s.table.Plan()
	previous := s.previousPlan(plan)
	switch {
	case previous == nil:
	case s.table.IsShared(): // each process of a shared table has its own plans, and a plan's number decides its tag
		if record.Tag() != plan.Live() {
			return previous
		}
	case record.Tag() == previous.Live(): // if both plans have that tag, the current plan must convert the record first
		return previous
	}
	return plan
}

func (s *shadow) previousPlan(plan *shard.Plan) *shard.Plan {
	for _, previous := range s.plans {
		if previous.Algorithm() == plan.From() {
			return previous
		}
	}
	return nil
}

// planOf returns the plan of a key's record. If the key has no record, it returns the current plan.
func (s *shadow) planOf(key uint64) *shard.Plan {
	if plan := s.owner(key).plan; plan != nil {
		return plan
	}
	return s.table.Plan()
}

// scale returns how many of the shadow's ticks make a tick of a plan.
func (s *shadow) scale(plan *shard.Plan) uint64 {
	if bucket, ok := plan.Bucket(); ok && bucket.Exact() {
		return s.algorithm.Ticks(1) / bucket.Ticks(1)
	}
	return 1
}

func (s *shadow) cost(plan *shard.Plan, n uint64) uint64 {
	if bucket, ok := plan.Bucket(); ok {
		return bucket.Cost(n) * s.scale(plan)
	}
	return s.algorithm.Cost(n)
}

func (s *shadow) price(c call, n uint64) uint64 {
	if c.limit > 0 { // a quota in ticks of the first plan
		return s.algorithm.Cost(n)
	}
	return s.cost(s.planOf(c.key), n)
}

// label returns the key word of a record after the call was charged to it.
func (c call) label() uint64 {
	if c.limit > 0 {
		return c.key | shard.TierMask
	}
	return c.key
}

func (s *shadow) tokens(plan *shard.Plan, owed uint64) uint64 {
	if bucket, ok := plan.Bucket(); ok {
		return bucket.Tokens(owed / s.scale(plan))
	}
	return s.algorithm.Tokens(owed)
}

// debt returns the debt, at nanos, of a record under a plan.
func (s *shadow) debt(plan *shard.Plan, record atomicbucket.State, nanos int64) uint64 {
	if bucket, ok := plan.Bucket(); ok {
		return bucket.Debt(record.Record(), bucket.Ticks(nanos)) * s.scale(plan)
	}
	return s.algorithm.Debt(record.Record(), s.algorithm.Ticks(nanos))
}

// payload returns the payload of a record under a plan, if the bucket is full at the tick full.
func (s *shadow) payload(plan *shard.Plan, full uint64) uint64 {
	return payload(full / s.scale(plan))
}

// limit returns the most that a key may owe, in ticks. If the key has no record, its plan may be any plan. The result
// is then above the limit of each plan.
func (s *shadow) limit(key uint64) uint64 {
	if burst := s.owner(key).burst; burst > 0 {
		return burst
	}
	return s.cost(s.table.Plan(), 1<<10)
}

// limitOr returns the limit of the call's quota, or the plan's limit without a quota. For a quota of another table,
// which grants nothing, it returns 0.
func (c call) limitOr(plan uint64) uint64 {
	switch {
	case c.otherTable:
		return 0
	case c.limit > 0:
		return c.limit
	}
	return plan
}

// ticksOr returns the result of limitOr in ticks.
func (c call) ticksOr(algorithm *atomicbucket.TokenBucket, plan uint64) uint64 {
	if c.limit == 0 {
		return plan
	}
	return algorithm.Cost(c.limitOr(0))
}

func (s *shadow) owes(key, tick uint64) uint64 {
	if full := s.owner(key).full; full > tick {
		return full - tick
	}
	return 0
}

func (s *shadow) fittingTokens(c call, tick uint64) uint64 {
	if s.limited > 0 {
		bound := c.limitOr(s.limited)
		if c.verb == charge || s.refusals == shard.Penalty {
			bound = min(bound*maxDebt, atomicbucket.Most(s.table.Plan().Algorithm()))
		}
		used := s.used(s.owner(c.key), tick)
		return min(c.n, bound-min(used, bound))
	}
	bound := c.ticksOr(s.algorithm, s.limit(c.key))
	if c.verb == charge || s.refusals == shard.Penalty {
		bound *= maxDebt
	}
	return min(c.n, (bound-min(s.owes(c.key, tick), bound))/s.price(c, 1))
}

// chargesPart reports whether a write of a call charges only the tokens that fit, instead of all tokens of the call.
// This is true for a charge, for an upTo and, if refusals are charged, for a refused take.
func (s *shadow) chargesPart(c call, tick uint64) bool {
	if c.verb != take || s.refusals == shard.Nothing {
		return c.verb == charge || c.verb == upTo
	}
	if s.limited > 0 {
		return s.used(s.owner(c.key), tick)+c.n > c.limitOr(s.limited)
	}
	return s.owes(c.key, tick)+s.price(c, c.n) > c.ticksOr(s.algorithm, s.limit(c.key))
}

func (s *shadow) isShort(c call, tick uint64) bool {
	return s.fittingTokens(call{verb: upTo, key: c.key, n: c.minimum, limit: c.limit}, tick) < c.minimum
}

// tick returns the time at which the thread's call is decided: the call's time, or the watermark if it is later.
func (s *shadow) tick(th *thread) uint64 {
	return s.algorithm.Ticks(max(th.now()+th.call().lead, th.watermark))
}

// setPlan records which plan the record of a key follows.
func (s *shadow) setPlan(key *owner, record atomicbucket.State) {
	key.plan = s.recordPlan(record)
	key.burst = s.cost(key.plan, key.plan.Quota(0).Tokens)
}

func (s *shadow) forget(th *thread, label uint64, to atomicbucket.State) error {
	c := th.call()
	key := s.owner(label)
	plan := s.planOf(label)
	key.burst, key.plan = 0, nil
	key.endTenure()
	owed := s.owes(label, s.tick(th))
	if s.limited > 0 {
		owed = s.used(key, s.tick(th))
		if s.inFlight && (c.verb != reset || label&^shard.TierMask != c.key) {
			s.forgotten += uint64(len(key.times)) - owed
		}
		key.times = key.times[:0]
	}
	switch {
	case c.verb == reset && label&^shard.TierMask == c.key:
		key.full = 0
	case owed == 0 && c.verb != reset: // any other call may find that time has leapt, and may then sweep
	case (c.verb == take || c.verb == reserve || c.verb == charge || c.verb == upTo) && s.overflow == shard.Evict && label&^shard.TierMask != c.key &&
		to.Tag() == atomicbucket.Claimed:
		s.evictions++
		s.forgiven += s.tokens(plan, owed)
		key.full = 0
	default:
		return fmt.Errorf("I7: %v forgot key %d, which owed %d ticks", c, label, owed)
	}
	return nil
}

// payload returns a tick in the form in which a state holds it.
func payload(tick uint64) uint64 { return tick & (1<<atomicbucket.PayloadBits - 1) }
