package engine

import (
	"runtime"
	"sync/atomic"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/spread"
	"github.com/weir-go/weir/internal/tsc"
	"github.com/weir-go/weir/shard"
)

// A Receipt identifies the tokens that one call took, so that they can be given back. That call may be a take
// ([Limiter.TakeReceipt]), a hold of an estimate ([Limiter.Hold]), a reservation ([Limiter.Reserve]), or a take from a
// [Spread]. The tokens may also be in flight ([Concurrency]). [Receipt.Refund] gives a part of the tokens back, and
// [Receipt.Release] gives the rest back. [Receipt.Settle] replaces the tokens taken by the cost of the request. The
// zero Receipt and the receipt of a refused request are void: Refund, Release and Settle do nothing with them.
//
// Release and Settle may be called from any goroutine, and concurrently: the first call ends the receipt, and all other
// calls do nothing. Refund is not safe for concurrent use. A Receipt is a value, so that a take does not allocate. Do
// not copy a Receipt that is in use: a copy would give back the same tokens again.
//
// If a receipt is never ended, the tokens stay taken. A receipt needs no timer, and the limiter keeps no memory for it.
type Receipt struct {
	limiter *Limiter
	hash    uint64 // of the key, or, for a take from a Spread, the time of the take
	of      shard.Receipt
	spread  *Spread // set instead of limiter for a take from a Spread
	terms   *spread.Terms
	ended   uint32 // not an atomic.Uint32, so that a Receipt can be returned
}

// TakeReceipt does what [Limiter.TakeKey] does, and also returns a receipt for the tokens that it took. It does not
// allocate.
func (l *Limiter) TakeReceipt(k Key, n uint64) (d Decision, r Receipt) {
	l.takeReceipt(&d, &r, k, n, false)
	return
}

// Hold takes the estimated number of tokens from the key, all or none, for a request that may cost less or more. The
// cost may be the tokens of a language model, the bytes of an answer, or the time of a query. When the cost is known,
// [Receipt.Settle] gives back or charges the difference. Hold does the same as TakeReceipt, except that an estimate
// above the limit counts as the limit. So such a request is admitted when the bucket is full, instead of never. Hold
// does not allocate.
func (l *Limiter) Hold(k Key, estimate uint64) (d Decision, r Receipt) {
	l.takeReceipt(&d, &r, k, estimate, true)
	return
}

// capped returns the estimate, or, if the limit of the key is lower and not 0, this limit.
func capped(plan *shard.Plan, k Key, estimate uint64) uint64 {
	if limit := plan.Granted(k.quota).Tokens; estimate > limit && limit > 0 {
		return limit
	}
	return estimate
}

// takeReceipt does what TakeReceipt does. If the parameter estimate is true, it does what [Limiter.Hold] does instead.
// It writes its results to d and r. The receipt r must be zero. The code of takeReceipt repeats the code of a take. A
// shared function would have to keep and pass on the data for the receipt, and a take would then cost a third more.
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
			// For speed, the receipt is written before the decision: the caller copies both, and a copy of memory that
			// was just written waits for the writes.
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

// takeReceiptSlowly does what takeReceipt does, if its fast path has not admitted the request or does not apply.
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
		// There is nothing to give back, but the receipt charges a higher cost, even if there was no limit at the time
		// of the take.
		r.limiter, r.hash = l, k.hash
		r.of.EnterNone(n, k.quota)
	}
}

// Refund gives back n of the tokens that were taken. If fewer than n tokens have not been given back yet, it gives back
// all of them. The record of the key becomes what it would be if the tokens had never been taken. If that can no longer
// be determined, Refund gives back less:
//
//   - A token bucket gives back the tokens that have not come back already. If the bucket would be full by now, it
//     gives back nothing. If other callers have made reservations ([Limiter.Reserve]) after the take, for this key or
//     for a key near it in the table, the bucket gives back only the tokens that will not have come back when the last
//     of these reservations is due. Those callers already know when their reservations are due, and need the tokens
//     that come back until then.
//   - A fixed window gives nothing back after the window of the take has ended. If nothing else was taken in the
//     window, a refund of all tokens ends the window, and the next request begins a new one.
//   - A sliding window counter gives back to the window of the take.
//   - A sliding window log forgets exactly this request.
//   - If the key was reset or evicted after the take, nothing is given back. (Resets and evictions are counted for some
//     hundred keys together. So if keys are evicted all the time, it may happen that nothing is given back for a key
//     that was not evicted.)
//   - If the policy of the limiter was changed after the take, nothing is given back, except by a log.
//   - Tokens in flight ([Concurrency]) are always released, also after a change of the policy and after evictions of
//     other keys.
func (r *Receipt) Refund(n uint64) {
	if n = min(n, r.of.Tokens()); n > 0 && atomic.LoadUint32(&r.ended) == 0 {
		r.of.Less(n, r.giveBack(n))
	}
}

// Release gives back all tokens that were not given back yet, as Refund does, and ends the receipt. It reports whether
// this call ended the receipt. It is lock-free and does not allocate. For a limit in flight, call it when the work is
// done:
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

// Settle ends the receipt with the actual cost of the request. If the cost is less than the tokens taken, the
// difference is given back as by Refund, but only as far as the key still owes tokens because of this take. So a window
// that has ended gets nothing back, and a bucket gets only the tokens that have not come back already. If the cost is
// more than the tokens taken, the difference is charged now as by [Limiter.Charge], whether the key has the tokens or
// not, up to [MaxDebt]. Without that option, the bound of all algorithms except buckets is the limit itself. The result
// lost is how many tokens were above the bound and were not charged. It is 0 if all tokens were charged.
//
// Tokens that were taken before a [Limiter.Reset], an eviction or a [Limiter.SetPolicy] are not given back. (A log
// gives tokens back even after SetPolicy.) But if the cost is above the tokens taken, the difference is still charged,
// under the current limit. After [Limiter.Close], Settle works as before.
//
// For tokens in flight ([Concurrency]), call Release instead. Settle gives back or charges only the difference. The
// other tokens would stay in flight until they are forgotten, because a Release after Settle does nothing.
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
// is for a cost that becomes known before or after [Receipt.Settle] or [Receipt.Release]. The result lost is how many
// of the n tokens were not charged. It is 0 if all tokens were charged. Charge does nothing for the zero Receipt, and
// does not allocate. It may be called from any goroutine and concurrently.
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
// change this number.
func (r *Receipt) Taken() uint64 { return r.of.Tokens() }

// end ends the receipt, and reports whether this call was the first to do so.
func (r *Receipt) end() bool { return atomic.SwapUint32(&r.ended, 1) == 0 }

// giveBack gives back n of the tokens that were not given back yet. It does not change the receipt. It returns the
// state of the record, if the key has a record.
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
