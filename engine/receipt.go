package engine

import (
	"runtime"
	"sync/atomic"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/spread"
	"github.com/weir-go/weir/internal/tsc"
	"github.com/weir-go/weir/shard"
)

// A Receipt is for the tokens that one call took and that may be given back: a take ([Limiter.TakeReceipt]), an
// estimate ([Limiter.Hold]), a reservation ([Limiter.Reserve]), tokens in flight ([Concurrency]), or a take from a
// [Spread]. [Receipt.Refund] gives a part back, and [Receipt.Release] gives the rest back. [Receipt.Settle] replaces
// the tokens taken by the cost of the request. The zero Receipt and the receipt of a refused request are void: ending
// them does nothing.
//
// Release and Settle may be called from any goroutine, and concurrently: the first call ends the receipt, and all
// others do nothing. Refund is not safe for concurrent use. A Receipt is a value, so that a take does not allocate. It
// must not be copied once it is in use: a copy would give back the same tokens again.
//
// If a receipt is never ended, the tokens stay taken. A receipt needs no timer, and the limiter keeps no memory for it.
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
// charges the difference. Hold equals TakeReceipt, except that an estimate above the limit counts as the limit. So it
// passes when the bucket is full; otherwise it would never pass. Hold does not allocate.
func (l *Limiter) Hold(k Key, estimate uint64) (d Decision, r Receipt) {
	l.takeReceipt(&d, &r, k, estimate, true)
	return
}

// capped returns the estimate, or the limit of the key if the limit is lower and not 0.
func capped(plan *shard.Plan, k Key, estimate uint64) uint64 {
	if limit := plan.Granted(k.quota).Tokens; estimate > limit && limit > 0 {
		return limit
	}
	return estimate
}

// takeReceipt is TakeReceipt, or [Limiter.Hold] for an estimate, with its results in d and r; r must be zero. It
// repeats the code of take, because passing on and keeping the data for a receipt would cost as much as a third of a
// take.
func (l *Limiter) takeReceipt(d *Decision, r *Receipt, k Key, n uint64, estimate bool) {
	place := l.table.Find(k.hash)
	place.Touch()
	ends := l.table.Ends(place)
	o := shard.Outcome{Verdict: shard.Undecided}
	if n > 0 {
		if line := l.clock.line.Load(); line != nil { // as in AllowKey
			o.At = line.nanosAt(tsc.Read())
		} else {
			o.At = l.clock.nanos()
		}
		if k.quota.IsTier() {
			o.State, o.Plan, o.Verdict = l.table.Hit(place, o.At, n, k.quota.Tier())
		} else {
			o.State, o.Plan, o.Verdict = l.table.HitQuota(place, o.At, n, k.quota)
		}
		runtime.KeepAlive(l)
		if o.Verdict == shard.Admitted {
			// The receipt is written first, so that its stores are complete when the caller copies the receipt and the
			// decision.
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

// takeReceiptSlowly is the rest of takeReceipt, for the case that its fast path has not admitted the request or does
// not apply.
func (l *Limiter) takeReceiptSlowly(
	d *Decision, r *Receipt, k Key, n uint64, place shard.Place, o shard.Outcome, ends shard.Ends, estimate bool,
) {
	if estimate && o.Verdict == shard.Undecided {
		n = capped(l.table.Plan(), k, n)
	}
	switch {
	case n == 0:
		*d, o = l.Peek(k, n), shard.Outcome{}
	case o.Verdict == shard.Refused:
		o = l.takeSlowly(d, k, n, place, o, o.Plan.StatusOf(o.State, o.At, n, k.quota))
	default:
		o = l.takeSlowly(d, k, n, place, o, atomicbucket.Status{})
	}
	if o.Verdict == shard.Admitted {
		r.limiter, r.hash = l, k.hash
		r.of.Enter(&o, n, k.quota, ends)
	} else if d.Allowed {
		// There is nothing to give back, but a higher cost is charged, even if there was no limit at the take.
		r.limiter, r.hash = l, k.hash
		r.of.EnterNone(n, k.quota)
	}
}

// Refund gives back n of the tokens that were taken, or all tokens not given back yet if these are fewer. The record of
// the key becomes what it would be if the tokens had never been taken. If that can no longer be determined, less is
// given back:
//
//   - A token bucket gives back what has not come back already: nothing if the bucket would be full by now. If other
//     callers have reserved ([Limiter.Reserve]) after the take, for this key or for one near it in the table, the
//     bucket gives back only what will not have come back when the last of these reservations is due. Those callers
//     already know when their reservations are due, and need the tokens that come back until then.
//   - A fixed window gives nothing back after the window of the take has ended. If nothing else was taken in the
//     window, the window is over, and the next request begins a new one.
//   - A sliding window counter gives back to the window of the take.
//   - A sliding window log forgets exactly this request.
//   - A key that was reset or evicted after the take gives nothing back. (Resets and evictions are counted for some
//     hundred keys together. So if keys are evicted all the time, a key that was not evicted may give nothing back,
//     too.)
//   - A limiter whose policy was changed after the take gives nothing back, except a log.
//   - Tokens in flight ([Concurrency]) are always released, also after a change of the policy and after evictions of
//     other keys.
func (r *Receipt) Refund(n uint64) {
	if n = min(n, r.of.Tokens()); n > 0 && atomic.LoadUint32(&r.ended) == 0 {
		r.of.Less(n, r.giveBack(n))
	}
}

// Release gives back everything that was not given back yet, as Refund does, and ends the receipt. It reports whether
// this call ended the receipt. It is lock-free and does not allocate. Tokens in flight are released by it:
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

// Settle ends the receipt with the actual cost of the request. If the cost is less than what was taken, the difference
// is given back as by Refund: never more than what is still owed because of this take. So a window that has ended gets
// nothing back, and a bucket gets what has not come back already. If the cost is more, the difference is charged now as
// by [Limiter.Charge], whether the key has the tokens or not, up to [MaxDebt]. Without that option all algorithms but
// buckets count no more than the limit. lost is how many tokens exceeded that bound and were not charged; 0 if all were
// charged.
//
// What was taken before a [Limiter.Reset], an eviction or a [Limiter.SetPolicy] is not given back. (A log gives back
// after SetPolicy.) A cost beyond what was taken is still charged, under the current limit. A closed limiter settles
// like any other.
//
// For what is in flight ([Concurrency]), call Release instead. Settle gives back or charges only the difference. The
// other tokens stay in flight until they are forgotten, because a Release after Settle does nothing.
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

// Charge takes n more tokens from the key of the receipt, whether the key has them or not, as [Limiter.Charge] does. It
// is for a cost that becomes known before or after [Receipt.Settle] or [Receipt.Release]. lost is how many of the n
// tokens were not charged; 0 if all were charged. It does nothing for the zero Receipt, and does not allocate. It may
// be called from any goroutine and concurrently.
func (r *Receipt) Charge(n uint64) (lost uint64) {
	switch {
	case r.spread != nil:
		lost = r.spread.Charge(n)
	case r.limiter != nil:
		_, lost = r.limiter.Charge(Key{r.hash, r.of.Quota()}, n)
	}
	return lost
}

// Taken returns how many tokens were taken and were not given back by [Receipt.Refund]. Settle and Release do not
// change it.
func (r *Receipt) Taken() uint64 { return r.of.Tokens() }

// end reports whether the caller is the one that ends the receipt.
func (r *Receipt) end() bool { return atomic.SwapUint32(&r.ended, 1) == 0 }

// giveBack gives back n of the tokens that were not given back yet, and does not change the receipt. It returns the
// state of the record, if there is one.
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
