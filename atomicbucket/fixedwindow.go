package atomicbucket

import (
	"fmt"
	"math/bits"
	"time"
)

// A FixedWindow is the algorithm of a fixed window: a number of tokens per window. A window begins with a key's first
// request, or at multiples of its length if it is aligned. The payload is packed {end of the window, tokens taken in
// it}.
//
// For an aligned window, a tick is a window. Otherwise a tick is a nanosecond, if the two fields then fit into 54 bits,
// or else a larger power of two of nanoseconds. With such a larger tick, the window is never shorter than requested,
// and up to two ticks longer. Two ticks are at most a hundred-thousandth of the window.
type FixedWindow struct {
	clock    divider
	window   time.Duration
	length   uint64 // ticks from the tick of the first request to the end of the window
	tokens   uint64
	bits     uint   // of the field of the tokens
	maxAhead uint64 // how many ticks ahead of a call the end of a window may be
	skew     time.Duration
	// If calendar is not nil, it determines when windows begin, and a tick is a window.
	calendar *Calendar
}

const (
	// MaxWindow is the longest window: a year of 365 days.
	MaxWindow = 365 * 24 * time.Hour
	// MaxLimit is the highest limit of a fixed window.
	MaxLimit = 1 << 32
	// minSkew is the smallest skew ([Algorithm.MaxSkew]) that an algorithm may have. With a smaller skew, a table would
	// have to sweep too often (R7 of shard/doc.go).
	minSkew = 30 * time.Second
)

// NewFixedWindow returns the algorithm that allows limit tokens per window. Records have room for counts up to
// maxLimit. The ranges are 1 <= limit <= maxLimit <= [MaxLimit], and a microsecond to [MaxWindow] for the window. The
// count and the end of a window must fit into 54 bits together. For other numbers, the error names the value and the
// range.
func NewFixedWindow(limit, maxLimit uint64, window time.Duration, aligned bool) (FixedWindow, error) {
	return NewRoomyWindow(limit, maxLimit, window, window, aligned)
}

// NewRoomyWindow is like [NewFixedWindow], but records also have room for windows of earlier limits. After a
// conversion, such a window may last up to the duration room, which is at least window.
func NewRoomyWindow(limit, maxLimit uint64, window, room time.Duration, aligned bool) (FixedWindow, error) {
	if err := checkWindow(limit, maxLimit, window, MaxLimit); err != nil {
		return FixedWindow{}, err
	}
	fits := func(limit uint64) (period uint64, ok bool) {
		return finest(circleOf(limit)/circleSkews, window, room)
	}
	if aligned {
		fits = func(limit uint64) (period uint64, ok bool) {
			skew := circleOf(limit) / circleSkews
			return uint64(window), skewOf(skew, uint64(window)) >= minSkew && ceilDiv(uint64(room), uint64(window)) <= 2*skew
		}
	}
	period, ok := fits(maxLimit)
	if !ok {
		return FixedWindow{}, tooLarge(maxLimit, window, fits)
	}
	w := FixedWindow{
		clock: newDivider(period), window: window, length: ceilDiv(uint64(window), period), tokens: limit,
		bits: uint(bits.Len64(maxLimit)),
	}
	if period > 1 && !aligned {
		w.length++ // the tick of the first request began before the request
	}
	skew := circleOf(maxLimit) / circleSkews
	w.maxAhead, w.skew = w.length+skew, skewOf(skew, period)
	if room > window {
		w.maxAhead = max(w.maxAhead, ceilDiv(uint64(room), period)+1+skew)
	}
	if aligned {
		w.maxAhead++ // a window may end with the window of the clock after its own: see Later
	}
	return w, nil
}

// NewCalendarWindow returns the algorithm that allows limit tokens in each period of the calendar c. Records have room
// for counts up to maxLimit, and for earlier windows, as in [NewRoomyWindow]. The ranges of the numbers are the same as
// for [NewFixedWindow].
func NewCalendarWindow(limit, maxLimit uint64, c *Calendar, room time.Duration) (FixedWindow, error) {
	w, err := NewRoomyWindow(limit, maxLimit, c.period.Longest(), room, true)
	w.calendar = c
	return w, err
}

