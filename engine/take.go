package engine

import (
	"hash/maphash"
	"math"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/tsc"
	"github.com/weir-go/weir/shard"
)

// Allow takes one token from the key and reports whether there was one: the cheapest
// question there is.
func (l *Limiter) Allow(key string) bool {
	if l.stable {
		return l.AllowKey(l.Key(key))
	}
	return l.allow(maphash.String(seeds.text, key)) // as Key does, a call less
}

// AllowKey is [Limiter.Allow] for a key that is hashed already.
func (l *Limiter) AllowKey(k Key) bool { return l.allow(k.hash) }

func (l *Limiter) allow(hash uint64) bool {
	// The cache line is on its way while the clock is read.
	place := l.table.Find(hash)
	place.Touch()
	var now int64
	if line := l.clock.line.Load(); line != nil { // as nanos does, a call less
		now = line.nanosAt(tsc.Read())
	} else {
		now = l.clock.nanos()
	}
	s, v := l.table.Hit(place, now, l.one)
	return v == shard.Admitted || l.allowSlowly(place, now, s, v)
}

// allowSlowly is the rest of allow when its hit did not admit: the key may have no
// record yet, and a refusal may rest on a coarse clock.
func (l *Limiter) allowSlowly(place shard.Place, now int64, s atomicbucket.State, v shard.Verdict) bool {
	if v == shard.Undecided {
		s, now, v = l.table.Miss(place, now, l.one)
	}
	if v == shard.Refused && l.doubtful(s, now, l.one) {
		_, _, v = l.table.Take(place, l.clock.renew(coarseTick), l.one)
	}
	return v.Admits()
}

// doubtful reports whether a refusal rests on a coarse clock, and on so short a
// wait that the clock may be to blame.
func (l *Limiter) doubtful(s atomicbucket.State, at int64, cost uint64) bool {
	return l.doubt > 0 && l.rule.Lack(s, l.rule.Ticks(at), cost) < l.doubt
}

// Take takes n tokens from the key, all or none, and returns the decision with
// everything that an answer to the client needs. It is shorthand for
// TakeKey(l.Key(key), n).
//
// n = 0 takes nothing and is always allowed; n above the limit is never allowed
// (see [Never]). Neither takes anything. To take an int, convert it: a negative
// one becomes a number above every limit.
func (l *Limiter) Take(key string, n uint64) Decision { return l.TakeKey(l.Key(key), n) }

// TakeKey is [Limiter.Take] for a key that is hashed already.
func (l *Limiter) TakeKey(k Key, n uint64) Decision {
	if n == 0 || n > l.limit {
		return l.PeekKey(k, n)
	}
	cost := l.rule.Cost(n)
	return l.decide(l.take(k, cost), cost)
}

// TakeAt is TakeKey at a time that the caller supplies: the fastest way when one
// reading of a clock serves many decisions, and the way to replay the past.
//
// now must come from the limiter's own clock: time.Now for all but [ClockFunc].
// A now earlier than one that the limiter has acted on never lets through what
// the latest would refuse, and one in the future is believed. What lies before 1970
// or after April 2262 counts as that.
func (l *Limiter) TakeAt(k Key, n uint64, now time.Time) Decision {
	nanos := l.clock.instant(now)
	place := l.table.Find(k.hash)
	if n == 0 || n > l.limit {
		return l.peek(place, n, nanos)
	}
	cost := l.rule.Cost(n)
	return l.decide(l.takeAt(place, cost, nanos), cost)
}

// An outcome is what the table said to a take.
type outcome struct {
	nanos   int64              // the clock's reading
	at      int64              // the time at which it was decided: later if the clock is late
	state   atomicbucket.State // the record that decided
	verdict shard.Verdict
}

// take takes a cost in ticks, at the clock's time.
func (l *Limiter) take(k Key, cost uint64) outcome {
	place := l.table.Find(k.hash)
	place.Touch()
	o := l.takeAt(place, cost, l.clock.nanos())
	if o.verdict == shard.Refused && l.doubtful(o.state, o.at, cost) {
		o = l.takeAt(place, cost, l.clock.renew(coarseTick))
	}
	return o
}

// takeAt takes a cost in ticks, at a given time.
func (l *Limiter) takeAt(place shard.Place, cost uint64, nanos int64) outcome {
	o := outcome{nanos: nanos}
	o.state, o.at, o.verdict = l.table.Take(place, nanos, cost)
	return o
}

// decide puts an outcome into the caller's terms.
func (l *Limiter) decide(o outcome, cost uint64) Decision {
	tick := l.rule.Ticks(o.at)
	d := Decision{
		Allowed:    o.verdict.Admits(),
		Limit:      l.limit,
		ResetAfter: l.wait(o.nanos, o.at, l.rule.Debt(o.state, tick)),
	}
	if o.verdict == shard.NoRoom {
		// The first record of the neighbourhood to be idle makes room.
		d.RetryAfter = d.ResetAfter
		return d
	}
	d.Remaining = l.rule.Remaining(o.state, tick)
	if !d.Allowed {
		d.RetryAfter = l.wait(o.nanos, o.at, l.rule.Lack(o.state, tick, cost))
	}
	return d
}

// wait returns the time from nanos until so many ticks have passed since at, which is
// not earlier.
func (l *Limiter) wait(nanos, at int64, ticks uint64) time.Duration {
	if ticks == 0 {
		return 0
	}
	late, wait := time.Duration(at-nanos), l.rule.Wait(at, ticks)
	if wait > math.MaxInt64-late {
		return math.MaxInt64
	}
	return late + wait
}
