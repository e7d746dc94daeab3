package engine

import "github.com/weir-go/weir/shard"

// Peek returns the decision that Take(key, n) would return, and takes nothing:
// Remaining is what is there now, RetryAfter is when n tokens will be. It is
// shorthand for PeekKey(l.Key(key), n).
//
// Whether a new key would find room is not looked at: a key that the limiter does
// not know has a full bucket.
func (l *Limiter) Peek(key string, n uint64) Decision { return l.PeekKey(l.Key(key), n) }

// PeekKey is [Limiter.Peek] for a key that is hashed already.
func (l *Limiter) PeekKey(k Key, n uint64) Decision {
	place := l.table.Find(k.hash)
	nanos := l.clock.nanos()
	if l.doubt > 0 {
		nanos = l.clock.exact()
	}
	return l.peek(place, n, nanos)
}

func (l *Limiter) peek(place shard.Place, n uint64, nanos int64) Decision {
	state, at := l.table.Look(place, nanos)
	tick := l.rule.Ticks(at)
	d := Decision{
		Limit:      l.limit,
		Remaining:  l.rule.Remaining(state, tick),
		ResetAfter: l.wait(nanos, at, l.rule.Debt(state, tick)),
	}
	switch {
	case n == 0:
		d.Allowed = true
	case n > l.limit:
		d.RetryAfter = Never
	default:
		d.RetryAfter = l.wait(nanos, at, l.rule.Lack(state, tick, l.rule.Cost(n)))
		d.Allowed = d.RetryAfter == 0
	}
	return d
}

// Reset makes the key's bucket full. A decision that is under way on another
// goroutine is made before or after that. It is shorthand for
// ResetKey(l.Key(key)).
func (l *Limiter) Reset(key string) { l.ResetKey(l.Key(key)) }

// ResetKey is [Limiter.Reset] for a key that is hashed already.
func (l *Limiter) ResetKey(k Key) { l.table.Reset(l.table.Find(k.hash)) }
