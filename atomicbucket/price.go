package atomicbucket

import (
	"math"
	"math/bits"
)

// If the limits of a table have several rates (see [TokenBucket.Priced]), each record has two more words, for prices. A
// price is the cost of a token, in ticks, under the limit by which the record was last charged. The payload is a time,
// and only the price converts it to tokens. A record with an even version uses the first word, and a record with an odd
// version the second:
//
//	 63              13   12   11        0
//	+------------------+-----+-----------+
//	| token, less one  | bit | mark      |
//	+------------------+-----+-----------+
//
// bit is the second bit of the version; it distinguishes, for example, versions 2 and 4, which use the same word. A
// price is offered for the next version of a record; mark is computed from the record's state at that moment. See R27
// of shard/doc.go.

const (
	markBits        = 12
	versionBitShift = markBits
	tokenShift      = versionBitShift + 1
	priceSize       = 2
	markMixer       = 0x9e3779b97f4a7c15 // odd, so that no bit of the payload is lost
)

// priceOf returns the price word with the price of a version, offered for a state.
func priceOf(version, token uint64, offeredFor State) uint64 {
	return (token-1)<<tokenShift | version>>1&1<<versionBitShift | mark(offeredFor)
}

// mark returns twelve bits that are computed from all bits of the payload.
func mark(s State) uint64 { return s.Payload() * markMixer >> (64 - markBits) }

// PriceIs reports whether the price word of a state's version holds a given price.
func PriceIs(word uint64, s State, token uint64) bool {
	return word>>versionBitShift == (token-1)<<1|s.Version()>>1&1
}

// Price returns the price of a record in the state s. ok is false only if a process has written words that no call of
// this package writes.
func (r Ring) Price(s State) (token uint64, ok bool) {
	w := r[s.Version()&1].Load()
	return w>>tokenShift + 1, w>>versionBitShift&1 == s.Version()>>1&1
}

// Begin writes the price of a claimed slot. No other goroutine changes that price: the compare-and-swap of a late call
// of an earlier tenure fails, because it expects a word of the earlier tenure.
func (r Ring) Begin(claimed State, token uint64) {
	version := claimed.Version()
	r[version&1].Store(priceOf(version, token, 0))
	r[(version+1)&1].Store(priceOf(version-1, token, 0))
}

// Offer offers a price for the version after that of s. If another price is already offered for s, that price stays.
// Offer returns the price that the next version will have. ok is false if the state word (the parameter word) holds
// another state by now.
func (r Ring) Offer(s State, token uint64, word *Word) (next uint64, ok bool) {
	w, version := &r[(s.Version()+1)&1], s.Version()+1
	offer := priceOf(version, token, s)
	for {
		old := w.Load()
		if word.Load() != s { // after the load of w: so old is not the price of the current version
			return 0, false
		}
		if (old^offer)&(1<<tokenShift-1) == 0 {
			return old>>tokenShift + 1, true
		}
		if w.CompareAndSwap(old, offer) {
			return token, true
		}
	}
}

// HasPrices reports whether records of the algorithm have prices.
func (b *TokenBucket) HasPrices() bool { return b.prices }

// Priced returns a copy of the algorithm whose records have prices, for limits of several rates.
func (b *TokenBucket) Priced() *TokenBucket {
	priced := *b
	priced.prices = true
	return &priced
}

// speed returns the rate of the algorithm's clock: mul / 2^(63+shift) ticks per nanosecond. The highest bit of mul is
// set.
func (b *TokenBucket) speed() (mul uint64, shift int) {
	if b.exact != 0 {
		shift = bits.Len64(b.exact) - 1
		return b.exact << (63 - shift), -shift
	}
	return b.clock.mul, int(b.clock.shift)
}

// shiftedBy returns n * 2^shift, rounded down, or the largest number of 63 bits.
func shiftedBy(n uint64, shift int) uint64 {
	switch {
	case shift <= 0:
		return n >> -shift
	case n > math.MaxInt64>>shift:
		return math.MaxInt64
	}
	return n << shift
}

// Sixteenths returns how many sixteenths of a nanosecond a number of ticks take. The result is rounded down. It is at
// least 1 and at most 2^63-1.
func (b *TokenBucket) Sixteenths(ticks uint64) uint64 {
	const parts = 16
	mul, shift := b.speed()
	return max(shiftedBy(Within(ticks*parts, mul, 1<<63), shift), 1)
}

// Reprice converts a price in ticks of another algorithm to ticks of this one, rounded down.
func (b *TokenBucket) Reprice(from *TokenBucket, token uint64) uint64 {
	oldMul, oldShift := from.speed()
	newMul, newShift := b.speed()
	const spareBits = 10 // more bits make the rounding smaller; a token has up to 2^51 ticks
	token = Within(token<<spareBits, oldMul, newMul)
	return max(min(shiftedBy(token, oldShift-newShift-spareBits), maxBurstTicks), 1)
}

// Repriced returns what a record owes at the tick now when its price changes from price to token. The number of tokens
// that it owes stays the same. These tokens are counted at the instant nanos. If the debt comes back faster after the
// change, they are counted at the latest time for which tokens may have been granted: see [TokenBucket.Convert]. The
// result may be more than a record has room for.
func (b *TokenBucket) Repriced(s State, nanos, latest int64, price, token, now uint64) (owed uint64) {
	owed = b.convertedDebt(b, s, nanos, Change{
		Before: price, After: token, Highest: maxDebt, Latest: latest, Promised: nanos,
	})
	end := b.Ticks(nanos) + owed
	if int64(end-now) < 0 {
		return 0
	}
	return end - now
}

// Owing returns the payload of a record that owes the given ticks at the tick now, limited to what a record has room
// for. A debt of 2^51 ticks always fits. Other calls may have clocks up to ahead ticks behind now, so they see a debt
// larger by ahead. That larger debt may be at most 2^51 + 2^50 ticks.
func (b *TokenBucket) Owing(owed, now, ahead uint64) (payload uint64) {
	return now + min(owed, maxBurstTicks+maxSkew-min(ahead, maxSkew))
}

// Fit converts a number of ticks at one price to ticks at another price, rounded up. ok is false if a record has no
// room for so many ticks.
func Fit(ticks, price, token uint64) (converted uint64, ok bool) {
	converted = proportion(ticks, price, token)
	return converted, converted <= maxBurstTicks
}

// Within converts ticks as [Fit] does, but rounds down. The result is at most the largest uint64.
func Within(ticks, price, token uint64) uint64 {
	hi, lo := bits.Mul64(ticks, token)
	if hi >= price {
		return math.MaxUint64
	}
	share, _ := bits.Div64(hi, lo, price)
	return share
}
