package atomicbucket

import (
	"fmt"
	"math/bits"
	"time"
)

// A Concurrency is the algorithm of a limit in flight: it limits the tokens that were taken and not given back. The
// payload is packed {index of the period, tokens taken in the previous period, tokens taken in this period, number of
// the tenure}.
//
// A period is one tick. Tokens that are never given back are forgotten when the period after the period of their
// take is over. A refund with a receipt lowers the count of the period of its take.
//
// The widths of the fields do not depend on the limit, so a conversion changes only the version of a record. A new
// version therefore does not mean a new tenure. That is why the payload has the number of the tenure: see
// [Concurrency.Born].
type Concurrency struct {
	clock   divider
	longest time.Duration // a period
	tokens  uint64
	bits    uint   // of each count
	late    uint64 // how many periods ahead of now a record may be
	skew    time.Duration
}

// MaxInFlight is the highest limit in flight.
const MaxInFlight = 1<<16 - 1

const (
	bornBits = 16
	bornMask = 1<<bornBits - 1
)

// NewConcurrency returns the algorithm that allows limit tokens in flight. Records have room for counts up to most. The
// ranges are 1 <= limit <= most <= [MaxInFlight]. A period (longest) is a microsecond to [MaxWindow]; if it is shorter
// than 7.5 seconds, only smaller limits fit. For numbers out of range, the error names the value and the range.
func NewConcurrency(limit, most uint64, longest time.Duration) (Concurrency, error) {
	if longest < time.Microsecond || longest > MaxWindow {
		return Concurrency{}, fmt.Errorf("limit of %d tokens in flight, forgotten after %v: want 1µs to %v", limit, longest, MaxWindow)
	}
	c := Concurrency{clock: newDivider(uint64(longest)), longest: longest, tokens: limit, bits: uint(bits.Len64(MaxInFlight))}
	for ; c.skew < minSkew; c.bits-- {
		c.late = (c.circle() + 1) / circleSkews
		c.skew = skewOf(c.late, uint64(longest))
	}
	c.bits++
	if room := c.room(); limit < 1 || limit > most || most > room {
		if most >= 1 && most < room {
			room = most
		}
		return Concurrency{}, fmt.Errorf("limit of %d tokens in flight, forgotten after %v: want 1 to %d tokens", limit, longest, room)
	}
	return c, nil
}

func (c *Concurrency) room() uint64 { return 1<<c.bits - 1 }

// circle returns the highest index.
func (c *Concurrency) circle() uint64 { return payloadMask >> (2*c.bits + bornBits) }

// Ticks returns the index of the period of an instant.
func (c *Concurrency) Ticks(nanos int64) uint64 { return c.clock.quo(nanos) }

// MaxSkew implements [Algorithm].
func (c *Concurrency) MaxSkew() time.Duration { return c.skew }

// Quota implements [Algorithm].
func (c *Concurrency) Quota() Quota { return Quota{1, c.tokens} }

// RingSize returns 0: a record is one word.
func (c *Concurrency) RingSize() uint64 { return 0 }

// age compares the tick now with the record's period. passed is the number of periods that have begun since the
// record's period. If that period is up to c.late periods ahead of now, passed is 0 and ahead is the difference.
func (c *Concurrency) age(s State, now uint64) (passed, ahead uint64) {
	if passed = c.IdleFor(s, now); c.circle()-passed < c.late { // now is late
		return 0, c.circle() + 1 - passed
	}
	return passed, 0
}

// counts returns the record's two counts: tokens taken in the period before the record's period, and in that period.
func (c *Concurrency) counts(s State) (previous, current uint64) {
	return uint64(s) >> (c.bits + bornBits) & c.room(), uint64(s) >> bornBits & c.room()
}

func (c *Concurrency) born(s State) uint64 { return uint64(s) & bornMask }

// Born adds the number of a tenure, modulo 2^16, to the payload of the tenure's first take. If a tenure was ended by
// force, the key's next tenure must have another number. If a tenure ended because the record was idle, the period in
// an old receipt shows that the receipt's tokens are forgotten.
func (c *Concurrency) Born(payload, number uint64) uint64 { return payload | number&bornMask }

// inside returns how many tokens of the previous and of the current period are in flight at the tick now. ahead is by
// how many periods the record's period is ahead of now.
func (c *Concurrency) inside(s State, now uint64) (previous, current, ahead uint64) {
	passed, ahead := c.age(s, now)
	previous, current = c.counts(s)
	switch passed {
	case 0:
		return previous, current, ahead
	case 1:
		return current, 0, 0
	}
	return 0, 0, 0
}

func (c *Concurrency) pack(index, previous, current, born uint64) uint64 {
	return index<<(2*c.bits+bornBits) | previous<<(c.bits+bornBits) | current<<bornBits | born
}

// Forgotten returns how many tokens of a record are forgotten at the tick now because they were never given back. A
// take at that tick removes these tokens from the record.
func (c *Concurrency) Forgotten(s State, now uint64) uint64 {
	previous, current := c.counts(s)
	switch passed, _ := c.age(s, now); passed {
	case 0:
		return 0
	case 1:
		return previous
	}
	return previous + current
}

