package engine

// Reset makes the key as if it had taken nothing. A decision that is under way on another
// goroutine is made before or after that. It is shorthand for
// ResetKey(l.Key(key)).
func (l *Limiter) Reset(key string) { l.ResetKey(l.Key(key)) }

// ResetKey is [Limiter.Reset] for a key that is hashed already.
func (l *Limiter) ResetKey(k Key) { l.table.Reset(l.table.Find(k.hash)) }

// Refund gives n tokens back to the key: for a request that was admitted and then cost
// less, or nothing. What was not taken is not given: a key never has more than the limit. It
// is shorthand for RefundKey(l.Key(key), n).
//
// A fixed window gives back to the present window only, a sliding window counter to the
// present window first and then to the one before, and a sliding window log forgets the
// newest requests.
func (l *Limiter) Refund(key string, n uint64) { l.RefundKey(l.Key(key), n) }

// RefundKey is [Limiter.Refund] for a key that is hashed already.
func (l *Limiter) RefundKey(k Key, n uint64) {
	if n > 0 {
		l.table.Refund(l.table.Find(k.hash), l.clock.surely(), n, k.tier)
	}
}
