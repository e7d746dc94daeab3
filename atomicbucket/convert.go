package atomicbucket

import (
	"fmt"
	"math"
	"math/bits"
)

// following returns an algorithm that can take over the records of any other of its kind.
func following[T Algorithm](to T, before Algorithm) (Algorithm, error) {
	if _, same := before.(T); !same {
		return nil, fmt.Errorf("a %T cannot take over the records of a %T", to, before)
	}
	return to, nil
}

// A Change is what a conversion knows of the key whose record it is.
type Change struct {
	Before, After uint64 // the costs of a token of its quota, each in units of its algorithm; 0: not known
	Highest       uint64 // the highest limit that it had, in units of the algorithm before
	Latest        int64  // no request of the record was granted at a later time, and no reservation goes later
	Promised      int64  // no reservation goes later
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

// Following returns the bucket itself: it can take over the records of any other bucket.
func (b *TokenBucket) Following(before Algorithm) (Algorithm, error) { return following(b, before) }

// Convert returns the payload of another bucket's record, which owes as many tokens as before: at every time at which
// some may have been granted, from an instant on.
//
//   - If the bucket becomes slower, it owes as many at that instant, and more than before at each later one. But what
//     is above all limits that the key had is owed because of reservations, and they have their times already: that is
//     as much time, until the last of them goes. (So is what was charged, until then.)
//   - If it becomes faster, it owes as many at the latest time, or nothing from the instant on at which it would have
//     owed nothing before. Else what was granted ahead would come back before its time.
//
// A record of a key of which no more is known owes as much time. A record has room for 2^51 ticks, and for as many more
// as some were granted ahead. What is above that is forgiven: a payload that said more would be taken for past.
func (b *TokenBucket) Convert(before Algorithm, s State, nanos int64, c Change) uint64 {
	now := b.Ticks(nanos)
	ahead := min(b.Ticks(max(c.Latest, nanos))-now, maxSkew)
	return now + min(b.converted(before.(*TokenBucket), s, nanos, c), maxBurstTicks+ahead)
}

// converted is Convert, and returns what the record owes at the instant: also more than it has room for.
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

// manyTicks is more than any record has room for, and so few that sums of some do not wrap.
const manyTicks = 1 << 60

// lasting returns how many ticks last as long as so many of another bucket, from an instant on, rounded up.
func (b *TokenBucket) lasting(from *TokenBucket, nanos int64, ticks uint64) uint64 {
	if ticks == 0 || b.sameTicks(from) {
		return ticks
	}
	end := nanos + min(int64(from.Wait(nanos, ticks)), math.MaxInt64-nanos)
	return b.Ticks(end) - b.Ticks(nanos) + b.round
}

// Following returns the algorithm itself: it can take over the records of any other fixed window.
func (w *FixedWindow) Following(before Algorithm) (Algorithm, error) { return following(w, before) }

// Convert returns the payload of another fixed window's record, with as many tokens taken. A window that has begun ends
// when it would have; or, if windows become shorter, when one that begins now would end, if that is sooner. An aligned
// one ends with the clock's.
func (w *FixedWindow) Convert(before Algorithm, s State, nanos int64, _ Change) uint64 {
	from := before.(*FixedWindow)
	left, taken := from.read(s, from.Ticks(nanos))
	now := w.Ticks(nanos)
	if left == 0 {
		return w.Full(now)
	}
	wait := min(int64(from.Wait(nanos, left)), math.MaxInt64-nanos)
	end := w.Ticks(nanos+wait-1) + 1
	if w.Wait(nanos, w.length) < from.Wait(nanos, from.length) {
		end = min(end, now+w.length)
	}
	end = min(end, now+w.narrow) // further ahead it would be taken for over
	return w.pack(end, min(taken, 1<<w.bits-1))
}

// Following returns the algorithm itself: it can take over the records of any other sliding window counter.
func (w *SlidingWindow) Following(before Algorithm) (Algorithm, error) { return following(w, before) }

// Convert returns the payload of another counter's record. Windows of the same length keep both counts. Else the
// estimate, rounded up, becomes the count of the present window.
func (w *SlidingWindow) Convert(before Algorithm, s State, nanos int64, _ Change) uint64 {
	from := before.(*SlidingWindow)
	c := from.read(s, uint64(nanos))
	if from.below(c, 0) {
		return w.Full(uint64(nanos)) // idle, and stays idle
	}
	if from.window != w.window {
		c = counts{index: w.clock.quo(nanos), current: from.estimateUp(c)}
	}
	// A record written by a clock that was ahead must not be further ahead than it can be.
	c.index = min(c.index, w.clock.quo(nanos)+w.late-1)
	most := uint64(1)<<w.bits - 1
	c.previous, c.current = min(c.previous, most), min(c.current, most)
	return w.pack(c)
}

// Following returns the algorithm for the rings and with the ticks of another: its limits may be up to the size of
// those rings, and its window what those ticks can tell from others and are fine enough for.
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

// Convert returns the payload as it is: the requests stay what they are.
func (l *SlidingLog) Convert(_ Algorithm, s State, _ int64, _ Change) uint64 { return s.Payload() }
