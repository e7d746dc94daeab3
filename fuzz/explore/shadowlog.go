//go:build explore

package explore

import (
	"fmt"
	"slices"

	"github.com/weir-go/weir/atomicbucket"
)

func (s *shadow) used(key *owner, tick uint64) (used uint64) {
	for _, at := range key.times {
		if s.leaveTime(at) > tick {
			used++
		}
	}
	return used
}

// reportedUse returns the used tokens that a peek of a log reports, at most the limit.
func (s *shadow) reportedUse(key *owner, tick uint64) uint64 {
	used := s.used(key, tick)
	if s.inFlight {
		used = min(used, s.table.Plan().Quota(0).Tokens)
	}
	return used
}

// leaveTime returns the tick at which a token leaves the window or, if it is in flight, is forgotten. The
// argument at is an element of the field times.
func (s *shadow) leaveTime(at uint64) uint64 {
	if s.inFlight {
		return (at/entrants/logWindow + 2) * logWindow
	}
	return at + logWindow
}

// entrants is greater than any thread's number plus one. For tokens in flight, an element of the field times is tick *
// entrants + thread + 1.
const entrants = 16

// minLimit returns the lower limit of the current and the previous plan, because either plan may decide a call.
func (s *shadow) minLimit() uint64 {
	if !s.inFlight {
		return s.limited
	}
	plan := s.table.Plan()
	limit := plan.Quota(0).Tokens
	if before := s.previousPlan(plan); before != nil {
		limit = min(limit, before.Quota(0).Tokens)
	}
	return limit
}

func (s *shadow) maxLimit(record atomicbucket.State) uint64 {
	return s.recordPlan(record).Quota(0).Tokens
}

// The method enter records that a call wrote the record of a log.
func (s *shadow) enter(th *thread, label uint64, to atomicbucket.State) error {
	c, tick, key := th.call(), s.tick(th), s.owner(label)
	if c.verb != take && c.verb != charge && c.verb != upTo && !c.givesBack() || label != c.key {
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
	if c.verb == upTo && s.isShort(c, tick) {
		return fmt.Errorf("I1: %v was admitted to a log of %d", c, used)
	} else if s.chargesPart(c, tick) {
		n = s.fittingTokens(c, tick)
		th.amount = n
	} else if used+c.n > c.limitOr(s.maxLimit(to)) {
		return fmt.Errorf("I1: %v was admitted to a log of %d", c, used)
	}
	if s.inFlight {
		s.drop(key, tick)
		tick = tick*entrants + uint64(th.name) + 1
		if last := len(key.times) - 1; last >= 0 { // a late call counts in the period of the record
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

// The method drop removes the tokens that have left the window at a tick.
func (s *shadow) drop(key *owner, tick uint64) {
	before := len(key.times)
	key.times = slices.DeleteFunc(key.times, func(at uint64) bool { return s.leaveTime(at) <= tick })
	s.forgotten += uint64(before - len(key.times))
}

// The method leave records that a call gave back tokens in flight. These are the tokens of its thread or, without a
// receipt, the oldest tokens.
func (s *shadow) leave(th *thread, key *owner, tick uint64) error {
	c := th.call()
	for range c.n {
		i := slices.IndexFunc(key.times, func(at uint64) bool {
			return c.verb == cancel && at == th.entered || c.verb == refund && s.leaveTime(at) > tick
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

// giveBack records that a call gave back tokens. In a window, these are the newest tokens. In a log, they are the
// tokens of its thread or, without a receipt, the oldest tokens. A log also forgets tokens that have left the window.
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
	// A late refund sees only tokens that later takes have not overwritten in the ring.
	key.times = slices.Delete(key.times, 0, max(len(key.times)-int(s.limited), 0))
	used := s.used(key, tick)
	key.times = slices.Delete(key.times, 0, len(key.times)-int(used))
	if used == 0 {
		return fmt.Errorf("I2: %v took a request out of a log that has none", c)
	}
	for range min(c.n, used) {
		index := 0
		if c.verb == cancel {
			if index = slices.Index(key.times, th.entered); index < 0 {
				return fmt.Errorf("I2: %v took a request out of the log in the place of one that has left", c)
			}
		}
		key.times = slices.Delete(key.times, index, index+1)
	}
	return nil
}
