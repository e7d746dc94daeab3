package reference

import (
	"math/big"
	"time"
)

// A Table is a limiter in its simplest form: a map with an exact bucket for every key from which tokens were ever
// taken. The table forgets a key only if Forget is called, and has room for all keys.
type Table[K comparable] struct {
	full    *TokenBucket
	buckets map[K]*TokenBucket
}

// NewTable returns a table of full buckets with the given rate and room for burst tokens.
func NewTable[K comparable](tokens float64, period time.Duration, burst uint64) *Table[K] {
	return &Table[K]{NewTokenBucket(tokens, period, burst), map[K]*TokenBucket{}}
}

// bucket returns the key's bucket. If the key has none, it returns a full bucket.
func (t *Table[K]) bucket(key K) *TokenBucket {
	if b := t.buckets[key]; b != nil {
		return b
	}
	return t.full
}

// Tokens returns the tokens in the key's bucket at an instant. For an instant before the last take, the tokens that
// come back between the instant and the take are subtracted from the tokens at the take. So a late call has no
// advantage. The result may be below zero.
func (t *Table[K]) Tokens(key K, nanos int64) *big.Rat { return t.bucket(key).Tokens(nanos) }

// Debt returns how many tokens are missing in the key's bucket at an instant.
func (t *Table[K]) Debt(key K, nanos int64) *big.Rat {
	b := t.bucket(key)
	return new(big.Rat).Sub(b.burst, b.Tokens(nanos))
}

// Take takes n tokens from the key's bucket at an instant, if the bucket has them.
func (t *Table[K]) Take(key K, nanos int64, n uint64) bool {
	b := *t.bucket(key)
	if !b.Take(nanos, n) {
		return false
	}
	t.buckets[key] = &b
	return true
}

// Forget makes the key's bucket full.
func (t *Table[K]) Forget(key K) { delete(t.buckets, key) }

// Known reports whether anything was taken from the key since it was last forgotten.
func (t *Table[K]) Known(key K) bool { return t.buckets[key] != nil }

// FullAt returns the instant from which on the key's bucket is full. For an unknown key, it returns the origin of time
// or an earlier instant.
func (t *Table[K]) FullAt(key K) *big.Rat {
	b := t.bucket(key)
	debt := new(big.Rat).Sub(b.burst, b.tokens)
	debt.Quo(debt, b.perNano)
	return debt.Add(debt, new(big.Rat).SetInt64(b.last))
}

// Indebted returns the known keys whose buckets are not full at an instant.
func (t *Table[K]) Indebted(nanos int64) []K {
	var keys []K
	for key := range t.buckets {
		if t.Debt(key, nanos).Sign() > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// Rate returns how many tokens come back in a nanosecond.
func (t *Table[K]) Rate() *big.Rat { return t.full.Rate() }
