//go:build explore

package explore

import (
	"fmt"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// A shadow is the sequential model: for every key the tick at which its bucket is
// full, as if its record were never forgotten. Every change of a slot is entered here
// as it happens. A record must always say what the shadow says; in this one sentence
// are that a key is charged what was admitted, once (I2), that it never gets more than
// its burst and what time brings (I1), and that forgetting an idle key is
// unobservable (I7).
type shadow struct {
	algorithm *atomicbucket.TokenBucket // of the plan with the shortest ticks: it counts in these
	table     *shard.Table
	plans     [3]*shard.Plan
	round     uint64 // an idle bucket is charged from so many ticks on
	overflow  shard.Overflow
	refusals  shard.RefusalCharge
	limited   uint64  // the limit of a sliding log; 0 for token buckets
	inFlight  bool    // it is one of what is in flight
	keys      []owner // that occur
	counts
	changes
}

// An owner is a key that occurs.
type owner struct {
	key    uint64
	full   uint64 // the tick at which its bucket is full; 0: it always was
	burst  uint64 // in ticks, by the plan that its record follows; 0: it has none
	plan   *shard.Plan
	label  uint64  // the key word by the call that was charged last
	asked  uint64  // and by one that has written it, but was not charged yet
	asker  *thread // which that is, and in which of its calls
	asking int
	times  []uint64 // of a log: the tick of every token; of what is in flight, with which thread entered

	tenure uint64  // how many records it had that were forgotten by force, or whose plan was changed
	grants []grant // what was taken from its bucket, in scenarios in which something is given back by a receipt
}

// end makes what the key's record was charged with nobody's: it is forgotten, or so many tokens of another rate.
func (o *owner) end() {
	o.tenure++
	for i := range o.grants {
		o.grants[i].cost = 0
	}
}

// A grant is that a request of a cost may go at a tick: that of its take, or when its reservation's time comes. One
// that was given back costs nothing. full is the tick at which the bucket was full after it.
type grant struct{ at, cost, full uint64 }

// counts are what the table's own statistics must say.
type counts struct{ evictions, forgiven, noRoom, unrecorded, forgotten uint64 }

// changes are what replacements of a shared table's plan must keep to.
type changes struct {
	charged   int64            // the latest time of a call that was charged
	announced [maxPlans]uint64 // for which of the scenario's plans the number of each stands, and one more
	until     int64            // charged, when the latest was announced
	mark      int64            // and the watermark
	since     int64            // when the present one became so: no record is converted as of an earlier time
}

// maxPlans is how many plans a table may have, one after the other, and one more.
const maxPlans = 8

// owner returns what is known of a key, of which a key word may be given.
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

// follows returns the plan that a live record follows: the present plan or the one before.
func (s *shadow) follows(record atomicbucket.State) *shard.Plan {
	plan := s.table.Plan()
	before := s.before(plan)
	switch {
	case before == nil:
	case s.table.IsShared(): // the plans there are each process's own, with tags by their numbers
		if record.Tag() != plan.Live() {
			return before
		}
	case record.Tag() == before.Live(): // if both have that tag, the present plan must convert it first
		return before
	}
	return plan
}

// before returns the plan before one, if there was one.
func (s *shadow) before(plan *shard.Plan) *shard.Plan {
	for _, before := range s.plans {
		if before.Algorithm() == plan.From() {
			return before
		}
	}
	return nil
}

// planOf returns the plan that the record of a key follows; without one, the present plan.
func (s *shadow) planOf(key uint64) *shard.Plan {
	if plan := s.owner(key).plan; plan != nil {
		return plan
	}
	return s.table.Plan()
}

// scale returns how many of the shadow's ticks are one of a plan's.
func (s *shadow) scale(plan *shard.Plan) uint64 {
	if bucket, ok := plan.Bucket(); ok && bucket.Exact() {
		return s.algorithm.Ticks(1) / bucket.Ticks(1)
	}
	return 1
}

// cost returns the cost of so many tokens by a plan.
func (s *shadow) cost(plan *shard.Plan, n uint64) uint64 {
	if bucket, ok := plan.Bucket(); ok {
		return bucket.Cost(n) * s.scale(plan)
	}
	return s.algorithm.Cost(n)
}

// price is the cost of so many tokens of a call on its key.
func (s *shadow) price(c call, n uint64) uint64 {
	if c.limit > 0 { // a quota in ticks of the first plan
		return s.algorithm.Cost(n)
	}
	return s.cost(s.planOf(c.key), n)
}

// label returns what the key word of a record says after the call was charged to it.
func (c call) label() uint64 {
	if c.limit > 0 {
		return c.key | shard.TierMask
	}
	return c.key
}

// tokens returns a debt in whole tokens of a plan, rounded up.
func (s *shadow) tokens(plan *shard.Plan, owed uint64) uint64 {
	if bucket, ok := plan.Bucket(); ok {
		return bucket.Tokens(owed / s.scale(plan))
	}
	return s.algorithm.Tokens(owed)
}

// debt returns what a record that follows a plan owes at a time.
func (s *shadow) debt(plan *shard.Plan, record atomicbucket.State, nanos int64) uint64 {
	if bucket, ok := plan.Bucket(); ok {
		return bucket.Debt(record.Record(), bucket.Ticks(nanos)) * s.scale(plan)
	}
	return s.algorithm.Debt(record.Record(), s.algorithm.Ticks(nanos))
}

// payload returns the payload of a record that follows a plan and is full at a tick.
func (s *shadow) payload(plan *shard.Plan, full uint64) uint64 {
	return payload(full / s.scale(plan))
}

// limit returns the most that a key may owe, in ticks. Without a record it may have any
// plan.
func (s *shadow) limit(key uint64) uint64 {
	if burst := s.owner(key).burst; burst > 0 {
		return burst
	}
	return s.cost(s.table.Plan(), 1<<10)
}

// limitOr returns the limit of a call, or that of the plan if it has none of its own. A quota of another table grants
// nothing.
func (c call) limitOr(plan uint64) uint64 {
	switch {
	case c.other:
		return 0
	case c.limit > 0:
		return c.limit
	}
	return plan
}

// ticksOr is limitOr in ticks.
func (c call) ticksOr(algorithm *atomicbucket.TokenBucket, plan uint64) uint64 {
	if c.limit == 0 {
		return plan
	}
	return algorithm.Cost(c.limitOr(0))
}

// owes returns the debt of a key in ticks.
func (s *shadow) owes(key, tick uint64) uint64 {
	if full := s.owner(key).full; full > tick {
		return full - tick
	}
	return 0
}

// fits returns how many tokens of a charge, or of a refused take, a key is charged at a tick.
func (s *shadow) fits(c call, tick uint64) uint64 {
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

// pays reports whether a write of a call charges what fits instead of what it asked for: if it is a charge, or was
// refused where that costs something.
func (s *shadow) pays(c call, tick uint64) bool {
	if c.verb != take || s.refusals == shard.Nothing {
		return c.verb == charge || c.verb == upTo
	}
	if s.limited > 0 {
		return s.used(s.owner(c.key), tick)+c.n > c.limitOr(s.limited)
	}
	return s.owes(c.key, tick)+s.price(c, c.n) > c.ticksOr(s.algorithm, s.limit(c.key))
}

// short reports whether a key has less at a tick than a call must get.
func (s *shadow) short(c call, tick uint64) bool {
	return s.fits(call{verb: upTo, key: c.key, n: c.least, limit: c.limit}, tick) < c.least
}

// tick returns the time at which the thread's call is decided: its own, or the watermark if
// that is later.
func (s *shadow) tick(th *thread) uint64 {
	return s.algorithm.Ticks(max(th.now()+th.call().lead, th.watermark))
}

// follow enters which plan the record of a key follows.
func (s *shadow) follow(key *owner, record atomicbucket.State) {
	key.plan = s.follows(record)
	key.burst = s.cost(key.plan, key.plan.Quota(0).Tokens)
}

// forget enters that a call took the record of a key away.
func (s *shadow) forget(th *thread, label uint64, to atomicbucket.State) error {
	c := th.call()
	key := s.owner(label)
	plan := s.planOf(label)
	key.burst, key.plan = 0, nil
	key.end()
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
	case owed == 0 && c.verb != reset: // any other call may find that time has leapt, and sweeps then
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

// payload returns a tick as a state holds it.
func payload(tick uint64) uint64 { return tick & (1<<atomicbucket.PayloadBits - 1) }
