package engine

import (
	"fmt"
	"runtime"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// Refund gives n tokens back to the key: for a request that was admitted and then cost less, or nothing. What was not
// taken is not given: a key never has more than the limit. It is shorthand for RefundKey(l.Key(key), n).
//
// It does not say which request the tokens are for. So it gives back what is certain never to let through more than the
// limit of those that are not given back, if the request was in the present window of a fixed window, and in the
// present window or the one before of a sliding window counter; a sliding window log forgets the oldest requests in the
// window. Of a token bucket that is certain at once: later, what has come back by itself and was taken by others is
// given back once more. While a reservation ([Limiter.Reserve]) of the key, or of one of some hundred near it, waits
// for its time, and while a request that was made ahead of the clock ([Limiter.TakeAt], up to [MaxLead]) is ahead of it
// still, no bucket takes anything back, and no window or log what that request took. What is in flight ([Concurrency])
// leaves, beginning with what would be forgotten first. To give back just what one request took, and all that it may,
// take with [Limiter.TakeReceipt].
func (l *Limiter) Refund(key string, n uint64) { l.RefundKey(l.madeKey(key), n) }

// RefundKey is [Limiter.Refund] for a key that is hashed already.
func (l *Limiter) RefundKey(k Key, n uint64) {
	l.requireMade()
	if n > 0 {
		var none shard.Receipt
		none.EnterNone(n, k.quota)
		l.table.RefundOf(l.table.Find(k.hash), l.clock.latest, n, &none)
		runtime.KeepAlive(l)
	}
}

// RefundAt is RefundKey at a time that the caller supplies: see [Limiter.TakeAt]. At a time that is further ahead than
// [MaxLead] nothing is given back, and that is an error.
func (l *Limiter) RefundAt(k Key, n uint64, now time.Time) error {
	l.requireMade()
	nanos, clock, early := l.instant(now)
	if early > 0 {
		return tooEarly("RefundAt", now, early)
	}
	if n > 0 {
		l.table.RefundAt(l.table.Find(k.hash), nanos, clock, n, k.quota, shard.Receipt{})
	}
	return nil
}

// tooEarly is the error for a time that is too far ahead.
func tooEarly(verb string, now time.Time, early time.Duration) error {
	return fmt.Errorf("engine: %s(%v): that is %v ahead of the limiter's clock: want at most %v", verb, now,
		early+MaxLead, MaxLead)
}

// A Receipt is for what one take took: see [Limiter.TakeReceipt]. The zero Receipt is for nothing. It is not safe for
// concurrent use, and must not be copied once it is in use: a copy would give back the same tokens again.
type Receipt struct {
	limiter *Limiter
	hash    uint64 // of the key
	of      shard.Receipt
}

// TakeReceipt is [Limiter.TakeKey] with a receipt for what was taken, by which it can be given back later. It does not
// allocate.
func (l *Limiter) TakeReceipt(k Key, n uint64) (Decision, Receipt) {
	var a Answer
	l.takeReceipt(&a.Decision, &a.Receipt, k, n, false)
	return a.Decision, a.Receipt
}

// takeReceipt is TakeReceipt into d and r, which is zero, or [Limiter.HoldKey] of an estimate. It is take written out,
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
	} else if estimate && d.Allowed {
		// There is nothing to give back, but what costs more than the estimate is charged: also if there was no limit
		// then.
		r.limiter, r.hash = l, k.hash
		r.of.EnterNone(n, k.quota)
	}
}

// Refund gives n of the tokens back that the take took, or all of those that were not given back yet if they are fewer.
// The record of the key becomes what it would be had they never been taken, or where that is not known any more rather
// less than that:
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
	if n = min(n, r.of.Tokens()); n > 0 && r.of.IsKnown() {
		r.of.Less(n, r.giveBack(n))
	}
}

// giveBack gives n tokens back, of those that were not given back yet, and leaves the receipt what it is. It returns
// the state of the record.
func (r *Receipt) giveBack(n uint64) atomicbucket.State {
	l := r.limiter
	s, _, _, _ := l.table.RefundOf(l.table.Find(r.hash), l.clock.latest, n, &r.of)
	runtime.KeepAlive(l)
	return s
}
