package atomicbucket

import (
	"math"
	"math/bits"
)

// The record of a bucket whose limits have several rates (see [TokenBucket.Priced]) has two words behind it, its
// prices: what a token cost by the limit under which it was last charged. A payload alone is a time, and how many
// tokens a time is, only the price says. The word of a version is that of the same parity:
//
//	 63              13   12   11        0
//	+------------------+-----+-----------+
//	| token, less one  | bit | mark      |
//	+------------------+-----+-----------+
//
// bit is the second bit of the version: it tells the price of this version from that of the next but one. mark is of
// the state for which the price of the next version was offered. See rule R27 of shard/doc.go.

const (
	markBits  = 12
	turnShift = markBits
	tokenBit  = turnShift + 1
	priceSize = 2
	markMixer = 0x9e3779b97f4a7c15 // odd, so that no bit of the payload is lost
)

// priceOf returns the word that says what a token costs in a version, offered for a state.
func priceOf(version, token uint64, offeredFor State) uint64 {
	return (token-1)<<tokenBit | version>>1&1<<turnShift | mark(offeredFor)
}

// mark returns some bits of a payload, mixed.
func mark(s State) uint64 { return s.Payload() * markMixer >> (64 - markBits) }

// PriceIs reports whether the word of a state's version says that a token costs so much.
func PriceIs(word uint64, s State, token uint64) bool {
	return word>>turnShift == (token-1)<<1|s.Version()>>1&1
}

// Price returns what a token costs by the record of a state. It is not ok if that is not known, which happens only
// where somebody has written words that no call writes.
func (r Ring) Price(s State) (token uint64, ok bool) {
	w := r[s.Version()&1].Load()
	return w>>tokenBit + 1, w>>turnShift&1 == s.Version()>>1&1
}

// Begin makes the price that of a slot that is claimed. No other goroutine changes it: one that still offers a price to
// an earlier tenure expects that one's words.
func (r Ring) Begin(claimed State, token uint64) {
	version := claimed.Version()
	r[version&1].Store(priceOf(version, token, 0))
	r[(version+1)&1].Store(priceOf(version-1, token, 0))
}

// Offer makes a price that of the version after a state's, unless another one is offered for the same state: it returns
// the price that the next version has. It is not ok if the slot holds another state by now. at is where the state is.
func (r Ring) Offer(s State, token uint64, at *Word) (next uint64, ok bool) {
	w, version := &r[(s.Version()+1)&1], s.Version()+1
	mine := priceOf(version, token, s)
	for {
		old := w.Load()
		if at.Load() != s { // after the word: so that is not the price of a record
			return 0, false
		}
		if (old^mine)&(1<<tokenBit-1) == 0 {
			return old>>tokenBit + 1, true
		}
		if w.CompareAndSwap(old, mine) {
			return token, true
		}
	}
}

// HasPrices reports whether records of the algorithm say what a token cost.
func (b *TokenBucket) HasPrices() bool { return b.prices }

// Priced returns the algorithm with records that say what a token cost: for limits of several rates.
func (b *TokenBucket) Priced() *TokenBucket {
	priced := *b
	priced.prices = true
	return &priced
}

// speed returns how fast the algorithm's clock goes: mul / 2^(63+shift) ticks in a nanosecond. mul has its highest bit
// set.
func (b *TokenBucket) speed() (mul uint64, shift int) {
	if b.exact != 0 {
		shift = bits.Len64(b.exact) - 1
		return b.exact << (63 - shift), -shift
	}
	return b.clock.mul, int(b.clock.shift)
}

// shiftedBy returns n * 2^by, rounded down, or the largest number of 63 bits.
func shiftedBy(n uint64, by int) uint64 {
	switch {
	case by <= 0:
		return n >> -by
	case n > math.MaxInt64>>by:
		return math.MaxInt64
	}
	return n << by
}

// Sixteenths returns how many sixteenths of a nanosecond so many ticks take, at most 2^55, rounded down, and 1 at
// least.
func (b *TokenBucket) Sixteenths(ticks uint64) uint64 {
	const parts = 16
	mul, shift := b.speed()
	return max(shiftedBy(Within(ticks*parts, mul, 1<<63), shift), 1)
}

// Reprice returns what a token costs that costs so much in the ticks of another algorithm, rounded down.
func (b *TokenBucket) Reprice(from *TokenBucket, token uint64) uint64 {
	was, wasShift := from.speed()
	is, shift := b.speed()
	const spare = 10 // a token has up to 2^51 ticks: so little is lost if the one with the longer tick has more bits
	token = Within(token<<spare, was, is)
	return max(min(shiftedBy(token, wasShift-shift-spare), maxBurstTicks), 1)
}

// Repriced returns what a record owes at the tick now that owes as many tokens at one price as at another: at an
// instant, and at the latest one at which some of them may have been granted. See [TokenBucket.Convert]. It may be more
// than a record has room for.
func (b *TokenBucket) Repriced(s State, nanos, latest int64, price, token, now uint64) (owed uint64) {
	owed = b.converted(b, s, nanos, Change{
		Before: price, After: token, Highest: maxDebt, Latest: latest, Promised: nanos,
	})
	end := b.Ticks(nanos) + owed
	if int64(end-now) < 0 {
		return 0
	}
	return end - now
}

// Owing returns the payload of a record that owes so many ticks at the tick now, as far as it has room for a call that
// is so many ticks ahead of others: 2^51 for this call, and for the others 2^50 more.
func (b *TokenBucket) Owing(owed, now, ahead uint64) (payload uint64) {
	return now + min(owed, maxBurstTicks+maxSkew-min(ahead, maxSkew))
}

// Fit returns ticks at a price, at another price, rounded up. It is not ok if a record has no room for them.
func Fit(ticks, price, token uint64) (at uint64, ok bool) {
	at = proportion(ticks, price, token)
	return at, at <= maxBurstTicks
}

// Within returns ticks at a price, at another price, rounded down, or the largest number.
func Within(ticks, price, token uint64) uint64 {
	hi, lo := bits.Mul64(ticks, token)
	if hi >= price {
		return math.MaxUint64
	}
	share, _ := bits.Div64(hi, lo, price)
	return share
}
