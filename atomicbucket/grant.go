package atomicbucket

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"time"
)

// SameUnits compares an algorithm (before) with the algorithm that replaces it (after). It reports whether quotas in
// units of the first mean the same under the second, and fit into its records. The second must be able to follow the
// first ([Algorithm.Following]). If records of a token bucket have no prices, the price of a token must also be the
// same.
func SameUnits(before, after Algorithm) bool {
	switch a := after.(type) {
	case *TokenBucket:
		b, ok := before.(*TokenBucket)
		return ok && a.sameTicks(b) && (a.prices || a.token == b.token)
	case *FixedWindow:
		b, ok := before.(*FixedWindow)
		return ok && a.bits >= b.bits
	case *SlidingWindow:
		b, ok := before.(*SlidingWindow)
		return ok && a.bits >= b.bits
	case *SlidingLog:
		b, ok := before.(*SlidingLog)
		return ok && a.size >= b.size
	case *Concurrency:
		b, ok := before.(*Concurrency)
		return ok && a.period == b.period
	case *Entries:
		b, ok := before.(*Entries)
		return ok && a.lifetime == b.lifetime
	}
	return false
}

func (b *TokenBucket) sameTicks(other *TokenBucket) bool {
	return b.round == other.round && b.step == other.step && b.clock == other.clock // an exact algorithm has no step
}

// Most returns the highest limit that records of an algorithm have room for, in units of a Demand's cost.
func Most(algorithm Algorithm) uint64 {
	switch a := algorithm.(type) {
	case *TokenBucket:
		return maxBurstTicks
	case *FixedWindow:
		return 1<<a.bits - 1
	case *SlidingWindow:
		return 1<<a.bits - 1
	case *SlidingLog:
		return a.size
	case *Concurrency:
		return a.maxCount()
	case *Entries:
		return MaxInFlight
	}
	panic(fmt.Sprintf("atomicbucket: no case for a %T", algorithm))
}

// NewTicks returns the algorithm of buckets whose rates come with the calls. The parameter longest is the longest time
// that such a bucket may take to fill: 1ns to [MaxWindow]. For other values, the error names the value and the range.
// The algorithm's own quota is one token per second; it only serves to express debts in seconds.
//
// The tick is the shortest one with which longest fits into a record:
//
//   - up to 39 hours: a sixteenth of a nanosecond;
//   - up to 26 days: a larger part of a nanosecond, or a whole one;
//   - otherwise: a power of two of nanoseconds.
//
// In the last case the clock advances in steps. Tokens that are taken from an idle bucket come back from the last step
// of the clock on, not from the next one. So the number of tokens that a key has left is a whole number.
func NewTicks(longest time.Duration) (TokenBucket, error) {
	if longest < 1 || longest > MaxWindow {
		return TokenBucket{}, fmt.Errorf("buckets that fill within %v: want 1ns to %v", longest, MaxWindow)
	}
	if exact := min(maxBurstTicks/uint64(longest), maxExact); exact > 0 {
		second := exact * uint64(time.Second)
		return TokenBucket{
			exact: exact, burst: second, token: second, clock: newDivider(exact), tokens: newDivider(second), prices: true,
		}, nil
	}
	period := uint64(1)
	for ceilDiv(uint64(longest), period) > maxBurstTicks {
		period *= 2
	}
	second := ceilDiv(uint64(time.Second), period)
	return TokenBucket{
		burst: second, token: second, step: 1, clock: newDivider(period), tokens: newDivider(second), prices: true,
	}, nil
}

// slowdownParts bounds by how much a rate may become slower when a token is rounded up to whole ticks: 1/slowdownParts.
const slowdownParts = 1000

// Grant returns the quota of a call with a rate and a burst, in ticks of the algorithm. A token is rounded up to whole
// ticks. If this makes the rate slower by more than a thousandth, or if the burst does not fit into a record, Grant
// returns an error. Grant does not allocate if the number of tokens has at most 15 digits, unless the rate is so fast
// that the rounding matters.
func (b *TokenBucket) Grant(tokens float64, period time.Duration, burst uint64) (Quota, error) {
	token, ok := b.quickTicks(tokens, period)
	if !ok || burst < 1 || burst > MaxBurst {
		return b.share(tokens, period, burst, slowdownParts, "a thousandth")
	}
	if hi, ticks := bits.Mul64(token, burst); hi > 0 || ticks > maxBurstTicks {
		return Quota{}, b.tooLong(tokens, period, burst, token)
	}
	return Quota{token, burst}, nil
}

// quickTicks returns how many ticks a token takes, rounded up. ok is false if the calculation needs more than 128 bits,
// if the rate is out of range, or if the rounding may make the rate slower by more than is allowed.
func (b *TokenBucket) quickTicks(tokens float64, period time.Duration) (token uint64, ok bool) {
	if !(tokens > 0) || period <= 0 {
		return 0, false
	}
	digits, shift, ok := decimal(tokens)
	if !ok || digits == 0 {
		return 0, false
	}
	// The ticks of a token are mul * period * 10^shift / digits / 2^cut.
	hi, lo := bits.Mul64(uint64(period), tens[shift])
	if hi > 0 || lo < digits { // more than one token per nanosecond
		return 0, false
	}
	mul, fracBits := b.exact, uint(0)
	if b.exact == 0 {
		mul, fracBits = b.clock.mul, 63+uint(b.clock.shift)
		if b.step != 1 {
			return 0, false
		}
	}
	hi, lo = bits.Mul64(lo, mul)
	quoHi, rem := hi/digits, hi%digits
	quoLo, rem := bits.Div64(rem, lo, digits)
	inexact := rem > 0
	if fracBits >= 64 {
		inexact = inexact || quoLo > 0 || quoHi&(1<<(fracBits-64)-1) > 0
		token = quoHi >> (fracBits - 64)
	} else {
		if quoHi>>fracBits > 0 {
			return 0, false
		}
		inexact = inexact || quoLo&(1<<fracBits-1) > 0
		token = quoLo>>fracBits | quoHi<<(64-fracBits)
	}
	if inexact {
		token++
	}
	// A rounding by less than a tick is small enough if a token has more than a thousand ticks. No rate is too slow,
	// because one token in 292 years is allowed.
	return token, token > 0 && token <= maxBurstTicks && (!inexact || token > slowdownParts+1)
}

// tens are the powers of ten that fit into 64 bits.
var tens = func() (powers [20]uint64) {
	powers[0] = 1
	for i := range powers[1:] {
		powers[i+1] = 10 * powers[i]
	}
	return powers
}()

// decimal returns the decimal number that is printed for the float f, as digits / 10^shift.
func decimal(f float64) (digits uint64, shift int, ok bool) {
	if f < 1<<53 && f == math.Trunc(f) {
		return uint64(f), 0, true
	}
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], f, 'f', -1, 64)
	inFraction := false
	for _, c := range text {
		if c == '.' {
			inFraction = true
			continue
		}
		if digits > math.MaxUint64/10-1 || shift == len(tens)-1 {
			return 0, 0, false
		}
		digits = 10*digits + uint64(c-'0')
		if inFraction {
			shift++
		}
	}
	return digits, shift, true
}
