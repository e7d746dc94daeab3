package reference

import "math/big"

// A Debt is one key's record in a table whose limits come with the calls: the time at which its bucket is full. A
// token of a quota costs time, and a quota with room for so many tokens admits what keeps the bucket full in no more
// time than they all take. Times are rational nanoseconds.
type Debt struct{ full *big.Rat }

// NewDebt returns the record of a key that owes nothing.
func NewDebt() *Debt { return &Debt{new(big.Rat)} }

// Owed returns the time until the bucket is full.
func (d *Debt) Owed(nanos int64) *big.Rat {
	owed := new(big.Rat).Sub(d.full, new(big.Rat).SetInt64(nanos))
	if owed.Sign() < 0 {
		return new(big.Rat)
	}
	return owed
}

// Take takes n tokens, each of which takes a time to come back, if no more than limit of them are then taken.
func (d *Debt) Take(nanos int64, token *big.Rat, n, limit uint64) bool {
	owed := d.Owed(nanos)
	owed.Add(owed, times(token, n))
	if owed.Cmp(times(token, limit)) > 0 {
		return false
	}
	d.full = owed.Add(owed, new(big.Rat).SetInt64(nanos))
	return true
}

// Remaining returns how many tokens could be taken.
func (d *Debt) Remaining(nanos int64, token *big.Rat, limit uint64) uint64 {
	left := times(token, limit)
	if left.Sub(left, d.Owed(nanos)).Sign() <= 0 {
		return 0
	}
	left.Quo(left, token)
	return new(big.Int).Quo(left.Num(), left.Denom()).Uint64()
}

// RetryAfter returns the nanoseconds until n tokens can be taken, n being no more than limit.
func (d *Debt) RetryAfter(nanos int64, token *big.Rat, n, limit uint64) int64 {
	wait := times(token, n)
	wait.Sub(wait.Add(wait, d.Owed(nanos)), times(token, limit))
	if wait.Sign() <= 0 {
		return 0
	}
	return quotientUp(wait.Num(), wait.Denom()).Int64()
}

// Reset makes it owe nothing.
func (d *Debt) Reset() { d.full = new(big.Rat) }

func times(token *big.Rat, n uint64) *big.Rat {
	return new(big.Rat).Mul(token, new(big.Rat).SetInt(integer(n)))
}
