package atomicbucket

import (
	"fmt"
	"math"
	"math/bits"
)

// Convert returns the payload of a record of one algorithm under another of the same
// algorithm, at an instant: the share of the limit that is used up stays what it
// is, rounded up to whole units.
func Convert(from, to Algorithm, s State, nanos int64) (payload uint64) {
	switch to := to.(type) {
	case *TokenBucket:
		return to.convert(from.(*TokenBucket), s, nanos)
	case *FixedWindow:
		return to.convert(from.(*FixedWindow), s, nanos)
	case *SlidingWindow:
		return to.convert(from.(*SlidingWindow), s, nanos)
	}
	panic(fmt.Sprintf("atomicbucket: no algorithm of type %T", to))
}

// share returns part * to / from, rounded up.
func share(part, from, to uint64) uint64 {
	hi, lo := bits.Mul64(part, to)
	if hi >= from {
		return math.MaxUint64
	}
	share, rem := bits.Div64(hi, lo, from)
	return share + min(rem, 1)
}

// Who has taken ahead owes more than the burst, and goes on to.
func (b *TokenBucket) convert(from *TokenBucket, s State, nanos int64) uint64 {
	return b.Ticks(nanos) + min(share(from.Debt(s, from.Ticks(nanos)), from.burst, b.burst), maxBurstTicks)
}

// A window that has begun ends when it would have; or, if windows become shorter, when one
// that begins now would end, if that is sooner. An aligned one ends with the clock's.
func (w *FixedWindow) convert(from *FixedWindow, s State, nanos int64) uint64 {
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
	return w.pack(end, min(share(taken, from.tokens, w.tokens), 1<<w.bits-1))
}

// Windows of the same length keep both counts. Else the estimate becomes the count of the
// present window.
func (w *SlidingWindow) convert(from *SlidingWindow, s State, nanos int64) uint64 {
	c := from.read(s, uint64(nanos))
	if from.below(c, 0) {
		return w.Full(uint64(nanos)) // idle, and stays idle
	}
	if from.window != w.window {
		c = counts{index: w.clock.quo(nanos), current: from.estimate(c)}
	}
	// A record written by a clock that was ahead must not be further ahead than it can be.
	c.index = min(c.index, w.clock.quo(nanos)+w.late-1)
	// A higher tier may have taken more than the limit.
	most := uint64(1)<<w.bits - 1
	c.previous, c.current = min(share(c.previous, from.tokens, w.tokens), most), min(share(c.current, from.tokens, w.tokens), most)
	return w.pack(c)
}
