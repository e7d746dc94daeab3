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
	clock    divider
	period   time.Duration
	tokens   uint64
	bits     uint   // of each count
	maxAhead uint64 // how many periods ahead of now a record may be
	skew     time.Duration
}

// MaxInFlight is the highest limit in flight.
const MaxInFlight = 1<<16 - 1

const (
	tenureBits = 16
	tenureMask = 1<<tenureBits - 1
)

// NewConcurrency returns the algorithm that allows limit tokens in flight. Records have room for counts up to maxLimit.
// The ranges are 1 <= limit <= maxLimit <= [MaxInFlight]. A period is a microsecond to [MaxWindow]; if it is shorter
// than 7.5 seconds, only smaller limits fit. For numbers out of range, the error names the value and the range.
func NewConcurrency(limit, maxLimit uint64, period time.Duration) (Concurrency, error) {
	if period < time.Microsecond || period > MaxWindow {
		return Concurrency{}, fmt.Errorf("limit of %d tokens in flight, forgotten after %v: want 1µs to %v", limit, period, MaxWindow)
	}
	c := Concurrency{clock: newDivider(uint64(period)), period: period, tokens: limit, bits: uint(bits.Len64(MaxInFlight))}
	for ; c.skew < minSkew; c.bits-- {
		c.maxAhead = (c.maxIndex() + 1) / circleSkews
		c.skew = skewOf(c.maxAhead, uint64(period))
	}
	c.bits++
	if maxCount := c.maxCount(); limit < 1 || limit > maxLimit || maxLimit > maxCount {
		if maxLimit >= 1 && maxLimit < maxCount {
			maxCount = maxLimit
		}
		return Concurrency{}, fmt.Errorf("limit of %d tokens in flight, forgotten after %v: want 1 to %d tokens", limit, period, maxCount)
	}
	return c, nil
}

func (c *Concurrency) maxCount() uint64 { return 1<<c.bits - 1 }

// maxIndex returns the highest index of a period. Indexes wrap around after it.
func (c *Concurrency) maxIndex() uint64 { return payloadMask >> (2*c.bits + tenureBits) }

// Ticks returns the index of the period of an instant.
func (c *Concurrency) Ticks(nanos int64) uint64 { return c.clock.quo(nanos) }

// MaxSkew implements [Algorithm].
func (c *Concurrency) MaxSkew() time.Duration { return c.skew }

// Quota implements [Algorithm].
func (c *Concurrency) Quota() Quota { return Quota{1, c.tokens} }

// RingSize returns 0: a record is one word.
func (c *Concurrency) RingSize() uint64 { return 0 }

// age compares the tick now with the record's period. elapsed is the number of periods that have begun since the
// record's period. If that period is up to c.maxAhead periods ahead of now, elapsed is 0 and ahead is the difference.
func (c *Concurrency) age(s State, now uint64) (elapsed, ahead uint64) {
	if elapsed = c.IdleFor(s, now); c.maxIndex()-elapsed < c.maxAhead { // now is before the record's period
		return 0, c.maxIndex() + 1 - elapsed
	}
	return elapsed, 0
}

// counts returns the record's two counts: tokens taken in the period before the record's period, and in that period.
func (c *Concurrency) counts(s State) (previous, current uint64) {
	return uint64(s) >> (c.bits + tenureBits) & c.maxCount(), uint64(s) >> tenureBits & c.maxCount()
}

func (c *Concurrency) tenure(s State) uint64 { return uint64(s) & tenureMask }

// Born adds the number of a tenure, modulo 2^16, to the payload of the tenure's first take. If a tenure was ended by
// force, the key's next tenure must have another number. If a tenure ended because the record was idle, the period in
// an old receipt shows that the receipt's tokens are forgotten.
func (c *Concurrency) Born(payload, number uint64) uint64 { return payload | number&tenureMask }

// inFlight returns how many tokens of the previous and of the current period are in flight at the tick now. ahead is
// the number of periods by which the record's period is ahead of now.
func (c *Concurrency) inFlight(s State, now uint64) (previous, current, ahead uint64) {
	elapsed, ahead := c.age(s, now)
	previous, current = c.counts(s)
	switch elapsed {
	case 0:
		return previous, current, ahead
	case 1:
		return current, 0, 0
	}
	return 0, 0, 0
}

func (c *Concurrency) pack(index, previous, current, tenure uint64) uint64 {
	return index<<(2*c.bits+tenureBits) | previous<<(c.bits+tenureBits) | current<<tenureBits | tenure
}

// Forgotten returns how many tokens of a record are forgotten at the tick now because they were never given back. A
// take at that tick removes these tokens from the record.
func (c *Concurrency) Forgotten(s State, now uint64) uint64 {
	previous, current := c.counts(s)
	switch elapsed, _ := c.age(s, now); elapsed {
	case 0:
		return 0
	case 1:
		return previous
	}
	return previous + current
}

