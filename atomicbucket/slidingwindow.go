package atomicbucket

import (
	"math/bits"
	"time"
)

// A SlidingWindow is the algorithm of a sliding window counter. It estimates how many tokens were taken in the window
// that ends now, from the counts of the clock's current and previous windows. It assumes that the tokens of the
// previous window were spread evenly:
//
//	estimate = floor(previous * share of the previous window that is still inside) + current
//
// The payload is packed {index of the window, previous, current}. A tick is a nanosecond.
type SlidingWindow struct {
	clock    divider
	window   uint64 // in nanoseconds
	tokens   uint64
	bits     uint   // of each count
	maxAhead uint64 // how many windows ahead of now a record may be
	skew     time.Duration
}

// MaxCount is the highest limit of a sliding window counter.
const MaxCount = 1<<24 - 1

// NewSlidingWindow returns the algorithm that allows limit tokens in any window. Records have room for counts up to
// maxLimit. The ranges are 1 <= limit <= maxLimit <= [MaxCount], and a microsecond to [MaxWindow] for the window. Both
// counts and the index of the window must fit into 54 bits together, and the index must not wrap around in less than
// eight minutes. For other numbers, the error names the value and the range.
func NewSlidingWindow(limit, maxLimit uint64, window time.Duration) (SlidingWindow, error) {
	return NewRoomySliding(limit, maxLimit, window, window)
}

// NewRoomySliding does what [NewSlidingWindow] does, but its records also have room for the counts of earlier limits.
// After a conversion, such counts may last longer than two windows, up to the duration room, which is at least a
// window.
func NewRoomySliding(limit, maxLimit uint64, window, room time.Duration) (SlidingWindow, error) {
	if err := checkWindow(limit, maxLimit, window, MaxCount); err != nil {
		return SlidingWindow{}, err
	}
	fits := func(limit uint64) (maxAhead uint64, ok bool) {
		maxAhead = 1 << (PayloadBits - 2*bits.Len64(limit)) / circleSkews
		return maxAhead, skewOf(maxAhead, uint64(window)) >= minSkew && maxAhead >= ceilDiv(uint64(room), uint64(window))
	}
	maxAhead, ok := fits(maxLimit)
	if !ok {
		return SlidingWindow{}, tooLarge(maxLimit, window, fits)
	}
	return SlidingWindow{
		clock: newDivider(uint64(window)), window: uint64(window), tokens: limit, bits: uint(bits.Len64(maxLimit)),
		maxAhead: maxAhead, skew: skewOf(maxAhead, uint64(window)),
	}, nil
}

// Ticks returns the tick of an instant: a nanosecond.
func (w *SlidingWindow) Ticks(nanos int64) uint64 { return uint64(nanos) }

// MaxSkew implements [Algorithm].
func (w *SlidingWindow) MaxSkew() time.Duration { return w.skew }

// Quota implements [Algorithm].
func (w *SlidingWindow) Quota() Quota { return Quota{1, w.tokens} }

// RingSize returns 0: a record is one word.
func (w *SlidingWindow) RingSize() uint64 { return 0 }

type counts struct {
	index             uint64 // of the window
	left              uint64 // nanoseconds until the window ends: from 1 to its length
	ahead             uint64 // nanoseconds until the window begins, if now is before the window
	previous, current uint64
}

// read returns the record at the tick now. If now is before the record's window, the record is read as at the beginning
// of that window, when the whole previous window still counts.
func (w *SlidingWindow) read(s State, now uint64) counts {
	c := counts{index: w.clock.quo(int64(now))}
	c.left = (c.index+1)*w.window - now
	recordIndex := uint64(s) & payloadMask >> (2 * w.bits)
	maxIndex := uint64(payloadMask) >> (2 * w.bits)
	switch elapsed := (c.index - recordIndex) & maxIndex; {
	case elapsed == 0:
		c.previous, c.current = w.unpack(s)
	case elapsed == 1:
		c.previous = uint64(s) & (1<<w.bits - 1)
	case maxIndex-elapsed < w.maxAhead: // now is before the record's window
		c.index += maxIndex + 1 - elapsed
		c.left, c.ahead = w.window, c.index*w.window-now
		c.previous, c.current = w.unpack(s)
	}
	return c
}

func (w *SlidingWindow) unpack(s State) (previous, current uint64) {
	return uint64(s) >> w.bits & (1<<w.bits - 1), uint64(s) & (1<<w.bits - 1)
}

func (w *SlidingWindow) pack(c counts) uint64 {
	return c.index<<(2*w.bits) | c.previous<<w.bits | c.current
}

// isAtMost reports whether the estimate is at most tokens. That is the case if the share of the previous window,
// floor(previous * left / window), is at most tokens - current.
func (w *SlidingWindow) isAtMost(c counts, tokens uint64) bool {
	if c.current > tokens {
		return false
	}
	hi, lo := bits.Mul64(c.previous, c.left)
	overHi, overLo := bits.Mul64(tokens-c.current+1, w.window)
	return hi < overHi || hi == overHi && lo < overLo
}

// estimate returns how many tokens were taken in the window that ends now, as the algorithm estimates them.
func (w *SlidingWindow) estimate(c counts) uint64 {
	hi, lo := bits.Mul64(c.previous, c.left)
	share, _ := bits.Div64(hi, lo, w.window) // left <= window and previous < 2^24, so hi < window
	return share + c.current
}

