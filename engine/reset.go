package engine

// Reset puts the key into the state of a key that has taken nothing. A concurrent decision happens either before or
// after the reset.
func (l *Limiter) Reset(k Key) {
	l.requireMade()
	l.table.Reset(l.table.Find(k.hash))
}
