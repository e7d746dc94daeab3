//go:build explore

package explore

import (
	"fmt"
	"slices"

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
	round     uint64 // an idle bucket is charged from so many ticks on
	overflow  shard.Overflow
	refusals  shard.RefusalCharge
	limited   uint64  // the limit of a sliding log; 0 for token buckets
	inFlight  bool    // it is one of what is in flight
	keys      []owner // that occur
	counts
}

// An owner is a key that occurs.
type owner struct {
	key   uint64
	full  uint64 // the tick at which its bucket is full; 0: it always was
	burst uint64 // in ticks, by the plan that its record follows; 0: it has none
	plan  *shard.Plan
	times []uint64 // of a log: the tick of every token; of what is in flight, with which thread entered

	tenure uint64  // how many records it had that were forgotten by force, or whose plan was changed
	grants []grant // what was taken from its bucket, in scenarios in which something is given back by a receipt
}

// end makes what the key's record was charged with nobody's: it is forgotten, or another share of another limit.
func (o *owner) end() {
	o.tenure++
	for i := range o.grants {
		o.grants[i].cost = 0
	}
}

// A grant is that a request of a cost may go at a tick: that of its take, or when its reservation's time comes. One
// that was given back costs nothing.
type grant struct{ at, cost uint64 }

// counts are what the table's own statistics must say.
type counts struct{ evictions, forgiven, noRoom, unrecorded, forgotten uint64 }

