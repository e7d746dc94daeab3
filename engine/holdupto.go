package engine

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// HoldUpTo takes as many tokens as the key has, up to the parameter most. It is for a request that can also be served
// with fewer tokens, for example because its answer can be shortened. The request is admitted if the key has at least
// the number of tokens in the parameter least. If the limit is lower than that number, the request is admitted if the
// key has its complete limit. Otherwise HoldUpTo takes nothing. [Receipt.Taken] returns how many tokens it took, and
// [Receipt.Settle] replaces them by the cost of the request. The check and the take are one atomic step, so concurrent
// calls cannot make it take fewer tokens than least.
//
// If least is 0, it counts as 1, so a request for a key without tokens is refused. If most is 0, nothing is taken, and
// the cost of the request is charged when the receipt is settled. So HoldUpTo(k, 1, 0) admits requests that are charged
// afterwards, as long as the key has a token. ([Limiter.Hold] of 0 always admits such requests.) The number of such
// requests that are under way at the same time is not bounded.
//
// If the request is refused, RetryAfter is the time until a request for least tokens would be admitted. A refusal costs
// nothing, whatever [ChargeRefusals] says. HoldUpTo never uses a late clock, does not allocate, and is lock-free.
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
	case d.Allowed: // there is nothing to give back, but the receipt charges a higher cost
		r.limiter, r.hash = l, k.hash
		r.of.EnterNone(min(most, d.Limit), k.quota)
	}
	return d, r
}
