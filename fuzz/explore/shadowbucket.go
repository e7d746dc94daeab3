//go:build explore

package explore

import (
	"fmt"

	"github.com/weir-go/weir/atomicbucket"
)

func (s *shadow) charge(th *thread, label uint64, from, to atomicbucket.State) error {
	if s.limited > 0 {
		if from.IsLive() && from.Tag() != to.Tag() {
			return nil // the tokens that were taken do not change
		}
		return s.enter(th, label, to)
	}
	c, tick, key := th.call(), s.tick(th), s.owner(label)
	if from.IsLive() && from.Tag() != to.Tag() {
		return s.convert(th, key, to)
	}
	if c.verb != take && c.verb != reserve && c.verb != charge && c.verb != upTo && !c.givesBack() || label != c.key {
		return fmt.Errorf("I2: %v wrote the bucket of key %d", c, label)
	}
	s.charged = max(s.charged, th.now())
	s.setPlan(key, to)
	limit := c.ticksOr(s.algorithm, key.burst)
	if c.verb == reserve {
		limit += patience
	}
	if c.verb == upTo && s.isShort(c, tick) {
		return fmt.Errorf("I1: %v was admitted to a bucket that owed %d ticks", c, s.owes(label, tick))
	}
	pays, amount := s.chargesPart(c, tick), uint64(0)
	cost, owed := s.price(c, c.n), s.owes(label, tick)
	if pays {
		amount = s.fittingTokens(c, tick)
		cost = s.price(c, amount)
	}
	if c.verb == refund { // no scenario has both reservations and refunds without a receipt
		key.full = tick + owed - min(owed, cost)
	} else if c.verb == cancel {
		return s.undo(th, key, tick, to)
	} else if owed == 0 && to.Payload() == payload(tick+s.round) {
		key.full = tick + s.round // the bucket is full: nothing was taken
		return nil
	} else if owed+cost > limit && !pays {
		return fmt.Errorf("I1: %v was admitted to a bucket that owed %d ticks", c, owed)
	} else {
		key.full = max(key.full, tick+s.round) + cost
	}
	if !c.givesBack() {
		key.label = c.label()
		if other := key.pendingThread; other == nil || other == th || other.finished() || other.done != key.pendingCall {
			key.pendingLabel = key.label
		}
	}
	if th.charged++; th.charged > 1 {
		return fmt.Errorf("I2: %v was charged twice", c)
	}
	th.amount = amount
	if c.verb != refund {
		late := s.owes(label, tick) - min(s.owes(label, tick), key.burst)
		key.grants = append(key.grants, grant{tick + late, cost, key.full})
		if c.verb != charge { // a charge has no receipt
			th.grant, th.tenure = len(key.grants), key.tenure
		}
	}
	if want := s.payload(key.plan, key.full); to.Payload() != want {
		return fmt.Errorf("I2: %v was charged to %#x, want %#x", c, to.Payload(), want)
	}
	return nil
}

// The method undo records that a call gave back its thread's tokens. The debt may fall by at most the cost of these
// tokens, and the remaining takes and reservations must not be due too soon. If nothing else has changed since the
// take, the result must be as if the take had cost less.
func (s *shadow) undo(th *thread, key *owner, tick uint64, to atomicbucket.State) error {
	c, g := th.call(), &key.grants[th.grant-1]
	if th.charged++; th.charged > 1 {
		return fmt.Errorf("I2: %v gave back twice", c)
	}
	cost := min(g.cost, s.price(c, c.n))
	if cost > 0 && key.full == g.full && to.Payload() == payload(g.full-cost) { // nothing was taken after it
		key.full, g.cost = key.full-cost, g.cost-cost
		return nil
	}
	owed, left := s.owes(key.key, tick), s.algorithm.Debt(to.Record(), tick)
	if left < owed && th.tenure != key.tenure {
		return fmt.Errorf("I2: %v gave back %d ticks of a record of another tenure", c, owed-left)
	}
	if left > owed || owed-left > g.cost {
		return fmt.Errorf("I2: %v gave back %d ticks of %d", c, int64(owed-left), g.cost)
	}
	key.full, g.cost = tick+left, g.cost-cost
	if want := payload(key.full); to.Payload() != want {
		return fmt.Errorf("I2: %v left %#x, want %#x", c, to.Payload(), want)
	}
	return nil
}

// checkGrants compares the grants that were not given back with the limit.
func (s *shadow) checkGrants() error {
	for _, key := range s.keys {
		for _, first := range key.grants {
			sum, last := uint64(0), uint64(0)
			for _, at := range key.grants { // sum up all grants from first to at
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

// maxRecordDebt is the largest debt of a record, in ticks. A conversion forgives the part of a debt above it.
const maxRecordDebt = 1 << 51

// convert records that a call converted a record to another plan. The record must owe the same tokens as before. This
// is also true under a quota with its own numbers (R24), where a token costs the same.
func (s *shadow) convert(th *thread, key *owner, to atomicbucket.State) error {
	watermark := s.algorithm.Ticks(max(th.watermark, s.since))
	previousCost := s.cost(s.planOf(key.key), 1)
	key.endTenure()
	s.setPlan(key, to)
	owed, scale := s.owes(key.key, watermark), s.scale(key.plan)
	unit := previousCost * scale
	key.full = min(watermark+(owed*s.cost(key.plan, 1)+unit-1)/unit*scale, watermark+maxRecordDebt*scale)
	if want := s.payload(key.plan, key.full); to.Payload() != want {
		return fmt.Errorf("I2: %v converted key %d to %#x, want %#x", th.call(), key.key, to.Payload(), want)
	}
	return nil
}
