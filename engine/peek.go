package engine

// Peek returns the decision that Take(key, n) would return, and takes nothing:
// Remaining is what is there now, RetryAfter is when n tokens will be. It is
// shorthand for PeekKey(l.Key(key), n).
//
// Whether a new key would find room is not looked at: a key that the limiter does
// not know has taken nothing.
func (l *Limiter) Peek(key string, n uint64) Decision { return l.PeekKey(l.Key(key), n) }

// PeekKey is [Limiter.Peek] for a key that is hashed already.
func (l *Limiter) PeekKey(k Key, n uint64) Decision { return l.peek(k, n, l.clock.surely()) }

func (l *Limiter) peek(k Key, n uint64, nanos int64) (d Decision) {
	o, status := l.table.Peek(l.table.Find(k.hash), nanos, n, k.tier)
	if n > o.Plan.Quota(k.tier).Tokens {
		status.RetryAfter = Never
	}
	answer(&d, o.Plan, o.At-nanos, k, status, status.RetryAfter == 0)
	return d
}
