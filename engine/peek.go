package engine

import "math"

// Peek returns the decision that TakeKey(k, n) would return, and takes nothing:
// Remaining is what is there now, RetryAfter is when n tokens will be.
//
// In a limiter of several rates a Take that is refused makes what the key owes come back at its rate, if that is
// faster than the rate before. A Peek does not, so without a Take the wait may be longer than it says.
//
// Whether a new key would find room is not looked at: a key that the limiter does
// not know has taken nothing.
func (l *Limiter) Peek(k Key, n uint64) Decision {
	l.requireMade()
	nanos := l.clock.surely()
	return l.peek(k, n, nanos, nanos)
}

func (l *Limiter) peek(k Key, n uint64, nanos, clock int64) (d Decision) {
	o, status := l.table.PeekAt(l.table.Find(k.hash), nanos, clock, n, k.quota)
	limit := limitOf(o.Plan, k)
	if limit == math.MaxUint64 {
		return everything
	}
	if n > limit {
		status.RetryAfter = Never
	}
	answer(&d, o.At-nanos, limit, status, status.RetryAfter == 0)
	return d
}
