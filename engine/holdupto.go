package engine

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// HoldUpTo takes as many tokens as the key has, at most most, for a request that can do with less: an answer that is
// cut to what is left. It passes if the key has least tokens, or its limit where that is less, and otherwise takes
// nothing. [Receipt.Taken] says how many it took, [Receipt.Settle] replaces them by what the request cost. The look and
// the take are one step: calls beside it cannot make it take less than least.
//
// A least of 0 counts as 1, so a key that is empty or in debt refuses. With a most of 0 nothing is taken, and what the
// request costs is charged when it is settled. So HoldUpTo(k, 1, 0) admits requests that pay afterwards as long as the
// key owes nothing ([Limiter.Hold] of 0 admits them always), and how many are under way at a time is not bounded then.
//
// RetryAfter is that of a request for least. A refusal costs nothing, whatever [ChargeRefusals] says. It is as exact as
// a [ClockPrecise], does not allocate, and is lock-free.
func (l *Limiter) HoldUpTo(k Key, least, most uint64) (d Decision, r Receipt) {
	least = max(least, 1)
	if most == 0 {
		if d = l.Peek(k, capped(l.table.Plan(), k, least)); d.Allowed {
			r.limiter, r.hash = l, k.hash
			r.of.EnterNone(0, k.quota)
		}
		l.observe(k, least, &d)
		return d, r
	}
	place := l.table.Find(k.hash)
	place.Touch()
	ends, nanos := l.table.Ends(place), l.clock.surely()
	var status atomicbucket.Status
	o, taken := l.table.TakeUpTo(place, nanos, nanos, least, most, k.quota, &status)
	l.decide(&d, k, o, status, nanos, least)
	runtime.KeepAlive(l)
	switch {
	case o.Verdict == shard.Admitted:
		r.limiter, r.hash = l, k.hash
		r.of.Enter(&o, taken, k.quota, ends)
	case d.Allowed: // there is nothing to give back, but what costs more is charged
		r.limiter, r.hash = l, k.hash
		r.of.EnterNone(min(most, d.Limit), k.quota)
	}
	return d, r
}
