package engine

// Reset restores the key to the state of one that has taken nothing. A concurrent decision happens before or after the
// reset.
func (l *Limiter) Reset(k Key) {
	l.requireMade()
	l.table.Reset(l.table.Find(k.hash))
}
