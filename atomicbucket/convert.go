package atomicbucket

import (
	"fmt"
	"math"
	"math/bits"
)

// following returns to, if the previous algorithm is of the same kind.
func following[T Algorithm](to T, before Algorithm) (Algorithm, error) {
	if _, same := before.(T); !same {
		return nil, fmt.Errorf("a %T cannot take over the records of a %T", to, before)
	}
	return to, nil
}

// A Change is what a conversion knows about the key of a record.
type Change struct {
	Before, After uint64 // the price of a token before and after, each in units of its algorithm; 0: not known
	Highest       uint64 // the highest limit that the key had, in units of the previous algorithm
	Latest        int64  // no request of the record was granted at a later time, and no reservation is due later
	Promised      int64  // no reservation is due later
}

// proportion returns part * to / from, rounded up.
func proportion(part, from, to uint64) uint64 {
	if from == to || part == 0 {
		return part
	}
	hi, lo := bits.Mul64(part, to)
	if hi >= from {
		return math.MaxUint64
	}
	share, rem := bits.Div64(hi, lo, from)
	return share + min(rem, 1)
}

// Following returns the bucket itself, which can take over the records of any other token bucket.
func (b *TokenBucket) Following(before Algorithm) (Algorithm, error) { return following(b, before) }

// Convert returns the payload for another bucket's record. It owes as many tokens as before, from an instant on, at
// every time at which some may have been granted.
//
//   - If the bucket becomes slower, it owes the same tokens at that instant, and more than before at each later one.
//     The part above all limits that the key had is due to reservations, whose times are fixed. That part keeps its
//     length in time until the last reservation is due. (So do charges, until then.)
//   - If it becomes faster, it owes the same tokens at the latest time, or nothing from the instant on at which it
//     would have owed nothing before. Otherwise tokens that were granted for a later time would come back too early.
//
// If nothing more is known about the key, the record owes the same time. A record has room for 2^51 ticks, and
// additionally for the ticks that were granted ahead. Debt above that is forgiven, because a larger payload would be
// read as past.
func (b *TokenBucket) Convert(before Algorithm, s State, nanos int64, c Change) uint64 {
	now := b.Ticks(nanos)
	ahead := min(b.Ticks(max(c.Latest, nanos))-now, maxSkew)
	return now + min(b.converted(before.(*TokenBucket), s, nanos, c), maxBurstTicks+ahead)
}

// converted is Convert, but returns the debt at the instant, even if it is more than a record has room for.
func (b *TokenBucket) converted(from *TokenBucket, s State, nanos int64, c Change) (owed uint64) {
	start := from.Ticks(nanos)
	was, now := debt(s, start), b.Ticks(nanos)
	above := was
	if c.Before > 0 {
		above = min(was-min(was, c.Highest), from.Ticks(max(c.Promised, nanos))-start)
	}
	owed = min(proportion(was-above, c.Before, c.After), manyTicks) + b.lasting(from, nanos, above)
	if c.Before > 0 && c.Latest > nanos {
		later := b.lasting(from, nanos, was)
		if c.Latest-nanos < int64(from.Wait(nanos, was)) {
			later = proportion(debt(s, from.Ticks(c.Latest)), c.Before, c.After)
			later = min(later, manyTicks) + b.Ticks(c.Latest) - now
		}
		owed = max(owed, later)
	}
	return owed
}

// manyTicks is more than any record has room for, and small enough that sums of a few do not wrap.
const manyTicks = 1 << 60

// lasting returns how many ticks last as long as a number of another bucket's ticks, from an instant on, rounded up.
func (b *TokenBucket) lasting(from *TokenBucket, nanos int64, ticks uint64) uint64 {
	if ticks == 0 || b.sameTicks(from) {
		return ticks
	}
	end := nanos + min(int64(from.Wait(nanos, ticks)), math.MaxInt64-nanos)
	return b.Ticks(end) - b.Ticks(nanos) + b.round
}

// Following returns the algorithm itself, which can take over the records of any other fixed window.
func (w *FixedWindow) Following(before Algorithm) (Algorithm, error) { return following(w, before) }

// Convert returns the payload for another fixed window's record, with the same tokens taken. A window that has begun
// ends when it would have ended. If windows become shorter, it ends when a window that begins now would end, if that is
// sooner. An aligned window ends with the clock's window.
func (w *FixedWindow) Convert(before Algorithm, s State, nanos int64, _ Change) uint64 {
	from := before.(*FixedWindow)
	left, taken := from.read(s, from.Ticks(nanos))
	now := w.Ticks(nanos)
	if left == 0 {
		return w.Full(now)
	}
	wait := min(int64(from.Wait(nanos, left)), math.MaxInt64-nanos)
	end := w.Ticks(nanos+wait-1) + 1
	edges := w.length == 1 && (w.clock != from.clock || w.calendar != from.calendar) // of an aligned one, which move
	if edges || w.Wait(nanos, w.length) < from.Wait(nanos, from.length) {
		end = min(end, now+w.length)
	}
	end = min(end, now+w.narrow) // an end further ahead would be read as past
	return w.pack(end, min(taken, 1<<w.bits-1))
}

// Following returns the algorithm itself, which can take over the records of any other sliding window counter.
func (w *SlidingWindow) Following(before Algorithm) (Algorithm, error) { return following(w, before) }

// Convert returns the payload for another counter's record. If the windows have the same length, both counts stay.
// Otherwise the estimate, rounded up, becomes the count of the current window.
func (w *SlidingWindow) Convert(before Algorithm, s State, nanos int64, _ Change) uint64 {
	from := before.(*SlidingWindow)
	c := from.read(s, uint64(nanos))
	if from.below(c, 0) {
		return w.Full(uint64(nanos)) // idle, and stays idle
	}
	if from.window != w.window {
		c = counts{index: w.clock.quo(nanos), current: from.estimateUp(c)}
	}
	// A record that was written by a clock ahead of this one must not be further ahead than records can be.
	c.index = min(c.index, w.clock.quo(nanos)+w.late-1)
	most := uint64(1)<<w.bits - 1
	c.previous, c.current = min(c.previous, most), min(c.current, most)
	return w.pack(c)
}

// Following returns the algorithm with the rings and the ticks of another. Its limits may be up to the size of those
// rings, and its window must suit those ticks: long enough for their precision, and short enough for their range.
func (l *SlidingLog) Following(before Algorithm) (Algorithm, error) {
	if _, err := following(l, before); err != nil {
		return nil, err
	}
	from := before.(*SlidingLog)
	if l.size > from.size || l.window < from.shortest() || l.window > from.longest() {
		return nil, fmt.Errorf("want limits of 1 to %d, the largest at New, in a window of %v to %v", from.size, from.shortest(), from.longest())
	}
	to, period := *from, from.clock.first(1)
	to.tokens, to.window, to.length = l.tokens, l.window, ceilDiv(uint64(l.window), period)
	if period > 1 {
		to.length++
	}
	return &to, nil
}

// Convert returns the payload unchanged: the requests stay.
func (l *SlidingLog) Convert(_ Algorithm, s State, _ int64, _ Change) uint64 { return s.Payload() }