func (w *SlidingWindow) estimateUp(c counts) uint64 {
	used := w.estimate(c)
	if hi, lo := bits.Mul64(c.previous, c.left); hi > 0 || lo > 0 {
		if _, rem := bits.Div64(hi, lo, w.window); rem > 0 {
			used++
		}
	}
	return used
}

// Take returns the payload after a take at the tick now, and whether the estimate leaves enough room for the take.
func (w *SlidingWindow) Take(r Record, now uint64, d Demand) (payload uint64, ok bool) {
	c := w.read(r.State, now)
	ok = w.isAtMost(c, d.Limit-d.Cost)
	c.current += d.Cost
	return w.pack(c), ok
}

// Flush has nothing to do: a record is one word.
func (w *SlidingWindow) Flush(Record, uint64, *Word) bool { return true }

// Full returns the payload of a key that has taken nothing.
func (w *SlidingWindow) Full(now uint64) (payload uint64) {
	return w.pack(counts{index: w.clock.quo(int64(now))})
}

// Receipt returns the receipt of a take, which identifies the index of its window.
func (w *SlidingWindow) Receipt(after State, nanos int64, _ uint64) Receipt {
	return Receipt{w.read(after, uint64(nanos)).index, 0, nanos, recordInfo{uint8(after.Version()), true}}
}

// Refund gives a cost back to the window of the take, if that is the current or the previous window. If the take is not
// known, Refund gives the cost back to the current window first, and the rest to the previous window. (After a take
// ahead of the clock, the current window may be the record's previous one.)
func (w *SlidingWindow) Refund(r Record, ret Return, word *Word) (after State, ok bool) {
	c, receipt, cost := w.read(r.State, ret.Now), ret.Of, ret.Demand.Cost
	if c.current == 0 && c.previous == 0 {
		return word.Move(r.State, r.State.Payload()) // the record stays unchanged for late calls
	}
	if !receipt.known && (c.ahead == 0 || ret.Latest == ret.Now) || receipt.known && receipt.tick == c.index {
		amount := min(cost, c.current)
		c.current, cost = c.current-amount, cost-amount
	}
	if !receipt.known || receipt.tick+1 == c.index {
		c.previous -= min(cost, c.previous)
	}
	return word.Move(r.State, w.pack(c))
}

// Idle reports whether the estimate is 0 and stays 0.
func (w *SlidingWindow) Idle(s State, now uint64) bool { return w.isAtMost(w.read(s, now), 0) }

// IdleFor returns how many windows have begun since the window of the key's last take.
func (w *SlidingWindow) IdleFor(s State, now uint64) uint64 {
	maxIndex := uint64(payloadMask) >> (2 * w.bits)
	return (w.clock.quo(int64(now)) - uint64(s)&payloadMask>>(2*w.bits)) & maxIndex
}

// UntilIdle returns how many nanoseconds remain until the estimate is 0.
func (w *SlidingWindow) UntilIdle(s State, now uint64) uint64 {
	return w.nanosUntil(w.read(s, now), 0)
}

// nanosUntil returns exactly how many nanoseconds remain until the estimate is at most tokens.
func (w *SlidingWindow) nanosUntil(c counts, tokens uint64) uint64 {
	if w.isAtMost(c, tokens) {
		return 0
	}
	// If the current count is at most tokens, the estimate falls to tokens in this window. Otherwise it does so in the
	// next window, where the current count has become the previous count.
	if c.current <= tokens {
		return c.ahead + c.left - w.maxLeft(c.previous, tokens-c.current)
	}
	return c.ahead + c.left + w.window - w.maxLeft(c.current, tokens)
}

// maxLeft returns how many nanoseconds of the current window may be left if the weighted previous count is at most
// tokens: the largest n with previous * n < (tokens+1) * window. tokens must be less than previous. (The quotient fits
// into 64 bits, since the window is less than 2^64 and previous is at least tokens+1.)
func (w *SlidingWindow) maxLeft(previous, tokens uint64) uint64 {
	hi, lo := bits.Mul64(tokens+1, w.window)
	if lo == 0 {
		hi--
	}
	lo--
	left, _ := bits.Div64(hi, lo, previous)
	return left
}

// Debt returns the estimate.
func (w *SlidingWindow) Debt(r Record, now uint64) uint64 { return w.estimate(w.read(r.State, now)) }

// Tokens implements [Algorithm].
func (w *SlidingWindow) Tokens(debt uint64) uint64 { return debt }

// Wait implements [Algorithm].
func (w *SlidingWindow) Wait(_ int64, ticks uint64) time.Duration { return time.Duration(ticks) }

// Shortfall implements [Algorithm].
func (w *SlidingWindow) Shortfall(r Record, now uint64, d Demand) uint64 {
	if d.Cost == 0 {
		return 0
	}
	return w.nanosUntil(w.read(r.State, now), d.Limit-d.Cost)
}

// Status implements [Algorithm].
func (w *SlidingWindow) Status(r Record, nanos int64, d Demand) Status {
	c := w.read(r.State, uint64(nanos))
	used := w.estimate(c)
	status := Status{Remaining: d.Limit - min(used, d.Limit), RetryAfter: time.Duration(w.Shortfall(r, uint64(nanos), d))}
	if used > 0 {
		status.ResetAfter = time.Duration(c.ahead + c.left)
	}
	return status
}
