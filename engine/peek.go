package engine

import "math"

// Peek returns the decision that TakeKey(k, n) would return, and takes nothing. Remaining is the number of tokens that
// the key has now, and RetryAfter is the time until it has n tokens.
//
// In a limiter of several rates, a refused Take at a faster rate makes the key's debt come back at that rate. A Peek
// does not do that. So if no Take follows, the wait may be longer than RetryAfter.
//
// Peek does not check whether there is room for a new key: an unknown key counts as a key that has taken nothing.
func (l *Limiter) Peek(k Key, n uint64) Decision {
	l.requireMade()
	nanos := l.clock.exactNanos()
	return l.peek(k, n, nanos, nanos)
}

func (l *Limiter) peek(k Key, n uint64, nanos, clockNanos int64) (d Decision) {
	o, status := l.table.PeekAt(l.table.Find(k.hash), nanos, clockNanos, n, k.quota)
	limit := limitOf(o.Plan, k)
	if limit == math.MaxUint64 {
		return unlimitedDecision
	}
	if n > limit {
		status.RetryAfter = Never
	}
	fillDecision(&d, o.At-nanos, limit, status, status.RetryAfter == 0)
	return d
}
