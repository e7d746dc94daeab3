package engine

// Reset makes the key as if it had taken nothing. A decision that is under way on another
// goroutine is made before or after that.
func (l *Limiter) Reset(k Key) {
	l.requireMade()
	l.table.Reset(l.table.Find(k.hash))
}