// finest returns the length of the finest possible tick, a power of two of nanoseconds. The parameter skew is the
// algorithm's skew, in such ticks. Two skews must be at least as long as window and room, and one skew at least as long
// as minSkew. ok is false if two ticks would be more than a hundred-thousandth of the window.
func finest(skew uint64, window, room time.Duration) (period uint64, ok bool) {
	for period = 1; ceilDiv(uint64(max(window, room)), period) > 2*skew || skewOf(skew, period) < minSkew; period *= 2 {
		if period*400_000 > uint64(window) {
			return 0, false
		}
	}
	return period, true
}

// circleOf returns the number of ticks that the payload can hold before it wraps around, if a count up to limit takes
// the other bits.
func circleOf(limit uint64) uint64 { return 1 << (PayloadBits - bits.Len64(limit)) }

// circleSkews is how many skews the ticks of a payload cover before they wrap around: two for the largest debt, one for
// the clock that wrote the payload, and 13 in which the payload is recognized as past.
const circleSkews = 16

// skewOf converts a skew from ticks of the given period to a duration of at most 2^59 ns.
func skewOf(ticks, period uint64) time.Duration {
	hi, nanos := bits.Mul64(ticks, period)
	if hi > 0 || nanos > 1<<59 {
		return 1 << 59
	}
	return time.Duration(nanos)
}

// tooLarge returns the error for a limit that is too large for such a short window: its count leaves too few bits. The
// function fits reports whether a limit would fit.
func tooLarge(limit uint64, window time.Duration, fits func(limit uint64) (uint64, bool)) error {
	maxLimit := uint64(1)
	for {
		if _, ok := fits(2 * maxLimit); !ok { // 2*maxLimit + 1 needs a field of the same size
			break
		}
		maxLimit = 2*maxLimit + 1
	}
	return fmt.Errorf("limit of %d tokens every %v: so large a count does not fit into a word beside so short a window; want at most %d tokens", limit, window, maxLimit)
}

func checkWindow(limit, maxLimit uint64, window time.Duration, ceiling uint64) error {
	if limit < 1 || limit > maxLimit || maxLimit > ceiling {
		if maxLimit < 1 || maxLimit > ceiling {
			maxLimit = ceiling
		}
		return fmt.Errorf("limit of %d tokens every %v: want 1 to %d tokens", limit, window, maxLimit)
	}
	if window < time.Microsecond || window > MaxWindow {
		return fmt.Errorf("limit of %d tokens every %v: want a window of 1µs to %v", limit, window, MaxWindow)
	}
	return nil
}

func ceilDiv(a, b uint64) uint64 { return a/b + min(a%b, 1) }

// Ticks implements [Algorithm].
func (w *FixedWindow) Ticks(nanos int64) uint64 {
	if w.calendar != nil {
		return w.calendar.number(nanos)
	}
	return w.clock.quo(nanos)
}

// MaxSkew implements [Algorithm].
func (w *FixedWindow) MaxSkew() time.Duration { return w.skew }

// Quota implements [Algorithm].
func (w *FixedWindow) Quota() Quota { return Quota{1, w.tokens} }

// RingSize returns 0: a record is one word.
func (w *FixedWindow) RingSize() uint64 { return 0 }

// read returns the ticks that are left of the window and the tokens taken in it. Both are zero if the window is over.
func (w *FixedWindow) read(s State, now uint64) (left, taken uint64) {
	left = (uint64(s)>>w.bits - now) & (payloadMask >> w.bits)
	if left == 0 || left > w.maxAhead {
		return 0, 0
	}
	return left, uint64(s) & (1<<w.bits - 1)
}

func (w *FixedWindow) pack(end, taken uint64) uint64 { return end<<w.bits | taken }

// Take returns the payload after a take at the tick now, and whether the window has enough tokens for the take.
func (w *FixedWindow) Take(r Record, now uint64, d Demand) (payload uint64, ok bool) {
	left, taken := w.read(r.State, now)
	if left == 0 {
		left = w.length
	}
	return w.pack(now+left, taken+d.Cost), taken+d.Cost <= d.Limit
}

// Aligned reports whether windows are windows of the clock, so that a key's first request does not determine when they
// begin.
func (w *FixedWindow) Aligned() bool { return w.length == 1 }

// SameGrid reports whether both algorithms have the same windows of the clock.
func (w *FixedWindow) SameGrid(other *FixedWindow) bool {
	return w.clock == other.clock && w.calendar == other.calendar
}

// Later returns the payload of an aligned window that a key begins at the tick now. The parameter payload is what Take
// returned. The parameter since is the instant from which windows of the clock have their current length. If the key's
// window begins before the first whole window of that length, it ends with that whole window.
func (w *FixedWindow) Later(payload, now uint64, since int64) uint64 {
	if first := w.ceilTick(since); now < first {
		untilEnd := first + 1 - now
		payload += w.pack(untilEnd-min(untilEnd, w.UntilIdle(State(payload), now)), 0)
	}
	return payload
}

