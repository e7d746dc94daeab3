package engine

import (
	"math"
	"time"
)

// Peek returns the decision that Take(key, n) would return, and takes nothing:
// Remaining is what is there now, RetryAfter is when n tokens will be. It is
// shorthand for PeekKey(l.Key(key), n).
//
// Whether a new key would find room is not looked at: a key that the limiter does
// not know has taken nothing.
func (l *Limiter) Peek(key string, n uint64) Decision { return l.PeekKey(l.madeKey(key), n) }

// PeekKey is [Limiter.Peek] for a key that is hashed already.
func (l *Limiter) PeekKey(k Key, n uint64) Decision {
	l.requireMade()
	nanos := l.clock.surely()
	return l.peek(k, n, nanos, nanos)
}

// PeekAt is PeekKey at a time that the caller supplies: see [Limiter.TakeAt]. Nothing follows that time, however far
// ahead it is; one that is further ahead than [MaxLead] is not Allowed.
func (l *Limiter) PeekAt(k Key, n uint64, now time.Time) Decision {
	l.requireMade()
	nanos, clock, early := l.instant(now)
	d := l.peek(k, n, nanos-int64(early), clock)
	if early > 0 {
		d.Allowed, d.RetryAfter = false, max(d.RetryAfter, early)
	}
	return d
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
