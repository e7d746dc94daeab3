package engine

// Reset makes the key as if it had taken nothing. A decision that is under way on another
// goroutine is made before or after that. It is shorthand for
// ResetKey(l.Key(key)).
func (l *Limiter) Reset(key string) { l.ResetKey(l.madeKey(key)) }

// ResetKey is [Limiter.Reset] for a key that is hashed already.
func (l *Limiter) ResetKey(k Key) {
	l.requireMade()
	l.table.Reset(l.table.Find(k.hash))
}
