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
	rule     *atomicbucket.TokenBucket
	round    uint64 // an idle bucket is charged from so many ticks on
	overflow shard.Overflow
	keys     []uint64 // that occur
	full     []uint64 // for each the tick at which it is full; 0: it always was
	counts
}

// counts are what the table's own statistics must say.
type counts struct{ evictions, forgiven, noRoom, unrecorded uint64 }

func (s *shadow) index(key uint64) int {
	for i, k := range s.keys {
		if k == key {
			return i
		}
	}
	s.keys, s.full = append(s.keys, key), append(s.full, 0)
	return len(s.keys) - 1
}

// owes returns the debt of a key in ticks.
func (s *shadow) owes(key, tick uint64) uint64 {
	if full := s.full[s.index(key)]; full > tick {
		return full - tick
	}
	return 0
}

// tick returns the time at which the thread's call is decided: its own, or the mark if
// that is later.
func (s *shadow) tick(th *thread) uint64 { return s.rule.Ticks(max(th.call().now(), th.mark)) }

// charge enters that a call wrote a bucket.
func (s *shadow) charge(th *thread, label uint64, to atomicbucket.State) error {
	c, tick := th.call(), s.tick(th)
	full := &s.full[s.index(label)]
	if c.verb != take || label != c.key {
		return fmt.Errorf("I2: %v wrote the bucket of key %d", c, label)
	}
	if s.owes(label, tick) == 0 && to.Payload() == payload(tick+s.round) {
		*full = tick + s.round // a full bucket: nothing was taken
		return nil
	}
	if th.charged++; th.charged > 1 {
		return fmt.Errorf("I2: %v was charged twice", c)
	}
	cost := s.rule.Cost(c.n)
	if owed := s.owes(label, tick); owed+cost > s.rule.Cost(s.rule.Burst()) {
		return fmt.Errorf("I1: %v was admitted to a bucket that owed %d ticks", c, owed)
	}
	*full = max(*full, tick+s.round) + cost
	if to.Payload() != payload(*full) {
		return fmt.Errorf("I2: %v was charged to %#x, want %#x", c, to.Payload(), payload(*full))
	}
	return nil
}

// forget enters that a call took the record of a key away.
func (s *shadow) forget(th *thread, label uint64, to atomicbucket.State) error {
	c := th.call()
	full := &s.full[s.index(label)]
	switch owed := s.owes(label, s.tick(th)); {
	case c.verb == reset && label == c.key:
		*full = 0
	case owed == 0 && (c.verb == take || c.verb == sweep):
	case c.verb == take && s.overflow == shard.Evict && label != c.key && to.Tag() == atomicbucket.Claimed:
		s.evictions++
		s.forgiven += s.rule.Tokens(owed)
		*full = 0
	default:
		return fmt.Errorf("I7: %v forgot key %d, which owed %d ticks", c, label, owed)
	}
	return nil
}

// payload returns a tick as a state holds it.
func payload(tick uint64) uint64 { return tick & (1<<atomicbucket.PayloadBits - 1) }
