package reference

import "math/big"

// A Debtor is a Limit that can be charged more tokens than it has.
type Debtor interface {
	Limit
	// Charge takes n tokens even if they are not available. It takes fewer if otherwise more tokens than the number
	// bound would be taken in all. It returns how many tokens it took.
	Charge(nanos int64, n, bound uint64) (charged uint64)
}

// Charge takes tokens from the bucket, which may then have less than zero tokens.
func (b *BatchRefill) Charge(nanos int64, n, bound uint64) uint64 {
	tokens := b.tokensAt(nanos)
	charged := maxCharge(n, b.Debt(nanos), bound)
	b.set(nanos, new(big.Int).Sub(tokens, integer(charged)))
	return charged
}

// Charge counts in the current window.
func (w *FixedWindow) Charge(nanos int64, n, bound uint64) uint64 {
	end, taken := w.current(nanos)
	charged := maxCharge(n, taken, bound)
	if charged > 0 {
		w.end, w.taken = end, taken+charged
	}
	return charged
}

// Charge counts in the current window.
func (w *SlidingWindow) Charge(nanos int64, n, bound uint64) uint64 {
	charged := maxCharge(n, w.Estimate(nanos), bound)
	if charged > 0 {
		*w = w.stateAt(nanos)
		w.current += charged
	}
	return charged
}

// Charge adds entries at the instant nanos, or at the time of the newest entry if that time is later.
func (l *SlidingLog) Charge(nanos int64, n, bound uint64) uint64 {
	charged := maxCharge(n, l.Count(nanos), bound)
	if charged > 0 {
		l.newest = max(l.newest, nanos)
		l.entries = append(l.entries, entry{l.newest, charged})
	}
	return charged
}

// maxCharge returns how many of n further tokens may be taken. The argument taken is the number of tokens that are
// already taken. The argument bound is the largest number of tokens that may be taken in all.
func maxCharge(n, taken, bound uint64) uint64 { return min(n, bound-min(taken, bound)) }
