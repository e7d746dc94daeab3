package engine

import (
	"runtime"
	"sync/atomic"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/spread"
	"github.com/weir-go/weir/shard"
)

// A Receipt is for what one call took and may give back: a take ([Limiter.TakeReceipt]), an estimate ([Limiter.Hold]),
// a reservation ([Limiter.Reserve]), what is in flight ([Concurrency]), or a take from a [Spread]. [Receipt.Refund]
// gives back a part, [Receipt.Release] the rest, and [Receipt.Settle] replaces what was taken by what the request cost.
// The zero Receipt is for nothing, and so is that of a request that was refused: to end it does nothing.
//
// Release and Settle may be called from any goroutine, and concurrently: the first ends the receipt, and all others do
// nothing. Refund is not safe for concurrent use. A Receipt is a value, so that a take does not allocate. It must not
// be copied once it is in use: a copy would give back the same tokens again.
//
// A receipt that is never ended costs what was taken. It needs no timer, and the limiter keeps no memory for it.
type Receipt struct {
	limiter *Limiter
	hash    uint64 // of the key; the time of a take from a Spread
	of      shard.Receipt
	spread  *Spread // instead of the limiter
	terms   *spread.Terms
	ended   uint32 // not an atomic.Uint32, which could not be returned
}

// TakeReceipt is [Limiter.TakeKey] with a receipt for what was taken. It does not allocate.
func (l *Limiter) TakeReceipt(k Key, n uint64) (d Decision, r Receipt) {
	l.takeReceipt(&d, &r, k, n, false)
	return
}

// Hold takes estimate tokens from the key, all or none, for a request that may cost less or more: the tokens of a
// language model, the bytes of an answer, the time of a query. When the cost is known, [Receipt.Settle] gives back or
// charges the difference. Hold is TakeReceipt but for an estimate above the limit: that is taken as the limit, so that
// it passes when the key has all of it. It would never pass otherwise. Hold does not allocate.
func (l *Limiter) Hold(k Key, estimate uint64) (d Decision, r Receipt) {
	l.takeReceipt(&d, &r, k, estimate, true)
	return
}

// capped returns an estimate, or the limit of a key if that is less and anything can be had.
func capped(plan *shard.Plan, k Key, estimate uint64) uint64 {
	if limit := plan.Granted(k.quota).Tokens; estimate > limit && limit > 0 {
		return limit
	}
	return estimate
}

// takeReceipt is TakeReceipt into d and r, which is zero, or [Limiter.Hold] of an estimate. It is take written out,
// because what is passed on and kept for a receipt costs as much as a third of a take.
func (l *Limiter) takeReceipt(d *Decision, r *Receipt, k Key, n uint64, estimate bool) {
	place := l.table.Find(k.hash)
	place.Touch()
	ends := l.table.Ends(place)
	o := shard.Outcome{Verdict: shard.Undecided}
	if n > 0 {
		o.At = l.clock.nanos()
		if k.quota.IsTier() {
			o.State, o.Plan, o.Verdict = l.table.Hit(place, o.At, n, k.quota.Tier())
		} else {
			o.State, o.Plan, o.Verdict = l.table.HitQuota(place, o.At, n, k.quota)
		}
		runtime.KeepAlive(l)
		if o.Verdict == shard.Admitted {
			// The receipt first: the caller copies both, and does not wait for stores that are some instructions old.
			r.limiter, r.hash = l, k.hash
			r.of.Enter(&o, n, k.quota, ends)
			if k.quota.IsTier() {
				d.Allowed, d.RetryAfter = true, 0
				d.Limit, d.Remaining, d.ResetAfter = o.Plan.Left(o.State, o.At, k.quota.Tier())
				return
			}
			granted := o.Plan.Granted(k.quota)
			d.Allowed, d.Limit, d.RetryAfter = true, granted.Tokens, 0
			d.Remaining, d.ResetAfter = o.Plan.LeftUnder(o.State, o.At, granted)
			return
		}
	}
	l.takeReceiptSlowly(d, r, k, n, place, o, ends, estimate)
}

// takeReceiptSlowly is the rest of takeReceipt when its hit has not admitted the request, or it could have none.
func (l *Limiter) takeReceiptSlowly(
	d *Decision, r *Receipt, k Key, n uint64, place shard.Place, o shard.Outcome, ends shard.Ends, estimate bool,
) {
	asked := n
	if estimate && o.Verdict == shard.Undecided {
		n = capped(l.table.Plan(), k, n)
	}
	switch {
	case n == 0 || n != asked:
		o = l.take(d, k, n)
	case o.Verdict == shard.Refused:
		o = l.takeSlowly(d, k, n, place, o, o.Plan.StatusOf(o.State, o.At, n, k.quota))
	default:
		o = l.takeSlowly(d, k, n, place, o, atomicbucket.Status{})
	}
	if o.Verdict == shard.Admitted {
		r.limiter, r.hash = l, k.hash
		r.of.Enter(&o, n, k.quota, ends)
	} else if d.Allowed {
		// There is nothing to give back, but what costs more is charged: also if there was no limit then.
		r.limiter, r.hash = l, k.hash
		r.of.EnterNone(n, k.quota)
	}
}