// Take returns the payload after a take at the tick now, and whether the limit allows that many more tokens in flight.
func (c *Concurrency) Take(r Record, now uint64, d Demand) (payload uint64, ok bool) {
	previous, current, ahead := c.inside(r.State, now)
	current += d.Cost
	return c.pack(now+ahead, previous, current, c.born(r.State)), previous+current <= d.Limit
}

// Flush has nothing to do: a record is one word.
func (c *Concurrency) Flush(Record, uint64, *Word) bool { return true }

// Full returns the payload of a key that has nothing in flight.
func (c *Concurrency) Full(now uint64) (payload uint64) { return c.pack(now, 0, 0, 0) }

// Receipt returns the receipt of a take. It has the number of the tenure, the time of the take, and by how many periods
// the record was ahead of that time. The last two determine the period of the take.
func (c *Concurrency) Receipt(after State, nanos int64, _ uint64) Receipt {
	_, ahead := c.age(after, c.Ticks(nanos))
	return Receipt{tick: ahead<<bornBits | c.born(after), nanos: nanos, seen: seen{known: true}}
}

// Refund gives a cost back to the period of the take, if that is the record's current or previous period. Without a
// receipt, it first gives back the tokens that would be forgotten first.
func (c *Concurrency) Refund(r Record, g Return, at *Word) (after State, ok bool) {
	passed, ahead := c.age(r.State, g.Now)
	previous, current := c.counts(r.State)
	index, cost := g.Now+ahead-passed, g.Demand.Cost
	switch of := g.Of; {
	case of.known && of.tick&bornMask != c.born(r.State): // the receipt is for another tenure
	case of.known:
		if period := c.Ticks(of.nanos) + of.tick>>bornBits; period == index {
			current -= min(cost, current)
		} else if period+1 == index {
			previous -= min(cost, previous)
		}
	case passed == 0:
		back := min(cost, previous)
		previous, cost = previous-back, cost-back
		fallthrough
	case passed == 1:
		current -= min(cost, current)
	}
	return at.Move(r.State, c.pack(index, previous, current, c.born(r.State)))
}

// Idle reports whether nothing is in flight.
func (c *Concurrency) Idle(s State, now uint64) bool { return c.UntilIdle(s, now) == 0 }

// IdleFor returns how many periods have begun since the period of the key's last take.
func (c *Concurrency) IdleFor(s State, now uint64) uint64 {
	return (now - s.Payload()>>(2*c.bits+bornBits)) & c.circle()
}

// UntilIdle returns how many periods must end until everything in flight is forgotten.
func (c *Concurrency) UntilIdle(s State, now uint64) uint64 {
	previous, current, ahead := c.inside(s, now)
	if previous+current == 0 {
		return 0
	}
	return ahead + periods(previous, current, 0)
}

// periods returns how many periods must end until at most the given number of tokens (most) are in flight, if none is
// given back.
func periods(previous, current, most uint64) uint64 {
	switch {
	case previous+current <= most:
		return 0
	case current <= most:
		return 1
	}
	return 2
}

// Debt returns how many tokens are in flight.
func (c *Concurrency) Debt(r Record, now uint64) uint64 {
	previous, current, _ := c.inside(r.State, now)
	return previous + current
}

// Tokens implements [Algorithm].
func (c *Concurrency) Tokens(debt uint64) uint64 { return debt }

// Wait returns the time from an instant until a number of periods have ended.
func (c *Concurrency) Wait(nanos int64, ticks uint64) time.Duration {
	if ticks == 0 {
		return 0
	}
	return c.clock.wait(nanos, ticks)
}

// Shortfall returns how many periods must end before d is admitted, if no token is taken or given back.
func (c *Concurrency) Shortfall(r Record, now uint64, d Demand) uint64 {
	previous, current, ahead := c.inside(r.State, now)
	return shortfall(previous, current, ahead, d)
}

func shortfall(previous, current, ahead uint64, d Demand) uint64 {
	if d.Cost == 0 || previous+current+d.Cost <= d.Limit {
		return 0
	}
	return ahead + periods(previous, current, d.Limit-d.Cost)
}

// Status implements [Algorithm].
func (c *Concurrency) Status(r Record, nanos int64, d Demand) Status {
	now := c.Ticks(nanos)
	previous, current, ahead := c.inside(r.State, now)
	status := Status{Remaining: d.Limit - min(previous+current, d.Limit)} // a lower tier's limit may be below the count
	if lack := shortfall(previous, current, ahead, d); lack > 0 {
		status.RetryAfter = c.clock.wait(nanos, lack)
	}
	if previous+current > 0 {
		status.ResetAfter = c.clock.wait(nanos, ahead+periods(previous, current, 0))
	}
	return status
}

// Following returns the algorithm itself. The algorithm before must be a limit in flight that forgets tokens after the
// same time.
func (c *Concurrency) Following(before Algorithm) (Algorithm, error) {
	if _, err := following(c, before); err != nil {
		return nil, err
	}
	if from := before.(*Concurrency); c.longest != from.longest {
		return nil, fmt.Errorf("what is in flight is forgotten after %v: want %v, as at New", c.longest, from.longest)
	}
	return c, nil
}

// Convert returns the payload unchanged: the tokens in flight stay.
func (c *Concurrency) Convert(_ Algorithm, s State, _ int64, _ Change) uint64 { return s.Payload() }
