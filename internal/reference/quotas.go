package reference

import "math/big"

// A Debt is one key's record in a table whose limits come with the calls. It has the time at which the key's bucket is
// full. It also has the price of a token at the last charge: the time in which a token comes back. A quota admits a
// take if the record then owes at most as many tokens as the limit of the quota. Times are rational numbers of
// nanoseconds, and multiples of a tick.
type Debt struct{ full, token, tick *big.Rat }

// NewDebt returns the record of a key that owes nothing.
func NewDebt(tick *big.Rat) *Debt { return &Debt{new(big.Rat), tick, tick} }

// Owed returns the time until the bucket is full.
func (d *Debt) Owed(nanos int64) *big.Rat {
	owed := new(big.Rat).Sub(d.full, new(big.Rat).SetInt64(nanos))
	if owed.Sign() < 0 {
		return new(big.Rat)
	}
	return owed
}

// owedUnderPrice returns how long the owed tokens take to come back if a token has another price. The result is rounded
// up to ticks.
func (d *Debt) owedUnderPrice(nanos int64, token *big.Rat) *big.Rat {
	ticks := new(big.Rat).Quo(d.Owed(nanos), d.tick)
	ticks.Mul(ticks, new(big.Rat).Quo(token, d.token))
	return ticks.Mul(d.tick, new(big.Rat).SetInt(quotientUp(ticks.Num(), ticks.Denom())))
}

// Take takes n tokens at a price. It takes them only if the record owes at most limit tokens afterwards.
func (d *Debt) Take(nanos int64, token *big.Rat, n, limit uint64) bool {
	owed := d.owedUnderPrice(nanos, token)
	owed.Add(owed, times(token, n))
	if owed.Cmp(times(token, limit)) > 0 {
		if n > 0 && token.Cmp(d.token) < 0 { // from now on the debt comes back faster
			owed.Sub(owed, times(token, n))
			d.full, d.token = owed.Add(owed, new(big.Rat).SetInt64(nanos)), token
		}
		return false
	}
	if n > 0 {
		d.full, d.token = owed.Add(owed, new(big.Rat).SetInt64(nanos)), token
	}
	return true
}

// Remaining returns how many tokens could be taken.
func (d *Debt) Remaining(nanos int64, token *big.Rat, limit uint64) uint64 {
	remaining := times(token, limit)
	if remaining.Sub(remaining, d.owedUnderPrice(nanos, token)).Sign() <= 0 {
		return 0
	}
	remaining.Quo(remaining, token)
	return new(big.Int).Quo(remaining.Num(), remaining.Denom()).Uint64()
}

// RetryAfter returns the nanoseconds until n tokens, n <= limit, can be taken. The debt comes back at the price of the
// last charge.
func (d *Debt) RetryAfter(nanos int64, _ *big.Rat, n, limit uint64) int64 {
	wait := d.Owed(nanos)
	if wait.Sub(wait, times(d.token, limit-n)).Sign() <= 0 {
		return 0
	}
	return quotientUp(wait.Num(), wait.Denom()).Int64()
}

// Reset removes the debt.
func (d *Debt) Reset() { d.full = new(big.Rat) }

func times(token *big.Rat, n uint64) *big.Rat {
	return new(big.Rat).Mul(token, new(big.Rat).SetInt(integer(n)))
}
