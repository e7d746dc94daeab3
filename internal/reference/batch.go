package reference

import (
	"math"
	"math/big"
	"time"
)

// A Limit is one key's state under an algorithm. Instants are nanoseconds since 1970. If a call has an earlier instant
// than a previous call, it is a late call. A late call finds no more tokens than a call at the latest instant so far.
type Limit interface {
	// Take takes n tokens if they are available. If they are not, Take changes nothing.
	Take(nanos int64, n uint64) bool
	// Remaining returns how many tokens could be taken.
	Remaining(nanos int64) uint64
	// RetryAfter returns the nanoseconds until n tokens can be taken, if no other tokens are taken meanwhile. It
	// returns math.MaxInt64 if n tokens can never be taken.
	RetryAfter(nanos int64, n uint64) int64
	// ResetAfter returns the nanoseconds until the bucket is full, the window is over, or the oldest request leaves the
	// window.
	ResetAfter(nanos int64) int64
	// Refund gives n tokens back, but never more than were taken.
	Refund(nanos int64, n uint64)
	// Reset sets the state as if nothing had been taken.
	Reset()
	// Idle reports whether a Reset at the instant, or later, would change nothing.
	Idle(nanos int64) bool
}

// A BatchRefill is one key's bucket that gets several tokens at once at every multiple of an interval. It starts full.
type BatchRefill struct {
	refill, burst *big.Int
	interval      int64
	tokens        *big.Int // after the last refill
	last          int64    // number of the last refill; refills are counted since 1970
}

// NewBatchRefill returns a full bucket.
func NewBatchRefill(refill uint64, interval time.Duration, burst uint64) *BatchRefill {
	return &BatchRefill{integer(refill), integer(burst), int64(interval), integer(burst), 0}
}

// tokensAt returns the tokens in the bucket at an instant. The result is below zero if the instant is far enough
// before the last instant.
func (b *BatchRefill) tokensAt(nanos int64) *big.Int {
	tokens := big.NewInt(nanos/b.interval - b.last)
	tokens.Mul(tokens, b.refill)
	return minimum(tokens.Add(tokens, b.tokens), b.burst)
}

func (b *BatchRefill) set(nanos int64, tokens *big.Int) {
	b.tokens, b.last = minimum(tokens, b.burst), nanos/b.interval
}

// Take takes n tokens if the bucket has them.
func (b *BatchRefill) Take(nanos int64, n uint64) bool {
	remaining := b.tokensAt(nanos)
	if remaining.Sub(remaining, integer(n)).Sign() < 0 {
		return false
	}
	b.set(nanos, remaining)
	return true
}

// Remaining returns how many tokens are in the bucket.
func (b *BatchRefill) Remaining(nanos int64) uint64 { return notNegative(b.tokensAt(nanos)) }

// RetryAfter returns how long it takes until a refill brings the bucket to n tokens.
func (b *BatchRefill) RetryAfter(nanos int64, n uint64) int64 {
	if n == 0 {
		return 0
	}
	lack := integer(n)
	if lack.Cmp(b.burst) > 0 {
		return math.MaxInt64
	}
	if lack.Sub(lack, b.tokensAt(nanos)).Sign() <= 0 {
		return 0
	}
	refills := quotientUp(lack, b.refill)
	at := refills.Add(refills, big.NewInt(nanos/b.interval))
	at.Mul(at, big.NewInt(b.interval))
	if !at.IsInt64() {
		return math.MaxInt64
	}
	return at.Int64() - nanos
}

// ResetAfter returns how long it takes until the bucket is full.
func (b *BatchRefill) ResetAfter(nanos int64) int64 { return b.RetryAfter(nanos, b.burst.Uint64()) }

// Refund gives n tokens back, even to a bucket with less than zero tokens.
func (b *BatchRefill) Refund(nanos int64, n uint64) {
	b.set(nanos, new(big.Int).Add(b.tokensAt(nanos), integer(n)))
}

// Reset fills the bucket.
func (b *BatchRefill) Reset() { b.tokens = b.burst }

// Idle reports whether the bucket is full.
func (b *BatchRefill) Idle(nanos int64) bool { return b.tokensAt(nanos).Cmp(b.burst) == 0 }

// Debt returns how many tokens are missing until the bucket is full.
func (b *BatchRefill) Debt(nanos int64) uint64 {
	return notNegative(new(big.Int).Sub(b.burst, b.tokensAt(nanos)))
}

// Change returns the bucket with other numbers. Tokens that were already taken still count.
func (b *BatchRefill) Change(nanos int64, refill uint64, interval time.Duration, burst uint64) *BatchRefill {
	to := NewBatchRefill(refill, interval, burst)
	to.set(nanos, new(big.Int).Sub(to.burst, integer(b.Debt(nanos))))
	return to
}

func integer(n uint64) *big.Int { return new(big.Int).SetUint64(n) }

// quotientUp returns a / b, rounded up. Neither is negative.
func quotientUp(a, b *big.Int) *big.Int {
	quotient, remainder := new(big.Int).QuoRem(a, b, new(big.Int))
	if remainder.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return quotient
}

func minimum(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return new(big.Int).Set(b)
}

func notNegative(n *big.Int) uint64 {
	if n.Sign() < 0 {
		return 0
	}
	return n.Uint64()
}
