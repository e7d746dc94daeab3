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
	algorithm *atomicbucket.TokenBucket // of any of the plans; they differ in the burst only
	table     *shard.Table
	round     uint64 // an idle bucket is charged from so many ticks on
	overflow  shard.Overflow
	limited   uint64  // the limit of a sliding log; 0 for token buckets
	keys      []owner // that occur
	counts
}

// An owner is a key that occurs.
type owner struct {
	key   uint64
	full  uint64   // the tick at which its bucket is full; 0: it always was
	burst uint64   // in ticks, by the plan that its record follows; 0: it has none
	times []uint64 // of a log: the tick of every token

	grants []grant // what was taken from its bucket, in scenarios in which something is given back by a receipt
}

// A grant is that a request of a cost may go at a tick: that of its take, or when its reservation's time comes. One
// that was given back costs nothing.
type grant struct{ at, cost uint64 }

// counts are what the table's own statistics must say.
type counts struct{ evictions, forgiven, noRoom, unrecorded uint64 }

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

// burst returns the burst of the plan that a live record follows, in ticks: the present
// plan or the one before.
func (s *shadow) burst(record atomicbucket.State) uint64 {
	plan := s.table.Plan()
	if before := s.table.Before(); before != nil && record.Tag() == before.Live() {
		plan = before
	}
	return s.algorithm.Cost(plan.Quota(0).Tokens)
}

// limit returns the most that a key may owe, in ticks. Without a record it may have any
// plan.
func (s *shadow) limit(key uint64) uint64 {
	if burst := s.owner(key).burst; burst > 0 {
		return burst
	}
	return s.algorithm.Cost(1 << 10)
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
		if at+logWindow > tick {
			used++
		}
	}
	return used
}

// enter enters that a call wrote a log.
func (s *shadow) enter(th *thread, label uint64) error {
	c, tick, key := th.call(), s.tick(th), s.owner(label)
	if c.verb != take && !c.givesBack() || label != c.key {
		return fmt.Errorf("I2: %v wrote the log of key %d", c, label)
	}
	if th.charged++; th.charged > 1 {
		return fmt.Errorf("I2: %v was charged twice", c)
	}
	used := s.used(key, tick)
	if c.givesBack() {
		if s.table.Plan().Algorithm().RingSize() == 0 { // else what it gives back it takes out of the ring: see drop
			key.times = key.times[:len(key.times)-int(min(used, c.n))]
		}
		return nil
	}
	if used+c.n > s.limited {
		return fmt.Errorf("I1: %v was admitted to a log of %d", c, used)
	}
	for range c.n {
		if last := len(key.times) - 1; last >= 0 {
			tick = max(tick, key.times[last])
		}
		key.times = append(key.times, tick)
	}
	th.entered = tick
	return nil
}

// drop enters that a refund took an entry out of the ring of a key.
func (s *shadow) drop(th *thread, label uint64) error {
	c, tick, key := th.call(), s.tick(th), s.owner(label)
	if !c.givesBack() || label != c.key {
		return fmt.Errorf("I2: %v took a request out of the log of key %d", c, label)
	}
	if th.dropped++; th.dropped > c.n {
		return fmt.Errorf("I2: %v took %d requests out of the log", c, th.dropped)
	}
	oldest := slices.IndexFunc(key.times, func(at uint64) bool { return at+logWindow > tick })
	if oldest < 0 {
		return fmt.Errorf("I2: %v took a request out of a log that has none", c)
	}
	if c.verb == cancel {
		oldest = slices.Index(key.times, th.entered)
	}
	key.times = slices.Delete(key.times, oldest, oldest+1)
	return nil
}

// tick returns the time at which the thread's call is decided: its own, or the watermark if
// that is later.
func (s *shadow) tick(th *thread) uint64 {
	return s.algorithm.Ticks(max(th.call().now(), th.watermark))
}

