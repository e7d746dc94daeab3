package reference

import (
	"math/big"
)

// Limits is what a change of windows knows about the limits of a key, which may have taken under any of them.
type Limits struct {
	Latest int64  // nothing was taken at a later time
	Lowest uint64 // limit after the change; 0: not known
	fell   *big.Rat
}

// Add adds a limit, and the highest one that stood in its place before.
func (l *Limits) Add(limit, highest uint64) {
	if l.fell == nil || limit < l.Lowest {
		l.Lowest = limit
	}
	if fell := new(big.Rat).SetFrac(integer(max(highest, limit)), integer(limit)); l.fell == nil || fell.Cmp(l.fell) > 0 {
		l.fell = fell
	}
}

// lasts returns in how many nanoseconds, rounded up, the tokens that were taken come back under the limit by which they
// were taken: at least a window, and no more than the lowest limit needs, or the limit that fell most.
func (l Limits) lasts(taken uint64, window int64) *big.Int {
	times := new(big.Rat).SetFrac(integer(taken), integer(l.Lowest))
	if l.fell.Cmp(times) < 0 {
		times = l.fell
	}
	if one := big.NewRat(1, 1); times.Cmp(one) < 0 {
		times = one
	}
	all := new(big.Int).Mul(times.Num(), big.NewInt(window))
	all.Add(all, new(big.Int).Sub(times.Denom(), big.NewInt(1)))
	return all.Quo(all, times.Denom())
}

// after returns the instant after a time, or the end of time.
func after(nanos int64, more *big.Int) int64 {
	if at := more.Add(more, big.NewInt(nanos)); at.IsInt64() {
		return at.Int64()
	}
	return 1<<63 - 1
}
