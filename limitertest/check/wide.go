package check

import (
	"math"
	"math/bits"
	"time"
)

// A uint128 is an unsigned integer of 128 bits. Sums are at most the largest uint128, and differences are at least
// zero.
type uint128 struct{ high, low uint64 }

func product(a, b uint64) (w uint128) {
	w.high, w.low = bits.Mul64(a, b)
	return w
}

func (w uint128) plus(v uint128) (sum uint128) {
	var carry uint64
	sum.low, carry = bits.Add64(w.low, v.low, 0)
	if sum.high, carry = bits.Add64(w.high, v.high, carry); carry != 0 {
		return uint128{math.MaxUint64, math.MaxUint64}
	}
	return sum
}

func (w uint128) minus(v uint128) (difference uint128) {
	var borrow uint64
	difference.low, borrow = bits.Sub64(w.low, v.low, 0)
	if difference.high, borrow = bits.Sub64(w.high, v.high, borrow); borrow != 0 {
		return uint128{}
	}
	return difference
}

func (w uint128) isAbove(v uint128) bool { return w.high > v.high || w.high == v.high && w.low > v.low }

func (w uint128) isZero() bool { return w == uint128{} }

// divFloor returns w / d, rounded down. If the result does not fit, it returns the largest uint64.
func (w uint128) divFloor(d uint64) uint64 {
	if w.high >= d {
		return math.MaxUint64
	}
	quotient, _ := bits.Div64(w.high, w.low, d)
	return quotient
}

// divCeil returns w / d, rounded up. If the result does not fit, it returns the largest uint64.
func (w uint128) divCeil(d uint64) uint64 { return w.plus(uint128{low: d - 1}).divFloor(d) }

// duration returns a number of nanoseconds as a Duration, or Never if they do not fit.
func duration(nanos uint64) time.Duration {
	if nanos > math.MaxInt64 {
		return Never
	}
	return time.Duration(nanos)
}

// addTime returns at + d, or Never if the sum does not fit. d must not be negative.
func addTime(at, d time.Duration) time.Duration {
	if at > 0 && d > Never-at {
		return Never
	}
	return at + d
}

// nanosBetween returns the nanoseconds from one instant to a later one.
func nanosBetween(from, to time.Duration) uint64 { return uint64(to) - uint64(from) }
