package engine

import (
	"runtime"
	"sync/atomic"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/spread"
	"github.com/weir-go/weir/internal/tsc"
	"github.com/weir-go/weir/shard"
)

// A Receipt identifies the tokens that one call took, so that they can be given back. [Limiter.TakeReceipt],
// [Limiter.Hold], [Limiter.Reserve] and other calls return one. [Receipt.Refund] gives a part back, [Receipt.Release]
// gives back all that is left, and [Receipt.Settle] replaces the tokens by the cost of the request. The zero Receipt
// and the receipt of a refused request are void: these methods do nothing with them.
//
// Release and Settle are safe for concurrent use: the first call ends the receipt, and all others do nothing. Refund is
// not safe for concurrent use. Do not copy a Receipt that is in use: a copy would give the same tokens back again. If a
// receipt is never ended, the tokens stay taken. The limiter needs no timer and no memory for a receipt.
type Receipt struct {
	limiter      *Limiter
	hash         uint64 // of the key; for a take from a Spread, the time of the take
	tableReceipt shard.Receipt
	spread       *Spread // set instead of limiter for a take from a Spread
	terms        *spread.Terms
	ended        uint32 // not an atomic.Uint32, so that a Receipt can be returned
}

// TakeReceipt is [Limiter.TakeKey] with a receipt for the tokens that it took. It does not allocate.
func (l *Limiter) TakeReceipt(k Key, n uint64) (d Decision, r Receipt) {
	l.takeReceipt(&d, &r, k, n, false)
	return
}

// Hold takes an estimated number of tokens, all or none, for a request whose cost is known only later, such as the
// tokens of a language model, the bytes of an answer, or the time of a query. [Receipt.Settle] then gives back or
// charges the difference. An estimate above the limit counts as the limit, so such a request is admitted when the
// bucket is full, instead of never. Hold does not allocate.
func (l *Limiter) Hold(k Key, estimate uint64) (d Decision, r Receipt) {
	l.takeReceipt(&d, &r, k, estimate, true)
	return
}

func capEstimate(plan *shard.Plan, k Key, estimate uint64) uint64 {
	if limit := plan.Granted(k.quota).Tokens; estimate > limit && limit > 0 {
		return limit
	}
	return estimate
}

// takeReceipt is TakeReceipt, or [Limiter.Hold] if isEstimate is true. r must be zero. It repeats the code of a take,
// because a function that both use would make a take cost a third more.
func (l *Limiter) takeReceipt(d *Decision, r *Receipt, k Key, n uint64, isEstimate bool) {
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
			// The receipt is written before the decision: the caller copies both, and a copy of memory that was just
			// written waits for the writes.
			r.limiter, r.hash = l, k.hash
			r.tableReceipt.Enter(&o, n, k.quota, ends)
			if k.quota.IsTier() {
				d.Allowed, d.RetryAfter = true, 0
				d.Limit, d.Remaining, d.ResetAfter = o.Plan.Left(o.State, o.At, k.quota.Tier())
				return
			}
			quota := o.Plan.Granted(k.quota)
			d.Allowed, d.Limit, d.RetryAfter = true, quota.Tokens, 0
			d.Remaining, d.ResetAfter = o.Plan.LeftUnder(o.State, o.At, quota)
			return
		}
	}
	l.takeReceiptSlowly(d, r, k, n, place, o, ends, isEstimate)
}

// takeReceiptSlowly is takeReceipt for requests that its fast path has not admitted.
func (l *Limiter) takeReceiptSlowly(
	d *Decision, r *Receipt, k Key, n uint64, place shard.Place, o shard.Outcome, ends shard.Ends, isEstimate bool,
) {
	if isEstimate && o.Verdict == shard.Undecided {
		n = capEstimate(l.table.Plan(), k, n)
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
		r.tableReceipt.Enter(&o, n, k.quota, ends)
	} else if d.Allowed {
		// The take has nothing to give back, but a settlement charges a higher cost.
		r.limiter, r.hash = l, k.hash
		r.tableReceipt.EnterNone(n, k.quota)
	}
}

// Refund gives back n of the tokens that were taken, or all that are left. The record becomes what it would be if the
// tokens had never been taken. If that can no longer be determined, Refund gives back less:
//
//   - A token bucket gives back only tokens that have not come back with time. Other callers may have reserved tokens
//     after the take, for this key or one near it in the table. The bucket then gives back only tokens that will come
//     back after the last of these reservations is due, because the reservations need the others.
//   - A fixed window gives nothing back after the window of the take. If nothing else was taken in it, a refund of all
//     tokens ends the window.
//   - A sliding window counter gives back to the window of the take, and a sliding log forgets exactly this request.
//   - After a change of the policy, nothing is given back, except by a log.
//   - After a reset or eviction of the key, nothing is given back. Resets and evictions are counted for some hundred
//     keys together, so constant evictions may also prevent refunds to a key that was not evicted.
//   - Tokens of a [Concurrency] limit are always released, also after a change of the policy and after evictions of
//     other keys.
func (r *Receipt) Refund(n uint64) {
	if n = min(n, r.tableReceipt.Tokens()); n > 0 && atomic.LoadUint32(&r.ended) == 0 {
		r.tableReceipt.Less(n, r.giveBack(n))
	}
}

// Release gives back all tokens that were not given back yet, as Refund does, and ends the receipt. It reports whether
// this call ended the receipt. It is lock-free and does not allocate. For a [Concurrency] limit, call it when the work
// is done:
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
	r.giveBack(r.tableReceipt.Tokens())
	return true
}

// Settle ends the receipt with the actual cost of the request. If the cost is less than the tokens taken, the
// difference is given back as by Refund. If it is more, the difference is charged as by [Limiter.Charge], up to
// [MaxDebt], also after a reset, an eviction or a change of the policy. The result lost is how many tokens were above
// that bound and were not charged. With [Concurrency], call Release instead: after Settle, tokens stay in flight until
// they are forgotten.
func (r *Receipt) Settle(actual uint64) (lost uint64) {
	if !r.end() {
		return 0
	}
	taken := r.tableReceipt.Tokens()
	if actual > taken {
		return r.Charge(actual - taken)
	}
	r.giveBack(taken - actual)
	return 0
}

// Charge takes n more tokens from the key of the receipt, as [Limiter.Charge] does, before or after the receipt has
// ended. The result lost is how many of them were not charged. For the zero Receipt, Charge does nothing. It is safe
// for concurrent use.
func (r *Receipt) Charge(n uint64) (lost uint64) {
	switch {
	case r.spread != nil:
		lost = r.spread.Charge(n)
	case r.limiter != nil:
		_, lost = r.limiter.Charge(Key{r.hash, r.tableReceipt.Quota()}, n)
	}
	return lost
}

// Taken returns how many tokens were taken and not given back by [Receipt.Refund]. Settle and Release do not change it.
func (r *Receipt) Taken() uint64 { return r.tableReceipt.Tokens() }

func (r *Receipt) end() bool { return atomic.SwapUint32(&r.ended, 1) == 0 }

// giveBack gives back n of the tokens without changing the receipt, and returns the state of the key's record, if any.
func (r *Receipt) giveBack(n uint64) (s atomicbucket.State) {
	switch {
	case n == 0:
	case r.spread != nil:
		r.spread.bucket.Refund(n, r.terms, int64(r.hash))
	case r.tableReceipt.IsKnown():
		l := r.limiter
		s, _, _, _ = l.table.RefundOf(l.table.Find(r.hash), l.clock.latest, n, &r.tableReceipt)
		runtime.KeepAlive(l)
	}
	return s
}
