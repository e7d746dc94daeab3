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

// A Change has the numbers that a conversion knows about the key of a record.
type Change struct {
	Before, After uint64 // the price of a token before and after, each in units of its algorithm; 0: not known
	Highest       uint64 // the highest limit that the key had, in units of the previous algorithm
	Latest        int64  // no request of the record was granted at a later time, and no reservation is due later
	Promised      int64  // no reservation is due later

	// Of windows: the lowest limit that the key may have after the change, in tokens, and the longest window that there
	// ever was, in nanoseconds. 0: not known.
	Lowest, Longest uint64
}

// windows returns how long the tokens taken in a window last at the new rate: at least n, which is the time of a new
// window in any unit, and at most longest, in the same unit. The result is rounded up. The key may have any limit after
// the change, so the lowest one counts. All tokens come back in the longest window, under the limit that granted them.
func (c Change) windows(taken, n, longest uint64) uint64 {
	switch {
	case c.Longest == 0:
		return manyTicks
	case c.Lowest > 0:
		longest = min(longest, proportion(n, c.Lowest, taken))
	}
	return max(n, longest)
}

// after returns the instant after a number of nanoseconds, or the end of time.
func after(nanos int64, more uint64) int64 {
	return nanos + int64(min(more, uint64(math.MaxInt64-nanos)))
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

// Convert returns the payload for another fixed window's record, with the same tokens taken. A window that stays as
// long ends when it would have ended.
//
//   - A window that becomes shorter ends when it would have ended, or when as many tokens have come back at the new
//     rate as were taken, if that is sooner: no sooner than a window that begins at the latest time. If it ended with a
//     new window, a key would get more in the same time if one limit has the tokens and another the short windows: 1000
//     an hour, 20 a minute, and again.
//   - A window that becomes longer ends later by as much, but no later than a window that begins at the latest time. If
//     it ended when it would have ended, so would what is taken in it by a raised limit.
//
// So a window with a number of tokens is never shorter than the fastest of its limits grants them in, and no shorter
// than the windows of its last limit: if it began at b, e >= b + W. Windows that begin with a request do not overlap.
// So over any time t a key gets at most two limits, of the windows at the edges, and what that limit grants in t.
//
// An aligned window ends with a window of the clock: see endsWithClock.
func (w *FixedWindow) Convert(before Algorithm, s State, nanos int64, c Change) uint64 {
	from := before.(*FixedWindow)
	left, taken := from.read(s, from.Ticks(nanos))
	now := w.Ticks(nanos)
	if left == 0 {
		return w.Full(now)
	}
	latest, stays := max(nanos, c.Latest), after(nanos, uint64(from.Wait(nanos, left)))
	end := w.Ticks(stays-1) + 1
	switch {
	case w.Aligned() && !w.SameGrid(from):
		end = w.endsWithClock(from.begin(from.Ticks(stays-1)), stays, latest, taken, c)
	case w.window > from.window:
		longer := min(after(stays, uint64(w.window-from.window)), after(latest, uint64(w.window)))
		end = max(end, w.Ticks(longer-1)+1)
		fallthrough
	case w.window < from.window:
		end = min(end, w.Ticks(after(latest, c.windows(taken, uint64(w.window), c.Longest))-1)+1)
	}
	end = min(end, now+w.narrow) // an end further ahead would be read as past
	return w.pack(end, min(taken, 1<<w.bits-1))
}

// endsWithClock returns the tick with which a window ends after a change of the windows of the clock. before is when
// the last of its windows of the clock began, stays when it would have ended, and latest the latest time at which a
// token may have been taken. No earlier window of the key ended after before or latest.
//
// The window ends when it would have ended, but not before a whole window of the clock has passed since the earlier of
// before and latest: a raised limit may fill it. Or it ends when as many whole windows have passed as grant the tokens,
// if that is sooner. So it is as long as the fastest of its limits needs for its tokens, counted from the end of the
// previous one. Over any time t a key gets two limits, of the windows at the edges, and what that limit grants in t.
func (w *FixedWindow) endsWithClock(before, stays, latest int64, taken uint64, c Change) uint64 {
	whole := w.up(min(before, latest))                                  // the first whole window begins
	most := c.windows(taken, 1, ceilDiv(c.Longest, uint64(w.window))+1) // as many as the longest one may meet
	return min(max(w.up(stays), whole+1), max(w.Ticks(latest), whole)+most)
}

// Following returns the algorithm itself, which can take over the records of any other sliding window counter.
func (w *SlidingWindow) Following(before Algorithm) (Algorithm, error) { return following(w, before) }

// Convert returns the payload for another counter's record. If the windows have the same length, both counts stay.
// Otherwise the estimate, rounded up, becomes the count of one window. It is the window of the latest time, or a later
// one, so that the estimate is gone no sooner than one of two times: when it would have been gone, and by as much later
// as the windows become longer; or when as many tokens have come back at the new rate.
//
// The estimate E is at least what a bucket owes that has the highest limit, fills at the fastest of the limits, and
// granted the same tokens. (The count of the window before loses at most a limit in a window.) So over any time t a key
// gets at most a limit and what that rate grants in t. A conversion has to keep that. An estimate that is all gone in
// window i+1 falls by E in the last window before that, of length s. If it is gone no sooner than the new limit M
// grants E, that is E*s/M from the latest time, it is above the line along which the bucket fills: the two are equal at
// most at the end. If it is gone no sooner than before, it is above the estimate of before. And the limit that granted
// the tokens grants them in the longest window that there ever was.
func (w *SlidingWindow) Convert(before Algorithm, s State, nanos int64, change Change) uint64 {
	from := before.(*SlidingWindow)
	c := from.read(s, uint64(nanos))
	if from.below(c, 0) {
		return w.Full(uint64(nanos)) // idle, and stays idle
	}
	if from.window != w.window {
		end := nanos + int64(c.ahead+c.left) // of the window
		used, latest := from.estimateUp(c), max(nanos, change.Latest)
		if c.current > 0 {
			end = after(end, from.window)
		}
		end = after(end, max(w.window, from.window)-from.window)
		few := max(used, 2) // one of which may be more than the limit: the estimate is rounded up
		longest := proportion(change.Longest, few-1, few)
		end = min(end, after(latest, change.windows(used, w.window, longest)))
		c = counts{index: max(w.clock.quo(latest), w.clock.quo(end-1)-min(w.clock.quo(end-1), 1)), current: used}
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
	to := *from
	to.tokens, to.window, to.length = l.tokens, l.window, from.ticksOf(l.window)
	return to.Staying(l.room), nil
}

// Convert returns the payload unchanged: the requests stay.
func (l *SlidingLog) Convert(_ Algorithm, s State, _ int64, _ Change) uint64 { return s.Payload() }
