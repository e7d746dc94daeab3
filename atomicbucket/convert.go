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

// share returns part * to / from: rounded up, or down if the fraction plus dither / 2^32 is below one.
func share(part, from, to uint64, dither uint32) uint64 {
	hi, lo := bits.Mul64(part, to)
	if hi >= from {
		return math.MaxUint64
	}
	share, rem := bits.Div64(hi, lo, from)
	restHi, rest := bits.Mul64(rem, 1<<32)
	wantHi, want := bits.Mul64(from, 1<<32-uint64(dither)) // above 0
	if restHi > wantHi || restHi == wantHi && rest >= want {
		share++
	}
	return share
}

// Following returns the bucket itself: it can take over the records of any other bucket.
func (b *TokenBucket) Following(before Algorithm) (Algorithm, error) { return following(b, before) }

// Convert returns the payload of another bucket's record. A reservation or a charge may owe more than the burst, and
// goes on to: as many times the new one, but no more than a record has room for, 2^51 ticks. What is above that is
// forgiven: a payload that said more would be taken for past. Ticks of a bucket that is refilled all the time are so
// short that they are always rounded up.
func (b *TokenBucket) Convert(before Algorithm, s State, nanos int64, dither uint32) uint64 {
	from := before.(*TokenBucket)
	if batch := b.exact == 0 && b.round == 0; !batch {
		dither = math.MaxUint32
	}
	return b.Ticks(nanos) + min(share(debt(s, from.Ticks(nanos)), from.burst, b.burst, dither), maxBurstTicks)
}

// Following returns the algorithm itself: it can take over the records of any other fixed window.
func (w *FixedWindow) Following(before Algorithm) (Algorithm, error) { return following(w, before) }

// Convert returns the payload of another fixed window's record. A window that has begun ends when it would have; or, if
// windows become shorter, when one that begins now would end, if that is sooner. An aligned one ends with the clock's.
func (w *FixedWindow) Convert(before Algorithm, s State, nanos int64, dither uint32) uint64 {
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
	return w.pack(end, min(share(taken, from.tokens, w.tokens, dither), 1<<w.bits-1))
}

// Following returns the algorithm itself: it can take over the records of any other sliding window counter.
func (w *SlidingWindow) Following(before Algorithm) (Algorithm, error) { return following(w, before) }

// Convert returns the payload of another counter's record. Windows of the same length keep both counts. Else the
// estimate becomes the count of the present window.
func (w *SlidingWindow) Convert(before Algorithm, s State, nanos int64, dither uint32) uint64 {
	from := before.(*SlidingWindow)
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
	c.previous = min(share(c.previous, from.tokens, w.tokens, dither), most)
	c.current = min(share(c.current, from.tokens, w.tokens, dither), most)
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
func (l *SlidingLog) Convert(_ Algorithm, s State, _ int64, _ uint32) uint64 { return s.Payload() }
