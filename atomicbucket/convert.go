package atomicbucket

import (
	"fmt"
	"math"
	"math/bits"
)

// following returns the new algorithm, or an error if the previous one has another type.
func following[T Algorithm](to T, before Algorithm) (Algorithm, error) {
	if _, same := before.(T); !same {
		return nil, fmt.Errorf("a %T cannot take over the records of a %T", to, before)
	}
	return to, nil
}

// A Change has what a conversion needs to know about the key of a record.
type Change struct {
	Before, After uint64 // the price of a token before and after, each in units of its algorithm; 0: not known
	Highest       uint64 // the highest limit that the key had, in units of the previous algorithm
	Latest        int64  // no request of the record was granted at a later time, and no reservation is due later
	Promised      int64  // no reservation is due later

	// The next two are for windows only; 0 means not known. Lowest is the lowest limit that the key may have after the
	// change, in tokens. Longest is the longest window that there ever was, in nanoseconds.
	Lowest, Longest uint64
}

// refillTime returns how long it takes, rounded up, until the tokens taken in a window have come back under the lowest
// limit after the change. The parameter length is the length of a new window, and longest is the length of the longest
// window, both in the unit of the result. The result is at least length. It is at most longest, because the limit that
// granted the tokens grants them again within the longest window.
func (c Change) refillTime(taken, length, longest uint64) uint64 {
	switch {
	case c.Longest == 0:
		return manyTicks
	case c.Lowest > 0:
		longest = min(longest, proportion(length, c.Lowest, taken))
	}
	return max(length, longest)
}

