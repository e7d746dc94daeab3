package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// Refund gives n tokens of the receipt's take back to the key at p, at the time now. With the zero receipt, the tokens
// belong to no particular take. Only tokens that the key still owes come back. The verdict is Admitted if the key has a
// record.
//
// The verdict is Refused, and nothing is written, in two cases. Either the key has no record, so that its bucket is
// full. Or the receipt is void, because the take's record may have been forgotten before it was idle (R15). The rest of
// the outcome is then the same as from Peek.
func (t *Table) Refund(p Place, now int64, n uint64, tier uint8, receipt Receipt) Outcome {
	return t.RefundAt(p, now, now, n, TierQuota(tier), receipt)
}

// RefundBy does what [Table.Refund] does, but reads the time itself: it calls the function clock after it has read the
// record. So no take of the record is later than the refund, and no token comes back twice, by time and by the refund
// (R7).
//
// If the bucket is still as the take left it, it becomes what it would be if the take had taken n fewer tokens. Then
// RefundBy reads no clock, and the outcome has the time of the take.
func (t *Table) RefundBy(p Place, clock func() int64, n uint64, tier uint8, receipt Receipt) (o Outcome) {
	if !receipt.IsKnown() {
		receipt.EnterNone(n, TierQuota(tier))
	}
	o.State, o.Plan, o.At, o.Verdict = t.RefundOf(p, clock, n, &receipt)
	runtime.KeepAlive(t)
	return o
}

// RefundOf does what RefundBy does, under the quota that the receipt names. It returns the parts of the Outcome
// separately. The caller must keep the table alive.
func (t *Table) RefundOf(p Place, clock func() int64, n uint64, receipt *Receipt) (atomicbucket.State, *Plan, int64, Verdict) {
	if t.entries != nil {
		s, plan, v := t.refundInFlight(p, n, receipt)
		return s, plan, clock(), v
	}
	for ; ; t.shard(p).retries.Add(1) {
		record, plan, sl := t.record(p)
		s := record.State
		// If the version is unchanged, only takes have changed the bucket since the receipt's take. (Refunds that leave
		// the version unchanged made the bucket what it would be if the refunded take had taken less: R15.)
		onlyTakes := t.hitSlots > 0 && n <= receipt.n && receipt.sameVersion(s) && !t.isVoid(receipt, p, plan)
		if onlyTakes && s == receipt.after && t.Watermark()-receipt.at <= int64(plan.skew) {
			if after, ok := sl.state.Move(s, s.Payload()-n*receipt.token()); ok {
				return after, plan, receipt.at, Admitted
			}
			continue
		}
		at := clock()                                                // after the record: R7
		if sl == nil || uint64(at)-t.watermark.Load() > plan.trust { // the clock is late, or far ahead: R7
			record, plan, sl, at = t.recordAt(p, at, at)
			if sl != nil && record.State != s {
				continue
			}
			onlyTakes = false
		}
		if onlyTakes {
			latest, promised := t.latestTimes(p, at)
			onlyTakes = latest == at && promised == at && at-receipt.at <= int64(plan.skew)
		}
		if onlyTakes {
			if after, ok := plan.bucket.RefundBehind(s, receipt.after, plan.bucket.Ticks(at), n*receipt.token(), &sl.state); ok {
				return after, plan, at, Admitted
			}
		} else if after, v, done := t.giveBack(p, record, plan, sl, at, n, receipt); done {
			return after, plan, at, v
		}
	}
}

// RefundAt does what [Table.Refund] does, at a time that may be ahead of the clock: see [Table.TakeAt]. For a log, the
// refund uses the clock's time if that is earlier. The reason is that a request that leaves the window in between still
// counts for calls at the clock's time.
func (t *Table) RefundAt(p Place, now, clock int64, n uint64, q Quota, receipt Receipt) Outcome {
	defer runtime.KeepAlive(t)
	if !receipt.IsKnown() {
		receipt.EnterNone(n, q)
	}
	if t.rings != nil && !t.buckets {
		now = min(now, clock)
	}
	if t.entries != nil {
		s, plan, v := t.refundInFlight(p, n, &receipt)
		return Outcome{State: s, Plan: plan, At: now, Verdict: v}
	}
	for ; ; t.shard(p).retries.Add(1) {
		record, plan, sl, at := t.recordAt(p, now, clock)
		if after, v, done := t.giveBack(p, record, plan, sl, at, n, &receipt); done {
			return Outcome{State: after, Plan: plan, At: at, Verdict: v}
		}
	}
}

// giveBack gives n tokens back to the key at p, at a time. r is the key's record, as read from the slot sl. done is
// false if the slot holds another state by now.
func (t *Table) giveBack(
	p Place, r atomicbucket.Record, plan *Plan, sl *slot, at int64, n uint64, receipt *Receipt,
) (after atomicbucket.State, v Verdict, done bool) {
	always := plan.alwaysRefunds(receipt)
	if sl == nil || !always && (plan.ignoresRecords(receipt.quota) || t.isVoid(receipt, p, plan)) {
		return r.State, Refused, true
	}
	if t.prices != nil {
		return t.refundPriced(p, r, plan, sl, at, n, receipt)
	}
	algorithm, quota := plan.algorithm, plan.granted(receipt.quota)
	// The debt may be larger than the limit: because of charges, or because the limit was lowered.
	demand := atomicbucket.Demand{Cost: plan.product(n, quota.Token), Limit: quota.limit, Token: quota.Token}
	latest, promised := t.latestTimes(p, at)
	after, done = algorithm.Refund(r, atomicbucket.Return{
		Now: algorithm.Ticks(at), Latest: algorithm.Ticks(max(latest, promised)), Of: receipt.algorithmReceipt(), Demand: demand,
	}, &sl.state)
	return after, Admitted, done
}

// latestTimes returns two times: the latest at which a request ahead of its clock was granted, and the latest until
// which a reservation of a key near p waits. Each is at least the given time. The caller has read the record before
// (R15).
func (t *Table) latestTimes(p Place, at int64) (latest, promised int64) {
	return max(at, int64(t.leading.Load())), max(at, int64(t.neighbourhood(p).promised.Load()))
}