// charge enters that a call wrote a bucket.
func (s *shadow) charge(th *thread, label uint64, from, to atomicbucket.State) error {
	if s.limited > 0 {
		return s.enter(th, label)
	}
	c, tick, key := th.call(), s.tick(th), s.owner(label)
	if from.IsLive() && from.Tag() != to.Tag() {
		return s.convert(th, key, to)
	}
	if c.verb != take && c.verb != reserve && !c.givesBack() || label != c.key {
		return fmt.Errorf("I2: %v wrote the bucket of key %d", c, label)
	}
	key.burst = s.burst(to)
	limit := key.burst
	if c.verb == reserve {
		limit += patience
	}
	cost, owed := s.algorithm.Cost(c.n), s.owes(label, tick)
	if c.verb == refund && owed <= key.burst+s.round {
		key.full = tick + owed - min(owed, cost)
	} else if c.verb == refund {
		key.full = tick + owed
	} else if c.verb == cancel {
		return s.undo(th, key, tick, to)
	} else if owed == 0 && to.Payload() == payload(tick+s.round) {
		key.full = tick + s.round // a full bucket: nothing was taken
		return nil
	} else if owed+cost > limit {
		return fmt.Errorf("I1: %v was admitted to a bucket that owed %d ticks", c, owed)
	} else {
		key.full = max(key.full, tick+s.round) + cost
	}
	if th.charged++; th.charged > 1 {
		return fmt.Errorf("I2: %v was charged twice", c)
	}
	if c.verb != refund {
		late := s.owes(label, tick) - min(s.owes(label, tick), key.burst)
		key.grants = append(key.grants, grant{tick + late, cost})
		th.grant = len(key.grants)
	}
	if to.Payload() != payload(key.full) {
		return fmt.Errorf("I2: %v was charged to %#x, want %#x", c, to.Payload(), payload(key.full))
	}
	return nil
}

// undo enters that a call gave back what its thread took: the bucket owes less by at most the cost, and no two of those
// that keep what they took may go sooner than the limit lets them.
func (s *shadow) undo(th *thread, key *owner, tick uint64, to atomicbucket.State) error {
	c, g := th.call(), &key.grants[th.grant-1]
	owed, left := s.owes(key.key, tick), s.algorithm.Debt(to.Record(), tick)
	if left > owed || owed-left > g.cost {
		return fmt.Errorf("I2: %v gave back %d ticks of %d", c, int64(owed-left), g.cost)
	}
	if th.charged++; th.charged > 1 {
		return fmt.Errorf("I2: %v gave back twice", c)
	}
	key.full, g.cost = tick+left, 0
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

// convert enters that a call made a record follow another plan: what it owes is the same
// share of the burst as before, rounded up.
func (s *shadow) convert(th *thread, key *owner, to atomicbucket.State) error {
	watermark := s.algorithm.Ticks(th.watermark)
	before := max(key.burst, 1)
	key.burst = s.burst(to)
	key.full = watermark + (s.owes(key.key, watermark)*key.burst+before-1)/before
	if to.Payload() != payload(key.full) {
		return fmt.Errorf("I2: %v converted key %d to %#x, want %#x", th.call(), key.key, to.Payload(), payload(key.full))
	}
	return nil
}

// forget enters that a call took the record of a key away.
func (s *shadow) forget(th *thread, label uint64, to atomicbucket.State) error {
	c := th.call()
	key := s.owner(label)
	key.burst = 0
	owed := s.owes(label, s.tick(th))
	if s.limited > 0 {
		owed = s.used(key, s.tick(th))
		key.times = key.times[:0]
	}
	switch {
	case c.verb == reset && label == c.key:
		key.full = 0
	case owed == 0 && (c.verb == take || c.verb == reserve || c.verb == sweep || c.verb == sweepEpoch || c.verb == adopt):
	case (c.verb == take || c.verb == reserve) && s.overflow == shard.Evict && label != c.key && to.Tag() == atomicbucket.Claimed:
		s.evictions++
		s.forgiven += s.algorithm.Tokens(owed)
		key.full = 0
	default:
		return fmt.Errorf("I7: %v forgot key %d, which owed %d ticks", c, label, owed)
	}
	return nil
}

// payload returns a tick as a state holds it.
func payload(tick uint64) uint64 { return tick & (1<<atomicbucket.PayloadBits - 1) }
