package reference

import (
	"math/big"
)

// Limits has what is known about a key when its window changes.
type Limits struct {
	Latest int64  // nothing was taken at a later time
	Lowest uint64 // the lowest limit that the key may have after the change; 0 means not known

	Longest int64 // the longest window that the key has ever had
}

// duration returns the nanoseconds in which the taken tokens come back under the lowest limit, rounded up. The smallest
// result is window, and the largest is maximum.
func (l Limits) duration(taken uint64, window int64, maximum *big.Int) *big.Int {
	longest := new(big.Rat).SetFrac(maximum, big.NewInt(window))
	factor := longest
	if l.Lowest > 0 {
		factor = new(big.Rat).SetFrac(integer(taken), integer(l.Lowest))
	}
	if factor.Cmp(longest) > 0 {
		factor = longest
	}
	if one := big.NewRat(1, 1); factor.Cmp(one) < 0 {
		factor = one
	}
	product := new(big.Int).Mul(factor.Num(), big.NewInt(window))
	product.Add(product, new(big.Int).Sub(factor.Denom(), big.NewInt(1)))
	return product.Quo(product, factor.Denom())
}

// addClamped returns nanos + duration, or the latest instant if the sum overflows.
func addClamped(nanos int64, duration *big.Int) int64 {
	if at := duration.Add(duration, big.NewInt(nanos)); at.IsInt64() {
		return at.Int64()
	}
	return 1<<63 - 1
}
