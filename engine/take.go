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
	return l.AllowKey(Key{hash: maphash.String(seeds.text, key)}) // as Key does, a call less
}

// AllowKey is [Limiter.Allow] for a key that is hashed already.
func (l *Limiter) AllowKey(k Key) bool {
	// The cache line is on its way while the clock is read.
	place := l.table.Find(k.hash)
	place.Touch()
	var now int64
	if line := l.clock.line.Load(); line != nil { // as nanos does, a call less
		now = line.nanosAt(tsc.Read())
	} else {
		now = l.clock.nanos()
	}
	s, plan, v := l.table.Hit(place, now, 1, k.tier)
	if v == shard.Admitted {
		return true
	}
	if v == shard.Refused && !l.careful {
		return false
	}
	return l.allowSlowly(k, place, shard.Outcome{State: s, Plan: plan, At: now, Verdict: v})
}

// allowSlowly is the rest of AllowKey when its hit did not decide: the key may have no
// record yet, a refusal may rest on a coarse clock, and an observer may want to know of it.
func (l *Limiter) allowSlowly(k Key, place shard.Place, o shard.Outcome) bool {
	doubtful := false
	if l.logs {
		var r atomicbucket.Reading
		o, r = l.table.TakeLog(place, o.At, 1, k.tier, false)
		doubtful = o.Verdict == shard.Refused && r.RetryAfter < l.clock.lateness()
	} else {
		if o.Verdict == shard.Undecided {
			o = l.table.Miss(place, o.At, 1, k.tier)
		}
		doubtful = o.Doubtful(1, k.tier)
	}
	if doubtful {
		o = l.table.Take(place, l.clock.renew(coarseTick), 1, k.tier)
	}
	if o.Verdict.Admits() {
		return true
	}
	if l.observer != nil {
		l.observer.refused(k, 1)
	}
	return false
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
	d, _ := l.takeKey(k, n)
	return d
}

// takeKey is TakeKey, and reports whether there is a record of what was taken.
func (l *Limiter) takeKey(k Key, n uint64) (d Decision, recorded bool) {
	if n == 0 {
		return l.PeekKey(k, n), false
	}
	if l.logs {
		nanos := l.clock.nanos()
		d, recorded = l.takeLog(k, n, nanos)
		if !d.Allowed && d.RetryAfter < l.clock.lateness() { // as Doubtful
			d, recorded = l.takeLog(k, n, l.clock.renew(coarseTick))
		}
		return l.observed(k, n, d), recorded
	}
	o, nanos := l.take(k, n)
	return l.decide(k, &o, nanos, n), o.Verdict == shard.Admitted
}

// take takes n tokens at the clock's time, which it returns.
func (l *Limiter) take(k Key, n uint64) (o shard.Outcome, nanos int64) {
	place := l.table.Find(k.hash)
	place.Touch()
	nanos = l.clock.nanos()
	if o = l.table.Take(place, nanos, n, k.tier); o.Doubtful(n, k.tier) {
		nanos = l.clock.renew(coarseTick)
		o = l.table.Take(place, nanos, n, k.tier)
	}
	return o, nanos
}

// TakeAt is TakeKey at a time that the caller supplies: the fastest way when one
// reading of a clock serves many decisions, and the way to replay the past.
//
// now must come from the limiter's own clock: time.Now for all but [ClockFunc].
// A now earlier than one that the limiter has acted on never lets through what
// the latest would refuse, and one in the future is believed. What lies before 1970
// or after April 2262 counts as that.
func (l *Limiter) TakeAt(k Key, n uint64, now time.Time) Decision {
	return l.takeAt(k, n, l.clock.instant(now))
}

func (l *Limiter) takeAt(k Key, n uint64, nanos int64) Decision {
	if n == 0 {
		return l.peek(k, n, nanos)
	}
	if l.logs {
		d, _ := l.takeLog(k, n, nanos)
		return l.observed(k, n, d)
	}
	o := l.table.Take(l.table.Find(k.hash), nanos, n, k.tier)
	return l.decide(k, &o, nanos, n)
}

// takeLog is a take from a sliding log, whose record alone does not say what there is to
// say.
func (l *Limiter) takeLog(k Key, n uint64, nanos int64) (d Decision, recorded bool) {
	o, r := l.table.TakeLog(l.table.Find(k.hash), nanos, n, k.tier, true)
	if o.Verdict == shard.Refused {
		return answer(&o, nanos, k, r, false), false
	} else if o.Verdict.Admits() {
		return answer(&o, nanos, k, r, true), o.Verdict == shard.Admitted
	}
	return l.unmet(k, &o, nanos, n), false
}

// decide puts an outcome into the terms of a caller whose clock read nanos.
func (l *Limiter) decide(k Key, o *shard.Outcome, nanos int64, n uint64) Decision {
	if o.Verdict.Admits() {
		return answer(o, nanos, k, o.Read(0, k.tier), true)
	}
	if o.Verdict == shard.Refused {
		return l.observed(k, n, answer(o, nanos, k, o.Read(n, k.tier), false))
	}
	return l.observed(k, n, l.unmet(k, o, nanos, n))
}

// unmet is the decision of a request that was refused without a look at a record.
func (l *Limiter) unmet(k Key, o *shard.Outcome, nanos int64, n uint64) Decision {
	if o.Verdict == shard.TooMuch {
		d := l.peek(k, n, nanos)
		d.Allowed, d.RetryAfter = false, max(d.RetryAfter, 1) // the limit may have grown meanwhile
		return d
	}
	// The first record of the neighbourhood to be idle makes room.
	rule := o.Plan.Rule()
	wait := later(o.At-nanos, max(rule.Wait(o.At, rule.Rest(o.State, rule.Ticks(o.At))), 1))
	return Decision{Limit: o.Plan.Quota(k.tier).Tokens, RetryAfter: wait, ResetAfter: wait}
}

// observed returns the decision, and tells the observer of it if it is a refusal.
func (l *Limiter) observed(k Key, n uint64, d Decision) Decision {
	if l.observer != nil && !d.Allowed {
		l.observer.refused(k, n)
	}
	return d
}

// answer makes a decision of what there is to say about a record, to a caller whose clock
// read nanos.
func answer(o *shard.Outcome, nanos int64, k Key, r atomicbucket.Reading, allowed bool) Decision {
	d := Decision{
		Allowed:    allowed,
		Limit:      o.Plan.Quota(k.tier).Tokens,
		Remaining:  r.Remaining,
		ResetAfter: later(o.At-nanos, r.ResetAfter),
	}
	if !allowed {
		d.RetryAfter = later(o.At-nanos, r.RetryAfter)
	}
	return d
}

// later returns a wait as a clock sees it that is so many nanoseconds late. No wait stays
// none.
func later(late int64, wait time.Duration) time.Duration {
	if wait == 0 {
		return 0
	}
	if wait > math.MaxInt64-time.Duration(late) {
		return math.MaxInt64
	}
	return wait + time.Duration(late)
}
