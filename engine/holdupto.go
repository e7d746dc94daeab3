package engine

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// HoldUpTo takes as many tokens as the key has, in one atomic step: at least minTokens and at most maxTokens. It is for
// a request that can also be served with fewer tokens, for example because its answer can be shortened. If the key has
// too few tokens, HoldUpTo refuses and takes nothing. [Receipt.Taken] returns how many tokens it took, and
// [Receipt.Settle] replaces them by the cost of the request.
//
// Both bounds may have any value. A minTokens of 0 counts as 1, and one above the limit counts as the limit. If
// maxTokens is 0, nothing is taken, and settling charges the cost. So HoldUpTo(k, 1, 0) admits requests as long as the
// key has a token, however many requests are under way. In contrast, [Limiter.Hold] of 0 tokens always admits.
//
// After a refusal, RetryAfter is the time until a request for minTokens would be admitted. A refusal costs nothing,
// whatever [ChargeRefusals] says. HoldUpTo never uses a late clock, does not allocate, and is lock-free.
func (l *Limiter) HoldUpTo(k Key, minTokens, maxTokens uint64) (d Decision, r Receipt) {
	minTokens = max(minTokens, 1)
	if maxTokens == 0 {
		if d = l.Peek(k, capEstimate(l.table.Plan(), k, minTokens)); d.Allowed {
			r.limiter, r.hash = l, k.hash
			r.tableReceipt.EnterNone(0, k.quota)
		}
		l.observe(k, minTokens, &d)
		return d, r
	}
	place := l.table.Find(k.hash)
	place.Touch()
	ends, nanos := l.table.Ends(place), l.clock.exactNanos()
	var status atomicbucket.Status
	o, taken := l.table.TakeUpTo(place, nanos, nanos, minTokens, maxTokens, k.quota, &status)
	l.decide(&d, k, o, status, nanos, minTokens)
	runtime.KeepAlive(l)
	switch {
	case o.Verdict == shard.Admitted:
		r.limiter, r.hash = l, k.hash
		r.tableReceipt.Enter(&o, taken, k.quota, ends)
	case d.Allowed: // nothing to give back, but the receipt charges a higher cost
		r.limiter, r.hash = l, k.hash
		r.tableReceipt.EnterNone(min(maxTokens, d.Limit), k.quota)
	}
	return d, r
}
