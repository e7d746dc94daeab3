package atomicbucket

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"time"
)

// SameUnits reports whether quotas in units of one algorithm mean the same in units of another that follows it, and
// fit into its records. Of a bucket whose records do not say what a token cost, the token must cost the same.
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
		return ok && a.longest == b.longest
	case *Entries:
		b, ok := before.(*Entries)
		return ok && a.longest == b.longest
	}
	return false
}

// sameTicks reports whether ticks of another bucket are as long.
func (b *TokenBucket) sameTicks(other *TokenBucket) bool {
	return b.round == other.round && b.step == other.step && b.clock == other.clock // an exact one has no step
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
		return a.room()
	case *Entries:
		return MaxInFlight
	}
	panic(fmt.Sprintf("atomicbucket: no case for a %T", algorithm))
}

// NewTicks returns the algorithm of buckets whose rates are not known, with the finest tick by which a bucket that
// takes longest to fill fits into a record: a sixteenth of a nanosecond for 39 hours, one for 26 days, and a power of
// two of nanoseconds for more. There the clock goes in steps, as that of batches does, and nothing is rounded against
// it: an idle bucket is charged from the last step and not from the next, so what a key has left is a whole number of
// tokens. Its own quota is a token a second, and means nothing but that debts are told in
// seconds. longest is 1ns to [MaxWindow]; anything else is an error that names the value and the range.
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

// slowest is by which part a rate may become slower than asked for because a token is rounded up to whole ticks.
const slowest = 1000

// Grant returns what a rate and a burst grant in ticks of the algorithm: the quota of a call. A token is rounded up to
// whole ticks. A rate that would become slower by more than a thousandth is an error, and so is a burst that would not
// fit into a record.
//
// It does not allocate where tokens has at most 15 digits and the rate is not so fast that the rounding matters.
func (b *TokenBucket) Grant(tokens float64, period time.Duration, burst uint64) (Quota, error) {
	token, ok := b.quickTicks(tokens, period)
	if !ok || burst < 1 || burst > MaxBurst {
		return b.share(tokens, period, burst, slowest, "a thousandth")
	}
	if hi, all := bits.Mul64(token, burst); hi > 0 || all > maxBurstTicks {
		return Quota{}, b.tooLong(tokens, period, burst, token)
	}
	return Quota{token, burst}, nil
}

// quickTicks returns how many ticks a token takes, rounded up. It is not ok for what needs more than 128 bits, for a
// rate that is out of range, and for one so fast that the rounding may be too much.
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
	if hi > 0 || lo < digits { // more than a token a nanosecond
		return 0, false
	}
	mul, cut := b.exact, uint(0)
	if b.exact == 0 {
		mul, cut = b.clock.mul, 63+uint(b.clock.shift)
		if b.step != 1 {
			return 0, false
		}
	}
	hi, lo = bits.Mul64(lo, mul)
	whole, rest := hi/digits, hi%digits
	part, rest := bits.Div64(rest, lo, digits)
	inexact := rest > 0
	if cut >= 64 {
		inexact = inexact || part > 0 || whole&(1<<(cut-64)-1) > 0
		token = whole >> (cut - 64)
	} else {
		if whole>>cut > 0 {
			return 0, false
		}
		inexact = inexact || part&(1<<cut-1) > 0
		token = part>>cut | whole<<(64-cut)
	}
	if inexact {
		token++
	}
	// One part of a tick in more than a thousand is not too much, and one token in 292 years not too slow.
	return token, token > 0 && token <= maxBurstTicks && (!inexact || token > slowest+1)
}

// tens are the powers of ten that fit.
var tens = func() (powers [20]uint64) {
	powers[0] = 1
	for i := range powers[1:] {
		powers[i+1] = 10 * powers[i]
	}
	return powers
}()

// decimal returns the decimal number that a float prints as: digits / 10^shift.
func decimal(f float64) (digits uint64, shift int, ok bool) {
	if f < 1<<53 && f == math.Trunc(f) {
		return uint64(f), 0, true
	}
	var room [32]byte
	text := strconv.AppendFloat(room[:0], f, 'f', -1, 64)
	point := false
	for _, c := range text {
		if c == '.' {
			point = true
			continue
		}
		if digits > math.MaxUint64/10-1 || shift == len(tens)-1 {
			return 0, 0, false
		}
		digits = 10*digits + uint64(c-'0')
		if point {
			shift++
		}
	}
	return digits, shift, true
}
