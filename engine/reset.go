package engine

// Reset makes the key one that has taken nothing. A concurrent decision happens either before or after the reset.
func (l *Limiter) Reset(k Key) {
	l.requireMade()
	l.table.Reset(l.table.Find(k.hash))
}
