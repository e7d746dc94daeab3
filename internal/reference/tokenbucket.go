// Package reference has the algorithms in their simplest form: exact, slow and obviously correct. They use rational
// numbers and share no code with the engine. Tests compare the engine with them.
package reference

import (
	"fmt"
	"math/big"
	"strconv"
	"time"
)

// A TokenBucket is one key's bucket. It starts full.
type TokenBucket struct {
	perNano *big.Rat // tokens that come back in a nanosecond
	burst   *big.Rat
	tokens  *big.Rat // the tokens at the instant last
	last    int64
}

// NewTokenBucket returns a full bucket with the given rate and room for burst tokens. The argument tokens stands for
// exactly the decimal number that Go prints for it.
func NewTokenBucket(tokens float64, period time.Duration, burst uint64) *TokenBucket {
	rate, ok := new(big.Rat).SetString(strconv.FormatFloat(tokens, 'e', -1, 64))
	if !ok {
		panic(fmt.Sprintf("reference: %v tokens", tokens))
	}
	full := new(big.Rat).SetInt(new(big.Int).SetUint64(burst))
	return &TokenBucket{
		perNano: rate.Quo(rate, new(big.Rat).SetInt64(int64(period))),
		burst:   full,
		tokens:  full,
	}
}

// Tokens returns the tokens in the bucket at an instant. The instant must not be earlier than the previous instant.
func (b *TokenBucket) Tokens(nanos int64) *big.Rat {
	refilled := new(big.Rat).SetInt64(nanos - b.last)
	now := refilled.Mul(refilled, b.perNano)
	now.Add(now, b.tokens)
	if now.Cmp(b.burst) > 0 {
		now.Set(b.burst)
	}
	return now
}

// Take takes n tokens at an instant if the bucket has them. If it does not, Take changes nothing.
func (b *TokenBucket) Take(nanos int64, n uint64) bool {
	now := b.Tokens(nanos)
	cost := new(big.Rat).SetInt(new(big.Int).SetUint64(n))
	if now.Cmp(cost) < 0 {
		return false
	}
	b.tokens, b.last = now.Sub(now, cost), nanos
	return true
}

// Rate returns how many tokens come back in a nanosecond.
func (b *TokenBucket) Rate() *big.Rat { return new(big.Rat).Set(b.perNano) }