// addNanos returns nanos + more, or the last instant if the sum would overflow.
func addNanos(nanos int64, more uint64) int64 {
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

// Convert returns the new payload of a record that followed another bucket. The record then owes at least as many
// tokens as before at every time, from the instant nanos on, at which tokens may have been granted.
//
//   - If the bucket becomes slower, the record owes the same number of tokens at nanos, and more than before at each
//     later instant. A part of the debt may be above all limits that the key had. That part comes from charges, or
//     from reservations, whose times are fixed. Until the last reservation is due, it takes as long to come back as
//     before.
//   - If the bucket becomes faster, the record owes the same number of tokens at the latest time (c.Latest). With a
//     smaller debt, tokens that were granted for a later time would come back too early. A debt that would have ended
//     before the latest time ends at the same moment as before.
//
// If nothing is known about the key (c.Before is 0), the debt takes as long to come back as before. A record has room
// for 2^51 ticks, and for the ticks that were granted ahead. Any debt above that is forgiven, because a larger payload
// could be read as past.
func (b *TokenBucket) Convert(before Algorithm, s State, nanos int64, c Change) uint64 {
	now := b.Ticks(nanos)
	ahead := min(b.Ticks(max(c.Latest, nanos))-now, maxSkew)
	return now + min(b.convertedDebt(before.(*TokenBucket), s, nanos, c), maxBurstTicks+ahead)
}

// convertedDebt returns the debt at the instant nanos that Convert computes, even if a record has no room for it.
func (b *TokenBucket) convertedDebt(from *TokenBucket, s State, nanos int64, c Change) (owed uint64) {
	start := from.Ticks(nanos)
	oldDebt, now := debt(s, start), b.Ticks(nanos)
	excess := oldDebt
	if c.Before > 0 {
		excess = min(oldDebt-min(oldDebt, c.Highest), from.Ticks(max(c.Promised, nanos))-start)
	}
	owed = min(proportion(oldDebt-excess, c.Before, c.After), manyTicks) + b.convertTicks(from, nanos, excess)
	if c.Before > 0 && c.Latest > nanos {
		owedLatest := b.convertTicks(from, nanos, oldDebt)
		if c.Latest-nanos < int64(from.Wait(nanos, oldDebt)) {
			owedLatest = proportion(debt(s, from.Ticks(c.Latest)), c.Before, c.After)
			owedLatest = min(owedLatest, manyTicks) + b.Ticks(c.Latest) - now
		}
		owed = max(owed, owedLatest)
	}
	return owed
}

// manyTicks is more than any record has room for, and small enough that sums of a few do not wrap.
const manyTicks = 1 << 60

// convertTicks converts ticks of another bucket to ticks of b that take as long to pass, rounded up. Both are counted
// from the instant nanos.
func (b *TokenBucket) convertTicks(from *TokenBucket, nanos int64, ticks uint64) uint64 {
	if ticks == 0 || b.sameTicks(from) {
		return ticks
	}
	end := nanos + min(int64(from.Wait(nanos, ticks)), math.MaxInt64-nanos)
	return b.Ticks(end) - b.Ticks(nanos) + b.round
}

// Following returns the algorithm itself, which can take over the records of any other fixed window.
func (w *FixedWindow) Following(before Algorithm) (Algorithm, error) { return following(w, before) }

// Convert returns the new payload of a record that followed another fixed window. The number of tokens taken stays the
// same. If the length of the windows stays the same, the end of the window does, too.
//
//   - If windows become shorter, the window keeps its end. It ends earlier if its tokens have come back at the new
//     rate by then, counted from the latest time (c.Latest). It then lasts at least one new window from the latest
//     time on. If it always ended after one new window, alternating policies, such as 1000 per hour and 20 per minute,
//     would give a key too much.
//   - If windows become longer, the window ends later by the difference of the lengths. It ends no later than a window
//     that begins at the latest time, and no later than its tokens have come back at the new rate. If its end did not
//     move, tokens that a raised limit adds would come back at that end.
//
// So a window is at least as long as the fastest of its limits needs to grant its tokens. It is also at least as long
// as the windows of its last limit. Windows that begin with a request do not overlap. So over any time t a key gets at
// most two limits, for the windows at both edges, and what the fastest limit grants in t.
//
// An aligned window ends with a window of the clock: see clockEnd.
func (w *FixedWindow) Convert(before Algorithm, s State, nanos int64, c Change) uint64 {
	from := before.(*FixedWindow)
	left, taken := from.read(s, from.Ticks(nanos))
	now := w.Ticks(nanos)
	if left == 0 {
		return w.Full(now)
	}
	latest, oldEnd := max(nanos, c.Latest), addNanos(nanos, uint64(from.Wait(nanos, left)))
	end := w.Ticks(oldEnd-1) + 1
	switch {
	case w.Aligned() && !w.SameGrid(from):
		end = w.clockEnd(from.begin(from.Ticks(oldEnd-1)), oldEnd, latest, taken, c)
	case w.window > from.window:
		longerEnd := min(addNanos(oldEnd, uint64(w.window-from.window)), addNanos(latest, uint64(w.window)))
		end = max(end, w.Ticks(longerEnd-1)+1)
		fallthrough
	case w.window < from.window:
		end = min(end, w.Ticks(addNanos(latest, c.refillTime(taken, uint64(w.window), c.Longest))-1)+1)
	}
	end = min(end, now+w.maxAhead) // an end further ahead would be read as past
	return w.pack(end, min(taken, 1<<w.bits-1))
}

// clockEnd returns the tick at which a key's window ends if the windows of the clock have changed. Three parameters are
// instants:
//
//   - lastBegin: the beginning of the last window of the clock within the key's window
//   - oldEnd: the end that the key's window would have without the change
//   - latest: the latest time at which a token may have been taken
//
// No earlier window of the key ended after lastBegin, or after latest.
//
// Without the change, the key's window would have ended in some window of the clock. It ends with that window, with two
// exceptions:
//
//   - At least one whole window of the clock must have passed since the earlier of lastBegin and latest, because a
//     raised limit may fill that window.
//   - If fewer windows of the clock are enough to grant the tokens taken, the key's window ends after that many.
//
// So the key's window, counted from the end of its previous one, is as long as the fastest of its limits needs to grant
// its tokens. Therefore the bound of Convert holds.
func (w *FixedWindow) clockEnd(lastBegin, oldEnd, latest int64, taken uint64, c Change) uint64 {
	firstWhole := w.ceilTick(min(lastBegin, latest)) // when the first whole window begins
	longest := ceilDiv(c.Longest, uint64(w.window))
	if w.calendar != nil {
		longest++ // some periods are shorter than others
	}
	maxWindows := c.refillTime(taken, 1, longest)
	return min(max(w.ceilTick(oldEnd), firstWhole+1), max(w.Ticks(latest), firstWhole)+maxWindows)
}

// Following returns the algorithm itself, which can take over the records of any other sliding window counter.
func (w *SlidingWindow) Following(before Algorithm) (Algorithm, error) { return following(w, before) }

// Convert returns the new payload of a record that followed another counter. If the windows have the same length, both
// counts stay. Otherwise the estimate, rounded up, becomes the count of one window, at the latest time (change.Latest)
// or later. The estimate must not fall to 0 sooner than the earlier of two times:
//
//   - the time at which it would have been 0 without the change, plus the time by which windows become longer;
//   - the time at which that many tokens have come back at the new rate, counted from the latest time.
//
// This preserves a bound: over any time t a key gets at most one limit and what the fastest rate grants in t. For the
// proof, imagine a bucket with the highest limit and the fastest rate, which granted the key's tokens. The estimate E
// is at least the debt of this bucket, because the count of the previous window falls by at most one limit per window.
// After a conversion, the estimate falls by E only in the last window before it is 0, of length s. The new limit M
// needs E*s/M from the latest time to grant E tokens. If the estimate lasts at least that long, it is never below the
// debt of the bucket. If it lasts at least as long as without the change, it is never below the estimate without the
// change. It need not outlast the longest window that there ever was: within that window, the limit that granted the
// tokens grants them again.
func (w *SlidingWindow) Convert(before Algorithm, s State, nanos int64, change Change) uint64 {
	from := before.(*SlidingWindow)
	c := from.read(s, uint64(nanos))
	if from.isAtMost(c, 0) {
		return w.Full(uint64(nanos)) // idle, and stays idle
	}
	if from.window != w.window {
		end := nanos + int64(c.ahead+c.left) // of the current window
		used, latest := from.estimateUp(c), max(nanos, change.Latest)
		if c.current > 0 {
			end = addNanos(end, from.window)
		}
		end = addNanos(end, max(w.window, from.window)-from.window)
		count := max(used, 2) // the estimate is rounded up, so one of these tokens may be above the limit
		longest := proportion(change.Longest, count-1, count)
		end = min(end, addNanos(latest, change.refillTime(used, w.window, longest)))
		c = counts{index: max(w.clock.quo(latest), w.clock.quo(end-1)-min(w.clock.quo(end-1), 1)), current: used}
	}
	// A clock ahead of this one may have written the record. The record must still not be further ahead than a record
	// may be.
	c.index = min(c.index, w.clock.quo(nanos)+w.maxAhead-1)
	maxCount := uint64(1)<<w.bits - 1
	c.previous, c.current = min(c.previous, maxCount), min(c.current, maxCount)
	return w.pack(c)
}

// Following returns the log l with the rings and the ticks of the previous log (before). The limits of l may be up to
// the size of these rings. The window of l must be long enough for the precision of these ticks, and short enough for
// their range.
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