// Take returns the payload after a take at the tick now, and whether the limit allows that many more tokens in flight.
func (c *Concurrency) Take(r Record, now uint64, d Demand) (payload uint64, ok bool) {
	previous, current, ahead := c.inFlight(r.State, now)
	current += d.Cost
	return c.pack(now+ahead, previous, current, c.tenure(r.State)), previous+current <= d.Limit
}

// Flush has nothing to do: a record is one word.
func (c *Concurrency) Flush(Record, uint64, *Word) bool { return true }

// Full returns the payload of a key that has nothing in flight.
func (c *Concurrency) Full(now uint64) (payload uint64) { return c.pack(now, 0, 0, 0) }

// Receipt returns the receipt of a take. It has the number of the tenure, the time of the take, and by how many periods
// the record was ahead of that time. The last two determine the period of the take.
func (c *Concurrency) Receipt(after State, nanos int64, _ uint64) Receipt {
	_, ahead := c.age(after, c.Ticks(nanos))
	return Receipt{tick: ahead<<tenureBits | c.tenure(after), nanos: nanos, recordInfo: recordInfo{known: true}}
}

// Refund gives a cost back to the period of the take, if that is the record's current or previous period. Without a
// receipt, it first gives back the tokens that would be forgotten first.
func (c *Concurrency) Refund(r Record, ret Return, word *Word) (after State, ok bool) {
	elapsed, ahead := c.age(r.State, ret.Now)
	previous, current := c.counts(r.State)
	index, cost := ret.Now+ahead-elapsed, ret.Demand.Cost
	switch receipt := ret.Of; {
	case receipt.known && receipt.tick&tenureMask != c.tenure(r.State): // the receipt is for another tenure
	case receipt.known:
		if period := c.Ticks(receipt.nanos) + receipt.tick>>tenureBits; period == index {
			current -= min(cost, current)
		} else if period+1 == index {
			previous -= min(cost, previous)
		}
	case elapsed == 0:
		amount := min(cost, previous)
		previous, cost = previous-amount, cost-amount
		fallthrough
	case elapsed == 1:
		current -= min(cost, current)
	}
	return word.Move(r.State, c.pack(index, previous, current, c.tenure(r.State)))
}

// Idle reports whether nothing is in flight.
func (c *Concurrency) Idle(s State, now uint64) bool { return c.UntilIdle(s, now) == 0 }

// IdleFor returns how many periods have begun since the period of the key's last take.
func (c *Concurrency) IdleFor(s State, now uint64) uint64 {
	return (now - s.Payload()>>(2*c.bits+tenureBits)) & c.maxIndex()
}

// UntilIdle returns how many periods must end until everything in flight is forgotten.
func (c *Concurrency) UntilIdle(s State, now uint64) uint64 {
	previous, current, ahead := c.inFlight(s, now)
	if previous+current == 0 {
		return 0
	}
	return ahead + periodsUntil(previous, current, 0)
}

// periodsUntil returns how many periods must end until at most target tokens are in flight, if no token is given back.
func periodsUntil(previous, current, target uint64) uint64 {
	switch {
	case previous+current <= target:
		return 0
	case current <= target:
		return 1
	}
	return 2
}

// Debt returns how many tokens are in flight.
func (c *Concurrency) Debt(r Record, now uint64) uint64 {
	previous, current, _ := c.inFlight(r.State, now)
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
	previous, current, ahead := c.inFlight(r.State, now)
	return shortfall(previous, current, ahead, d)
}

func shortfall(previous, current, ahead uint64, d Demand) uint64 {
	if d.Cost == 0 || previous+current+d.Cost <= d.Limit {
		return 0
	}
	return ahead + periodsUntil(previous, current, d.Limit-d.Cost)
}

// Status implements [Algorithm].
func (c *Concurrency) Status(r Record, nanos int64, d Demand) Status {
	now := c.Ticks(nanos)
	previous, current, ahead := c.inFlight(r.State, now)
	status := Status{Remaining: d.Limit - min(previous+current, d.Limit)} // a lower tier's limit may be below the count
	if lack := shortfall(previous, current, ahead, d); lack > 0 {
		status.RetryAfter = c.clock.wait(nanos, lack)
	}
	if previous+current > 0 {
		status.ResetAfter = c.clock.wait(nanos, ahead+periodsUntil(previous, current, 0))
	}
	return status
}

// Following returns the algorithm itself. The previous algorithm (before) must be a limit in flight with periods of the
// same length.
func (c *Concurrency) Following(before Algorithm) (Algorithm, error) {
	if _, err := following(c, before); err != nil {
		return nil, err
	}
	if previous := before.(*Concurrency); c.period != previous.period {
		return nil, fmt.Errorf("what is in flight is forgotten after %v: want %v, as at New", c.period, previous.period)
	}
	return c, nil
}

// Convert returns the payload unchanged: the tokens in flight stay.
func (c *Concurrency) Convert(_ Algorithm, s State, _ int64, _ Change) uint64 { return s.Payload() }
