package engine

import (
	"math"
	"runtime"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/keyhash"
	"github.com/weir-go/weir/internal/tsc"
	"github.com/weir-go/weir/shard"
)

// Allow takes one token from the key and reports whether a token was available. It is the cheapest call.
func (l *Limiter) Allow(key string) bool {
	if !l.seeded {
		return l.allowUnseeded(key)
	}
	// The clock is read before anything else, because the values computed before a call must be saved on the stack
	// during the call. The code of the clock and of AllowKey is repeated here, because each call of a function would
	// take a twentieth of the time.
	var now int64
	if line := l.clock.line.Load(); line != nil {
		now = line.nanosAt(tsc.Read())
	} else if now = l.clock.coarse.Load(); now == 0 {
		return l.AllowKey(l.Key(key))
	}
	k := Key{hash: keyhash.String(seeds.text, key)}
	_, _, v := l.table.Hit(l.table.Find(k.hash), now, 1, 0)
	runtime.KeepAlive(l) // and with it the table
	return v == shard.Admitted || l.allowMissed(k, now, v)
}

// allowUnseeded is Allow for keys that are hashed without the seed of the process.
func (l *Limiter) allowUnseeded(key string) bool {
	if l.secrets == nil {
		return l.AllowKey(l.Key(key))
	}
	var now int64
	if line := l.clock.line.Load(); line != nil {
		now = line.nanosAt(tsc.Read())
	} else if now = l.clock.coarse.Load(); now == 0 {
		return l.AllowKey(l.Key(key))
	}
	k := Key{hash: keyhash.Keyed(&l.secrets.text, key)}
	_, _, v := l.table.Hit(l.table.Find(k.hash), now, 1, 0)
	runtime.KeepAlive(l)
	return v == shard.Admitted || l.allowMissed(k, now, v)
}

// AllowKey is [Limiter.Allow] for a key that has been hashed already.
func (l *Limiter) AllowKey(k Key) bool {
	if !k.quota.IsTier() {
		return l.allowQuota(k)
	}
	// The cache line is loaded while the clock is read.
	place := l.table.Find(k.hash)
	place.Touch()
	var now int64
	if line := l.clock.line.Load(); line != nil { // like nanos, with one call less
		now = line.nanosAt(tsc.Read())
	} else if now = l.clock.coarse.Load(); now == 0 {
		now = l.clock.nanos()
	}
	_, _, v := l.table.Hit(place, now, 1, k.quota.Tier())
	runtime.KeepAlive(l) // and with it the table
	return v == shard.Admitted || l.allowMissed(k, now, v)
}

// allowMissed decides a request that the key's record did not admit at once, and reports whether it is allowed.
func (l *Limiter) allowMissed(k Key, now int64, v shard.Verdict) bool {
	return (v != shard.Refused || l.observer != nil) && l.allowSlowly(k, now, v)
}

// allowSlowly is AllowKey after the fast path has not admitted the request.
func (l *Limiter) allowSlowly(k Key, now int64, v shard.Verdict) bool {
	place := l.table.Find(k.hash)
	if !v.Refuses() {
		if _, _, v = l.table.HitTier(place, now, 1, k.quota); v == shard.Undecided {
			now = l.chargeable(now)
			v = l.table.MissQuota(place, now, 1, k.quota, nil).Verdict
		}
	}
	if v == shard.Doubtful {
		now = l.clock.renew(coarseTick)
		v = l.table.TakeAt(place, now, now, 1, k.quota, nil).Verdict
	}
	runtime.KeepAlive(l)
	if v.Admits() {
		return true
	}
	if l.observer != nil {
		l.observer.observe(k, 1)
	}
	return false
}

// Take takes n tokens from the key, all or none, and returns the decision, with all numbers for an answer to the
// client. It is shorthand for TakeKey(l.Key(key), n).
//
// A request for 0 tokens is always allowed, and a request for more than the limit is never allowed ([Never]). Neither
// takes anything. A negative int that is converted becomes a number above every limit.
func (l *Limiter) Take(key string, n uint64) Decision {
	if l.seeded {
		return l.TakeKey(Key{hash: keyhash.String(seeds.text, key)}, n) // like Key, with one call less
	}
	return l.TakeKey(l.Key(key), n)
}

// TakeKey is [Limiter.Take] for a key that has been hashed already.
func (l *Limiter) TakeKey(k Key, n uint64) (d Decision) {
	if n == 0 || !k.quota.IsTier() {
		l.takeQuota(&d, k, n)
		return d
	}
	place := l.table.Find(k.hash)
	place.Touch()
	var now int64
	if line := l.clock.line.Load(); line != nil { // as in AllowKey
		now = line.nanosAt(tsc.Read())
	} else if now = l.clock.coarse.Load(); now == 0 {
		now = l.clock.nanos()
	}
	tier := k.quota.Tier()
	s, plan, v := l.table.Hit(place, now, n, tier)
	runtime.KeepAlive(l) // and with it the table
	if v == shard.Admitted {
		d.Allowed = true
		d.Limit, d.Remaining, d.ResetAfter = plan.Left(s, now, tier)
		return d
	}
	l.takeMissed(&d, k, n, place, shard.Outcome{State: s, Plan: plan, At: now, Verdict: v})
	return d
}

// takeMissed is TakeKey after its fast path has not admitted the request.
func (l *Limiter) takeMissed(d *Decision, k Key, n uint64, place shard.Place, o shard.Outcome) {
	var status atomicbucket.Status
	if o.Verdict == shard.Refused {
		status = o.Plan.Status(o.State, o.At, n, k.quota.Tier())
	}
	l.takeSlowly(d, k, n, place, o, status)
}