// Refund gives back n of the tokens that were taken, or all of those that were not given back yet if they are fewer.
// The record of the key becomes what it would be if they had never been taken. Where that is not known any more, less
// is given back:
//
//   - A token bucket gives back what is not back already: nothing if it would have been full by now. If others have
//     reserved ([Limiter.Reserve]) behind the take, or near it, it gives what will not be back when the last of them
//     goes: they were told when to go, and what has come back by then is theirs.
//   - A fixed window gives nothing if it is not the take's window any more. If nothing else was taken in it the window
//     is over, and the next request begins one.
//   - A sliding window counter gives back to the window in which the take was.
//   - A sliding window log forgets just this request.
//   - A key that was reset or evicted since gives back nothing. (Resets and evictions are counted for some hundred keys
//     together. So where keys are evicted all the time, a key that was not may give back nothing, too.)
//   - A limiter whose policy was changed since gives back nothing; a log does.
//   - What is in flight ([Concurrency]) leaves, also after a change of the policy and after evictions of other keys.
func (r *Receipt) Refund(n uint64) {
	if n = min(n, r.of.Tokens()); n > 0 && atomic.LoadUint32(&r.ended) == 0 {
		r.of.Less(n, r.giveBack(n))
	}
}

// Release gives back all that was not given back yet, as Refund does, and ends the receipt. It reports whether it was
// this call that ended it. It is lock-free and does not allocate. What is in flight is released with it:
//
//	d, receipt := limiter.TakeReceipt(key, 1)
//	if !d.Allowed {
//		...
//	}
//	defer receipt.Release()
func (r *Receipt) Release() bool {
	if !r.end() {
		return false
	}
	r.giveBack(r.of.Tokens())
	return true
}

// Settle ends the receipt with what the request has cost. If that is less than was taken the difference is given back,
// as by Refund: never more than is owed because of this take. So a window that is over gets nothing, and a bucket gets
// what has not come back by itself. If it is more the difference is charged now, as by [Limiter.Charge], whether it is
// there or not, up to [MaxDebt]: unless that option is given, all but buckets count no more than the limit. lost
// is how many tokens were not charged for that, 0 if all were.
//
// What was taken before [Limiter.Reset], an eviction or [Limiter.SetPolicy] is not given back (a log gives back after
// SetPolicy). A cost beyond what was taken is still charged, under the present limit. A limiter that is closed settles
// like any other.
//
// For what is in flight ([Concurrency]), call Release instead. Settle gives back or charges the difference only. The
// rest stays in flight until it is forgotten, because a Release after Settle does nothing.
func (r *Receipt) Settle(actual uint64) (lost uint64) {
	if !r.end() {
		return 0
	}
	taken := r.of.Tokens()
	if actual > taken {
		return r.Charge(actual - taken)
	}
	r.giveBack(taken - actual)
	return 0
}

// Charge takes n tokens more from the key of the receipt, whether they are there or not, as by [Limiter.Charge]: for a
// cost that becomes known after [Receipt.Settle] or [Receipt.Release], or before. lost is how many of them were not
// charged, 0 if all were. It does nothing for the zero Receipt, and does not allocate. It may be called from any
// goroutine and concurrently.
func (r *Receipt) Charge(n uint64) (lost uint64) {
	switch {
	case n == 0:
	case r.spread != nil:
		lost = r.spread.Charge(n)
	case r.limiter != nil:
		_, lost = r.limiter.Charge(Key{r.hash, r.of.Quota()}, n)
	}
	return lost
}

// Taken returns how many tokens were taken and not given back by [Receipt.Refund]. Settle and Release do not change it.
func (r *Receipt) Taken() uint64 { return r.of.Tokens() }

// end reports whether the caller is the one that ends the receipt.
func (r *Receipt) end() bool { return atomic.SwapUint32(&r.ended, 1) == 0 }

// giveBack gives n tokens back, of those that were not given back yet, and leaves the receipt what it is. It returns
// the state of the record, if there is one.
func (r *Receipt) giveBack(n uint64) (s atomicbucket.State) {
	switch {
	case n == 0:
	case r.spread != nil:
		r.spread.bucket.Refund(n, r.terms, int64(r.hash))
	case r.of.IsKnown():
		l := r.limiter
		s, _, _, _ = l.table.RefundOf(l.table.Find(r.hash), l.clock.latest, n, &r.of)
		runtime.KeepAlive(l)
	}
	return s
}
