package reference

import (
	"math/big"
)

// Limits has what is known about a key when its window changes.
type Limits struct {
	Latest int64  // nothing was taken at a later time
	Lowest uint64 // the lowest limit that the key may have after the change; 0: not known

	Longest int64 // the longest window that the key has ever had
}

// The method lasts returns the nanoseconds in which the taken tokens come back under the lowest limit, rounded up. The
// argument window is the least result, and the argument most is the largest.
func (l Limits) lasts(taken uint64, window int64, most *big.Int) *big.Int {
	longest := new(big.Rat).SetFrac(most, big.NewInt(window))
	times := longest
	if l.Lowest > 0 {
		times = new(big.Rat).SetFrac(integer(taken), integer(l.Lowest))
	}
	if times.Cmp(longest) > 0 {
		times = longest
	}
	if one := big.NewRat(1, 1); times.Cmp(one) < 0 {
		times = one
	}
	all := new(big.Int).Mul(times.Num(), big.NewInt(window))
	all.Add(all, new(big.Int).Sub(times.Denom(), big.NewInt(1)))
	return all.Quo(all, times.Denom())
}

// The function after returns nanos + more, or the latest instant if the sum overflows.
func after(nanos int64, more *big.Int) int64 {
	if at := more.Add(more, big.NewInt(nanos)); at.IsInt64() {
		return at.Int64()
	}
	return 1<<63 - 1
}
