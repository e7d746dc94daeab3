package engine

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/weir-go/weir/shard"
)

// A Hold is what was taken for a request whose cost is known only when it is over: see [Limiter.Hold]. [Hold.Settle]
// may be called from any goroutine. The zero Hold is of nothing, and so is that of a request that was refused: to
// settle it does nothing.
//
// A Hold must not be copied once it is made: each copy would settle the same tokens again, and go vet reports copies.
// To hand it on, hand on a pointer to it.
type Hold struct {
	settled atomic.Bool
	receipt Receipt // of what the request was let in for; of no take if that was not recorded
}

// Hold takes estimate tokens from the key, all or none, for a request that may cost less or more: the tokens of a
// language model, the bytes of an answer, the time of a query. When the cost is known, [Hold.Settle] gives back or
// charges the difference. It is shorthand for HoldKey(l.Key(key), estimate).
//
// An estimate above the limit is taken as the limit, so that it passes when the key has all of it; else it never would.
// An estimate of 0 takes nothing and is always allowed. The decision is that of [Limiter.Take].
//
// A hold that is never settled costs its estimate. So it needs no timer, and no memory is kept for it. Hold does not
// allocate. It takes a fifth more time than a take, and to settle it takes no more than that again.
//
// What is in flight ([Concurrency]) stays so, settled or not, until it is forgotten: for that there is [Limiter.Enter].
func (l *Limiter) Hold(key string, estimate uint64) (Hold, Decision) {
	return l.HoldKey(l.madeKey(key), estimate)
}

// HoldKey is [Limiter.Hold] for a key that is hashed already.
func (l *Limiter) HoldKey(k Key, estimate uint64) (h Hold, d Decision) {
	l.takeReceipt(&d, &h.receipt, k, estimate, true)
	return
}

// capped returns an estimate, or the limit of a key if that is less and anything can be had.
func capped(plan *shard.Plan, k Key, estimate uint64) uint64 {
	if limit := plan.Granted(k.quota).Tokens; estimate > limit && limit > 0 {
		return limit
	}
	return estimate
}

// Settle says what the request has cost. If that is less than was taken the difference is given back, as by
// [Receipt.Refund]: never more than is owed because of this hold, so a window that is over gets nothing, and a bucket
// what has not come back by itself. If it is more the difference is charged now, as by [Limiter.Charge], whether it is
// there or not, up to [MaxDebt]: unless that option is given, all but buckets count no more than the limit. lost
// is how many tokens were not charged for that, 0 if all were.
//
// The first call settles, from whichever goroutine; all others do nothing and return 0. What was held before
// [Limiter.Reset], an eviction or [Limiter.SetPolicy] is not given back (a log gives back after SetPolicy); what the
// request cost more is charged nonetheless, under the limit that there is now. A limiter that is closed settles like
// any other.
func (h *Hold) Settle(actual uint64) (lost uint64) {
	if h.settled.Swap(true) {
		return 0
	}
	return h.settle(actual)
}

// Cancel gives back all that was taken, as Settle(0) does, and reports whether it was this call that settled the hold:
// false if another has, from whichever goroutine. It is for a server that gives back what its handler has not settled.
func (h *Hold) Cancel() bool {
	if h.settled.Swap(true) {
		return false
	}
	h.settle(0)
	return true
}

// settle is Settle for the one call that settles.
func (h *Hold) settle(actual uint64) (lost uint64) {
	taken := h.receipt.of.Tokens()
	switch {
	case actual < taken && h.receipt.of.IsKnown():
		h.receipt.giveBack(taken - actual)
	case actual > taken && h.receipt.limiter != nil:
		_, lost = h.receipt.limiter.ChargeKey(Key{h.receipt.hash, h.receipt.of.Quota()}, actual-taken)
	}
	return lost
}

// HoldAll is [All] for holds: the N of a request is its estimate. It fills holds, which must have room for one of each
// request, in their order, and are overwritten. If a limit refuses, nothing is held, and all holds are of nothing. As
// in [Limiter.Hold], an estimate above a limit counts as the limit. Each hold is settled by itself ([Hold.Settle]), in
// the unit of its own limit, or all together by [SettleAll]. One whose cost is known beforehand, such as one request,
// need not be settled at all. HoldAll does not allocate. Its errors are those of All, and holds without enough room.
func HoldAll(requests []Request, holds []Hold) (Decision, error) {
	if err := check(requests); err != nil {
		return Decision{}, err
	}
	if len(holds) < len(requests) {
		return Decision{}, fmt.Errorf("engine: HoldAll: %d requests and room for %d holds", len(requests), len(holds))
	}
	clear(holds[:len(requests)])
	var tightest Decision
	for i, r := range requests {
		var d Decision
		r.Limiter.takeReceipt(&d, &holds[i].receipt, r.Key, r.N, true)
		if !d.Allowed {
			return letGo(requests, holds, i, d), nil
		}
		if i == 0 || d.tighter(tightest) {
			tightest = d
		}
	}
	return tightest, nil
}

// letGo gives back what was held before request i was refused, and returns the decision of the limit that says no for
// longest.
func letGo(requests []Request, holds []Hold, i int, refusal Decision) Decision {
	for j := range i {
		holds[j].Settle(0)
		holds[j] = Hold{}
	}
	for j, r := range requests {
		if j == i {
			continue
		}
		n := capped(r.Limiter.table.Plan(), r.Key, r.N)
		if d := r.Limiter.PeekKey(r.Key, n); d.RetryAfter > refusal.RetryAfter {
			refusal = d
		}
	}
	refusal.Allowed = false
	return refusal
}

// SettleAll settles each of the holds ([Hold.Settle]) with the number at its place, and returns how many tokens were
// not charged in all, [math.MaxUint64] if they are more. If there are not as many numbers as holds, that is an error,
// and nothing is settled.
func SettleAll(holds []Hold, actual ...uint64) (lost uint64, err error) {
	if len(actual) != len(holds) {
		return 0, fmt.Errorf("engine: SettleAll: %d holds and %d numbers: want one for each", len(holds), len(actual))
	}
	for i := range holds {
		sum, carry := bits.Add64(lost, holds[i].Settle(actual[i]), 0)
		lost = sum | -carry
	}
	return lost, nil
}
