package check

import (
	"math"
	"math/bits"
	"time"
)

// A wide is an unsigned integer of 128 bits. Sums are at most the largest wide, and differences are at least zero.
type wide struct{ high, low uint64 }

func product(a, b uint64) (w wide) {
	w.high, w.low = bits.Mul64(a, b)
	return w
}

func (w wide) plus(v wide) (sum wide) {
	var carry uint64
	sum.low, carry = bits.Add64(w.low, v.low, 0)
	if sum.high, carry = bits.Add64(w.high, v.high, carry); carry != 0 {
		return wide{math.MaxUint64, math.MaxUint64}
	}
	return sum
}

func (w wide) minus(v wide) (difference wide) {
	var borrow uint64
	difference.low, borrow = bits.Sub64(w.low, v.low, 0)
	if difference.high, borrow = bits.Sub64(w.high, v.high, borrow); borrow != 0 {
		return wide{}
	}
	return difference
}

func (w wide) isAbove(v wide) bool { return w.high > v.high || w.high == v.high && w.low > v.low }

func (w wide) isZero() bool { return w == wide{} }

// divFloor returns w / d, rounded down. If the result does not fit, it returns the largest uint64.
func (w wide) divFloor(d uint64) uint64 {
	if w.high >= d {
		return math.MaxUint64
	}
	quotient, _ := bits.Div64(w.high, w.low, d)
	return quotient
}

// divCeil returns w / d, rounded up. If the result does not fit, it returns the largest uint64.
func (w wide) divCeil(d uint64) uint64 { return w.plus(wide{low: d - 1}).divFloor(d) }

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
