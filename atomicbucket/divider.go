package atomicbucket

import (
	"math"
	"math/big"
	"math/bits"
	"time"
)

// A divider converts an instant to a count of fixed intervals without a division: the count is floor(nanos * mul /
// 2^(63+shift)), which takes a multiplication and a shift. The highest bit of mul is set.
type divider struct {
	mul   uint64
	inv   uint64 // floor(2^127 / mul), or the largest number
	shift uint8
}

// dividerOf returns the divider with a mul whose highest bit is set.
func dividerOf(mul uint64, shift int) divider {
	inv := uint64(math.MaxUint64)
	if mul > 1<<63 {
		inv, _ = bits.Div64(1<<63, 0, mul)
	}
	return divider{mul, inv, uint8(shift)}
}

// newDivider returns the divider that counts whole periods of d nanoseconds, d >= 1. Its mul is 2^(63+shift) / d,
// rounded up. Then the quotient is exact for every instant: see Granlund and Montgomery, Division by Invariant Integers
// using Multiplication (1994), theorem 4.2, with N = 63.
func newDivider(d uint64) divider {
	shift := bits.Len64(d - 1) // the smallest shift with d <= 2^shift
	hi, lo := uint64(0), uint64(1)<<63
	if shift > 0 {
		hi, lo = 1<<(shift-1), 0
	}
	mul, rem := bits.Div64(hi, lo, d)
	return dividerOf(mul+min(rem, 1), shift)
}

// newClock returns the divider that counts perNano ticks in a nanosecond, perNano < 2. Its mul is rounded down, so the
// clock is slow by less than one part in 2^63: a tick may begin late, but never early.
func newClock(perNano *big.Rat) divider {
	shift := 0
	for one := big.NewRat(1, 1); perNano.Cmp(one) < 0; shift++ {
		perNano = shifted(perNano, 1)
	}
	fixed := shifted(perNano, 63)
	return dividerOf(new(big.Int).Quo(fixed.Num(), fixed.Denom()).Uint64(), shift)
}

// quo returns the count at an instant that is not negative.
func (d divider) quo(nanos int64) uint64 {
	hi, _ := bits.Mul64(uint64(nanos)<<1, d.mul)
	return hi >> (d.shift & 63)
}

// first returns the first instant of a count: count * 2^(63+shift) / mul, rounded up. An instant 2^63 ns or more after
// the origin is out of range; instead of it, first returns any instant out of range. A count that is too large for the
// shift below is always out of range, because 2^63 ns is less than 2^(64-shift) counts.
//
// first multiplies by inv instead of dividing. The product is less than the quotient for two reasons: inv is rounded
// down, and bits are cut off. Each makes it less by less than 1, so at most two corrections by 1 follow.
func (d divider) first(count uint64) uint64 {
	scaled := count << (d.shift & 63)
	if scaled>>(d.shift&63) != count {
		return math.MaxUint64
	}
	at, _ := bits.Mul64(scaled, d.inv)
	for range 2 {
		if at <= math.MaxInt64 && d.quo(int64(at)) < count {
			at++
		}
	}
	return at
}

// wait returns the time from an instant until a number of counts have passed. If that time ends 2^63 ns or more after
// the origin, wait returns the longest Duration.
func (d divider) wait(nanos int64, counts uint64) time.Duration {
	count, carry := bits.Add64(d.quo(nanos), counts, 0)
	if carry != 0 {
		return math.MaxInt64
	}
	at := d.first(count)
	if at > math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(max(int64(at)-nanos, 0))
}

func (d divider) rate() *big.Rat {
	return shifted(new(big.Rat).SetInt(new(big.Int).SetUint64(d.mul)), -63-int(d.shift))
}