// owner returns what is known of a key.
func (s *shadow) owner(key uint64) *owner {
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
	if before := s.table.Before(); before != nil && record.Tag() == before.Live() {
		plan = before
	}
	return plan
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

// used returns how many tokens of a log are in the window.
func (s *shadow) used(key *owner, tick uint64) (used uint64) {
	for _, at := range key.times {
		if s.leaves(at) > tick {
			used++
		}
	}
	return used
}

// told returns what a look tells of that: no more than the limit.
func (s *shadow) told(key *owner, tick uint64) uint64 {
	used := s.used(key, tick)
	if s.inFlight {
		used = min(used, s.table.Plan().Quota(0).Tokens)
	}
	return used
}

// leaves returns the tick at which a token leaves the window, or is forgotten.
func (s *shadow) leaves(at uint64) uint64 {
	if s.inFlight {
		return (at/entrants/logWindow + 2) * logWindow
	}
	return at + logWindow
}

// entrants is the base in which the time of an entry has the number of its thread.
const entrants = 16

// least returns the lowest limit of the present plan and the one before: a call may be decided by either.
func (s *shadow) least() uint64 {
	if !s.inFlight {
		return s.limited
	}
	limit := s.table.Plan().Quota(0).Tokens
	if before := s.table.Before(); before != nil {
		limit = min(limit, before.Quota(0).Tokens)
	}
	return limit
}

// most returns the limit of the plan that a record follows.
func (s *shadow) most(record atomicbucket.State) uint64 {
	plan := s.table.Plan()
	if before := s.table.Before(); before != nil && record.Tag() == before.Live() {
		plan = before
	}
	return plan.Quota(0).Tokens
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
	return min(c.n, (bound-min(s.owes(c.key, tick), bound))/s.cost(s.planOf(c.key), 1))
}

// pays reports whether a write of a call charges what fits instead of what it asked for: if it is a charge, or was
// refused where that costs something.
func (s *shadow) pays(c call, tick uint64) bool {
	if c.verb != take || s.refusals == shard.Nothing {
		return c.verb == charge
	}
	if s.limited > 0 {
		return s.used(s.owner(c.key), tick)+c.n > c.limitOr(s.limited)
	}
	return s.owes(c.key, tick)+s.cost(s.planOf(c.key), c.n) > c.ticksOr(s.algorithm, s.limit(c.key))
}

// enter enters that a call wrote a log.
func (s *shadow) enter(th *thread, label uint64, to atomicbucket.State) error {
	c, tick, key := th.call(), s.tick(th), s.owner(label)
	if c.verb != take && c.verb != charge && !c.givesBack() || label != c.key {
		return fmt.Errorf("I2: %v wrote the log of key %d", c, label)
	}
	if th.charged++; th.charged > 1 {
		return fmt.Errorf("I2: %v was charged twice", c)
	}
	used := s.used(key, tick)
	if c.givesBack() {
		return s.giveBack(th, key, tick)
	}
	th.tenure = key.tenure
	n := c.n
	if s.pays(c, tick) {
		n = s.fits(c, tick)
		th.amount = n
	} else if used+c.n > c.limitOr(s.most(to)) {
		return fmt.Errorf("I1: %v was admitted to a log of %d", c, used)
	}
	if s.inFlight {
		s.drop(key, tick)
		tick = tick*entrants + uint64(th.name) + 1
		if last := len(key.times) - 1; last >= 0 { // a late call enters in the record's period
			tick = max(tick, key.times[last]/entrants*entrants+uint64(th.name)+1)
		}
		th.entered = tick
		for range n {
			key.times = append(key.times, tick)
		}
		return nil
	}
	for range n {
		if last := len(key.times) - 1; last >= 0 {
			tick = max(tick, key.times[last])
		}
		key.times = append(key.times, tick)
	}
	th.entered = tick
	return nil
}

// drop forgets what is past at a tick.
func (s *shadow) drop(key *owner, tick uint64) {
	before := len(key.times)
	key.times = slices.DeleteFunc(key.times, func(at uint64) bool { return s.leaves(at) <= tick })
	s.forgotten += uint64(before - len(key.times))
}

// leave enters that a call took what it had entered out of what is in flight, or if it does not say what, the oldest.
func (s *shadow) leave(th *thread, key *owner, tick uint64) error {
	c := th.call()
	for range c.n {
		i := slices.IndexFunc(key.times, func(at uint64) bool {
			return c.verb == cancel && at == th.entered || c.verb == refund && s.leaves(at) > tick
		})
		if i < 0 && c.verb == cancel {
			return fmt.Errorf("I2: %v gave back what is not in flight", c)
		} else if i < 0 {
			break
		}
		key.times = slices.Delete(key.times, i, i+1)
	}
	return nil
}

// giveBack enters that a call gave back what was taken: a window's newest tokens, or those of a log that its thread
// took, or the oldest in it. With these a log forgets all that have left by then.
func (s *shadow) giveBack(th *thread, key *owner, tick uint64) error {
	c := th.call()
	if s.inFlight {
		return s.leave(th, key, tick)
	}
	if c.verb == cancel && th.tenure != key.tenure {
		return fmt.Errorf("I2: %v took from a record of another tenure", c)
	}
	if s.table.Plan().Algorithm().RingSize() == 0 {
		key.times = key.times[:len(key.times)-int(min(s.used(key, tick), c.n))]
		return nil
	}
	// A late refund sees the tokens that are in the ring still: of others a later take has the places.
	key.times = slices.Delete(key.times, 0, max(len(key.times)-int(s.limited), 0))
	used := s.used(key, tick)
	key.times = slices.Delete(key.times, 0, len(key.times)-int(used))
	if used == 0 {
		return fmt.Errorf("I2: %v took a request out of a log that has none", c)
	}
	for range min(c.n, used) {
		given := 0
		if c.verb == cancel {
			if given = slices.Index(key.times, th.entered); given < 0 {
				return fmt.Errorf("I2: %v took a request out of the log in the place of one that has left", c)
			}
		}
		key.times = slices.Delete(key.times, given, given+1)
	}
	return nil
}

// tick returns the time at which the thread's call is decided: its own, or the watermark if
// that is later.
func (s *shadow) tick(th *thread) uint64 {
	return s.algorithm.Ticks(max(th.now()+th.call().lead, th.watermark))
}

// charge enters that a call wrote a bucket.
func (s *shadow) charge(th *thread, label uint64, from, to atomicbucket.State) error {
	if s.limited > 0 {
		if from.IsLive() && from.Tag() != to.Tag() {
			return nil // what was taken stays what it is
		}
		return s.enter(th, label, to)
	}
	c, tick, key := th.call(), s.tick(th), s.owner(label)
	if from.IsLive() && from.Tag() != to.Tag() {
		return s.convert(th, key, to)
	}
	if c.verb != take && c.verb != reserve && c.verb != charge && !c.givesBack() || label != c.key {
		return fmt.Errorf("I2: %v wrote the bucket of key %d", c, label)
	}
	s.follow(key, to)
	limit := c.ticksOr(s.algorithm, key.burst)
	if c.verb == reserve {
		limit += patience
	}
	pays, amount := s.pays(c, tick), uint64(0)
	cost, owed := s.cost(key.plan, c.n), s.owes(label, tick)
	if pays {
		amount = s.fits(c, tick)
		cost = s.cost(key.plan, amount)
	}
	if c.verb == refund { // no scenario has a refund of no take in particular beside reservations
		key.full = tick + owed - min(owed, cost)
	} else if c.verb == cancel {
		return s.undo(th, key, tick, to)
	} else if owed == 0 && to.Payload() == payload(tick+s.round) {
		key.full = tick + s.round // a full bucket: nothing was taken
		return nil
	} else if owed+cost > limit && !pays {
		return fmt.Errorf("I1: %v was admitted to a bucket that owed %d ticks", c, owed)
	} else {
		key.full = max(key.full, tick+s.round) + cost
	}
	if th.charged++; th.charged > 1 {
		return fmt.Errorf("I2: %v was charged twice", c)
	}
	th.amount = amount
	if c.verb != refund {
		late := s.owes(label, tick) - min(s.owes(label, tick), key.burst)
		key.grants = append(key.grants, grant{tick + late, cost})
		th.grant, th.tenure = len(key.grants), key.tenure
	}
	if want := s.payload(key.plan, key.full); to.Payload() != want {
		return fmt.Errorf("I2: %v was charged to %#x, want %#x", c, to.Payload(), want)
	}
	return nil
}

// undo enters that a call gave back what its thread took: the bucket owes less by at most the cost, and no two of those
// that keep what they took may go sooner than the limit lets them.
func (s *shadow) undo(th *thread, key *owner, tick uint64, to atomicbucket.State) error {
	c, g := th.call(), &key.grants[th.grant-1]
	owed, left := s.owes(key.key, tick), s.algorithm.Debt(to.Record(), tick)
	if left < owed && th.tenure != key.tenure {
		return fmt.Errorf("I2: %v gave back %d ticks of a record of another tenure", c, owed-left)
	}
	if left > owed || owed-left > g.cost {
		return fmt.Errorf("I2: %v gave back %d ticks of %d", c, int64(owed-left), g.cost)
	}
	if th.charged++; th.charged > 1 {
		return fmt.Errorf("I2: %v gave back twice", c)
	}
	key.full = tick + left
	g.cost -= min(g.cost, s.algorithm.Cost(c.n))
	return nil
}

// checkGrants checks what was granted and kept against the limit.
func (s *shadow) checkGrants() error {
	for _, key := range s.keys {
		for _, first := range key.grants {
			sum, last := uint64(0), uint64(0)
			for _, at := range key.grants { // all from first on, to any other
				sum = 0
				for _, g := range key.grants {
					if g.at >= first.at && g.at <= at.at {
						sum += g.cost
					}
				}
				if last = at.at; last >= first.at && sum > s.algorithm.Cost(s.table.Plan().Quota(0).Tokens)+last-first.at {
					return fmt.Errorf("I1: key %d was granted %d ticks from %d to %d", key.key, sum, first.at, last)
				}
			}
		}
	}
	return nil
}

// follow enters which plan the record of a key follows.
func (s *shadow) follow(key *owner, record atomicbucket.State) {
	key.plan = s.follows(record)
	key.burst = s.cost(key.plan, key.plan.Quota(0).Tokens)
}

// convert enters that a call made a record follow another plan: what it owes is the same
// share of the burst as before, rounded up.
func (s *shadow) convert(th *thread, key *owner, to atomicbucket.State) error {
	watermark := s.algorithm.Ticks(th.watermark)
	before := max(key.burst, 1)
	key.end()
	s.follow(key, to)
	unit := before * s.scale(key.plan)
	key.full = watermark + (s.owes(key.key, watermark)*key.burst+unit-1)/unit*s.scale(key.plan)
	if want := s.payload(key.plan, key.full); to.Payload() != want {
		return fmt.Errorf("I2: %v converted key %d to %#x, want %#x", th.call(), key.key, to.Payload(), want)
	}
	return nil
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
		if s.inFlight && (c.verb != reset || label != c.key) {
			s.forgotten += uint64(len(key.times)) - owed
		}
		key.times = key.times[:0]
	}
	switch {
	case c.verb == reset && label == c.key:
		key.full = 0
	case owed == 0 && c.verb != reset: // any other call may find that time has leapt, and sweeps then
	case (c.verb == take || c.verb == reserve || c.verb == charge) && s.overflow == shard.Evict && label != c.key &&
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