// ceilTick returns the first tick that begins at the given instant or later.
func (w *FixedWindow) ceilTick(nanos int64) uint64 {
	tick := w.Ticks(nanos)
	if w.begin(tick) < nanos {
		if tick++; w.calendar != nil {
			tick = w.calendar.number(w.calendar.Begin(tick)) // a date that the zone skipped is no window
		}
	}
	return tick
}

// begin returns the instant at which the window of the clock with the number tick begins.
func (w *FixedWindow) begin(tick uint64) int64 {
	if w.calendar != nil {
		return w.calendar.Begin(tick)
	}
	return int64(tick * uint64(w.window))
}

// Flush has nothing to do: a record is one word.
func (w *FixedWindow) Flush(Record, uint64, *Word) bool { return true }

// Full returns the payload of a window that is over.
func (w *FixedWindow) Full(now uint64) (payload uint64) { return w.pack(now, 0) }

// Receipt returns the receipt of a take, which identifies the end of its window.
func (w *FixedWindow) Receipt(after State, nanos int64, _ uint64) Receipt {
	return Receipt{after.Payload() >> w.bits, 0, nanos, recordInfo{uint8(after.Version()), true}}
}

// Refund gives a cost back to the current window, unless the take was in another window. If no taken tokens are left,
// the window is over, so the next request begins a new one. After a take ahead of the clock, the window may begin after
// the tick now. Then only a refund with a receipt of that window gives anything back.
func (w *FixedWindow) Refund(r Record, ret Return, word *Word) (after State, ok bool) {
	left, taken := w.read(r.State, ret.Now)
	sameWindow := left <= w.length || ret.Latest == ret.Now
	if receipt := ret.Of; receipt.known { // ends wrap around: a window of long ago may have had the same end
		sameWindow = receipt.tick == r.State.Payload()>>w.bits && int64(ret.Now-w.Ticks(receipt.nanos)) <= int64(w.maxAhead)
	}
	switch {
	case left == 0 || !sameWindow:
		return word.Move(r.State, r.State.Payload()) // the record stays unchanged for late calls
	case taken <= ret.Demand.Cost:
		return word.Move(r.State, w.Full(ret.Now))
	}
	return word.Move(r.State, w.pack(ret.Now+left, taken-ret.Demand.Cost))
}

// Idle reports whether the window is over.
func (w *FixedWindow) Idle(s State, now uint64) bool { return w.UntilIdle(s, now) == 0 }

// IdleFor returns the number of ticks since the window ended.
func (w *FixedWindow) IdleFor(s State, now uint64) uint64 {
	return (now - uint64(s)>>w.bits) & (payloadMask >> w.bits)
}

// UntilIdle returns how many ticks are left of the window.
func (w *FixedWindow) UntilIdle(s State, now uint64) uint64 {
	left, _ := w.read(s, now)
	return left
}

// Debt returns how many tokens were taken in the current window.
func (w *FixedWindow) Debt(r Record, now uint64) uint64 {
	_, taken := w.read(r.State, now)
	return taken
}

// Tokens implements [Algorithm].
func (w *FixedWindow) Tokens(debt uint64) uint64 { return debt }

// Wait implements [Algorithm].
func (w *FixedWindow) Wait(nanos int64, ticks uint64) time.Duration {
	switch {
	case ticks == 0:
		return 0
	case w.calendar != nil:
		return w.calendar.Wait(nanos, ticks)
	}
	return w.clock.wait(nanos, ticks)
}

// Shortfall implements [Algorithm].
func (w *FixedWindow) Shortfall(r Record, now uint64, d Demand) uint64 {
	left, taken := w.read(r.State, now)
	if d.Cost == 0 || taken+d.Cost <= d.Limit {
		return 0
	}
	return left
}

// Status implements [Algorithm].
func (w *FixedWindow) Status(r Record, nanos int64, d Demand) Status {
	now := w.Ticks(nanos)
	left, taken := w.read(r.State, now)
	return Status{
		Remaining:  d.Limit - min(taken, d.Limit), // a lower tier's limit may be below the count
		RetryAfter: w.Wait(nanos, w.Shortfall(r, now, d)),
		ResetAfter: w.Wait(nanos, left),
	}
}