// takeSlowly makes a take that a fast path has not admitted. If the fast path has refused, status describes that
// refusal.
func (l *Limiter) takeSlowly(d *Decision, k Key, n uint64, place shard.Place, o shard.Outcome, status atomicbucket.Status) shard.Outcome {
	nanos := o.At
	if o.Verdict == shard.Undecided {
		switch o.State, o.Plan, o.Verdict = l.table.HitTier(place, nanos, n, k.quota); o.Verdict {
		case shard.Admitted:
			d.Allowed, d.RetryAfter = true, 0
			d.Limit, d.Remaining, d.ResetAfter = o.Plan.Left(o.State, nanos, k.quota.Tier())
			runtime.KeepAlive(l)
			return o
		case shard.Undecided:
			nanos = l.chargeable(nanos)
			o = l.table.MissQuota(place, nanos, n, k.quota, &status)
		default:
			status = o.Plan.Status(o.State, nanos, n, k.quota.Tier())
		}
	}
	if o.Verdict == shard.Doubtful {
		nanos = l.clock.renew(coarseTick)
		o = l.table.TakeAt(place, nanos, nanos, n, k.quota, &status)
	}
	l.decide(d, k, o, status, nanos, n)
	runtime.KeepAlive(l)
	return o
}

// TakeAt is TakeKey at a time that the caller supplies, to replay requests of the past, or to decide at the time at
// which a request arrived. The time must come from the limiter's own clock: for every clock except [ClockFunc], that is
// time.Now. A time before 1970 counts as 1970, and a time after April 2262 as April 2262.
//
// If a call's time is earlier than the time of a previous decision, it admits nothing that the later time would refuse.
// The time may count as a later one that the table has already reached, such as that of the last sweep or SetPolicy (R7
// in package shard).
//
// A time ahead of the limiter's clock affects only this decision and the key's record. If the time is more than a
// second ahead, the request is refused and takes nothing. RetryAfter is then how long it takes until the time is at
// most a second ahead. If a [FixedWindow] is shorter than a second, takes ahead of the clock may admit one limit more,
// because a take in the next window ends the current one.
func (l *Limiter) TakeAt(k Key, n uint64, now time.Time) (d Decision) {
	nanos, clockNanos, excess := l.instant(now)
	if excess > 0 {
		d = Decision{Limit: limitOf(l.table.Plan(), k), RetryAfter: excess, ResetAfter: excess}
		l.observe(k, n, &d)
		return d
	}
	l.takeAt(&d, k, n, nanos, clockNanos)
	return d
}

// maxLead is how far a caller's time may be ahead of the limiter's clock, because the clocks of one machine differ a
// little.
const maxLead = time.Second

// instant returns a caller's time on the timeline, and the time of the limiter's clock. The result excess is the time
// until the caller's time is no longer too far ahead, or 0 or less if it is not.
func (l *Limiter) instant(now time.Time) (nanos, clockNanos int64, excess time.Duration) {
	nanos, clockNanos = l.clock.instant(now), l.clock.exactNanos()
	return nanos, clockNanos, time.Duration(max(nanos-clockNanos, 0)) - maxLead
}

func (l *Limiter) takeAt(d *Decision, k Key, n uint64, nanos, clockNanos int64) {
	if n == 0 {
		*d = l.peek(k, n, nanos, clockNanos)
		return
	}
	var status atomicbucket.Status
	o := l.table.TakeAt(l.table.Find(k.hash), nanos, clockNanos, n, k.quota, &status)
	l.decide(d, k, o, status, nanos, n)
}

// decide converts an outcome to the decision for a caller whose time is nanos, and reports a refusal to the observer.
func (l *Limiter) decide(d *Decision, k Key, o shard.Outcome, status atomicbucket.Status, nanos int64, n uint64) {
	switch o.Verdict {
	case shard.UnlimitedQuota:
		*d = unlimitedDecision
		return
	case shard.TooMuch:
		*d = l.peek(k, n, nanos, l.clock.exactNanos())
		d.Allowed, d.RetryAfter = false, max(d.RetryAfter, 1) // the limit may have grown in the meantime
	case shard.NoRoom:
		// There will be room when the first record in the neighborhood of the key becomes idle.
		algorithm := o.Plan.Algorithm()
		wait := addDelay(o.At-nanos, max(algorithm.Wait(o.At, algorithm.UntilIdle(o.State, algorithm.Ticks(o.At))), 1))
		*d = Decision{Limit: limitOf(o.Plan, k), RetryAfter: wait, ResetAfter: wait}
	default:
		fillDecision(d, o.At-nanos, limitOf(o.Plan, k), status, o.Verdict.Admits())
	}
	l.observe(k, n, d)
}

func (l *Limiter) observe(k Key, n uint64, d *Decision) {
	if l.observer != nil && !d.Allowed {
		l.observer.observe(k, n)
	}
}

// fillDecision sets d from the status of a record, whose time is later than the caller's time by delay nanoseconds.
func fillDecision(d *Decision, delay int64, limit uint64, status atomicbucket.Status, allowed bool) {
	d.Allowed = allowed
	d.Limit = limit
	d.Remaining = status.Remaining
	d.RetryAfter = addDelay(delay, status.RetryAfter)
	d.ResetAfter = addDelay(delay, status.ResetAfter)
}

// addDelay converts a wait from the time of a status to a wait from the caller's time. A wait of 0 stays 0.
func addDelay(delay int64, wait time.Duration) time.Duration {
	if wait == 0 {
		return 0
	}
	if wait > math.MaxInt64-time.Duration(delay) {
		return math.MaxInt64
	}
	return wait + time.Duration(delay)
}
