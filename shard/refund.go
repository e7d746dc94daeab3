package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// Refund gives n tokens back to the key at p, at the time now: those of the take that a receipt identifies, or with the
// zero receipt of no take in particular. What was not taken is
// not given: a bucket holds no more than all of it. A key without a record has
// all of it, and a receipt whose record may have been forgotten before it was idle is good for nothing (R15): then
// nothing is written, the verdict is Refused, and the rest of the outcome is that of Peek. Else the verdict is
// Admitted.
func (t *Table) Refund(p Place, now int64, n uint64, tier uint8, of Receipt) Outcome {
	return t.RefundAt(p, now, now, n, TierQuota(tier), of)
}

// RefundBy is [Table.Refund] at the time that a clock reads. It is read after the record, and so is not before any take
// that the record was charged with, however long this goroutine was suspended. Of what a take is given back for, the
// part has come back by itself that time has passed for; at an earlier time that part would be given twice.
//
// A bucket that is still as the take left it is made as if the take had taken so much less, and no clock is read: the
// time of the outcome is then that of the take.
func (t *Table) RefundBy(p Place, clock func() int64, n uint64, tier uint8, of Receipt) (o Outcome) {
	if !of.IsKnown() {
		of.EnterNone(n, TierQuota(tier))
	}
	o.State, o.Plan, o.At, o.Verdict = t.RefundOf(p, clock, n, &of)
	runtime.KeepAlive(t)
	return o
}

// RefundOf is RefundBy under the quota that the receipt names, and the parts of the outcome. The caller keeps the table
// alive.
func (t *Table) RefundOf(p Place, clock func() int64, n uint64, of *Receipt) (atomicbucket.State, *Plan, int64, Verdict) {
	if t.entries != nil {
		s, plan, v := t.returned(p, n, of)
		return s, plan, clock(), v
	}
	for ; ; t.shard(p).retries.Add(1) {
		record, plan, sl := t.record(p)
		s := record.State
		// A bucket to which nothing was given back since, but as if it had never been taken: R15.
		same := t.hits > 0 && n <= of.n && of.in(s) && !t.void(of, p, plan)
		if same && s == of.after && t.Watermark()-of.at <= int64(plan.skew) {
			if after, ok := sl.state.Move(s, s.Payload()-n*of.token()); ok {
				return after, plan, of.at, Admitted
			}
			continue
		}
		at := clock()                                                // after the record: R7
		if sl == nil || uint64(at)-t.watermark.Load() > plan.trust { // late, or far ahead: R7
			record, plan, sl, at = t.recordAt(p, at, at)
			if sl != nil && record.State != s {
				continue
			}
			same = false
		}
		if same {
			latest, promised := t.ahead(p, at)
			same = latest == at && promised == at && at-of.at <= int64(plan.skew)
		}
		if same {
			if after, ok := plan.bucket.RefundBehind(s, of.after, plan.bucket.Ticks(at), n*of.token(), &sl.state); ok {
				return after, plan, at, Admitted
			}
		} else if after, v, done := t.giveBack(p, record, plan, sl, at, n, of); done {
			return after, plan, at, v
		}
	}
}

// RefundAt is [Table.Refund] at a time that may be ahead of a clock: see [Table.TakeAt]. A log is refunded at its
// clock's time at the latest: what has left it only by a later one still counts for those who come now.
func (t *Table) RefundAt(p Place, now, clock int64, n uint64, q Quota, of Receipt) Outcome {
	defer runtime.KeepAlive(t)
	if !of.IsKnown() {
		of.EnterNone(n, q)
	}
	if t.rings != nil && !t.buckets {
		now = min(now, clock)
	}
	if t.entries != nil {
		s, plan, v := t.returned(p, n, &of)
		return Outcome{State: s, Plan: plan, At: now, Verdict: v}
	}
	for ; ; t.shard(p).retries.Add(1) {
		record, plan, sl, at := t.recordAt(p, now, clock)
		if after, v, done := t.giveBack(p, record, plan, sl, at, n, &of); done {
			return Outcome{State: after, Plan: plan, At: at, Verdict: v}
		}
	}
}

// giveBack gives n tokens back to the record of the key at p, which was read before, in its slot, at a time. It is not
// done if the slot holds another state by now.
func (t *Table) giveBack(
	p Place, r atomicbucket.Record, plan *Plan, sl *slot, at int64, n uint64, of *Receipt,
) (after atomicbucket.State, v Verdict, done bool) {
	returns := plan.returns(of)
	if sl == nil || !returns && (plan.looksAtNothing(of.quota) || t.void(of, p, plan)) {
		return r.State, Refused, true
	}
	if t.prices != nil {
		return t.returnPriced(p, r, plan, sl, at, n, of)
	}
	algorithm, quota := plan.algorithm, plan.granted(of.quota)
	// More than the limit may be owed: by charges, or since it fell.
	demand := atomicbucket.Demand{Cost: plan.product(n, quota.Token), Limit: quota.limit, Token: quota.Token}
	latest, promised := t.ahead(p, at)
	after, done = algorithm.Refund(r, atomicbucket.Return{
		Now: algorithm.Ticks(at), Latest: algorithm.Ticks(max(latest, promised)), Of: of.of(), Demand: demand,
	}, &sl.state)
	return after, Admitted, done
}

// ahead returns the latest time of a request that was granted ahead of its clock, and that until which a reservation
// of a key near p was told to wait, if they are later than a time. It is called after the record was read: R15.
func (t *Table) ahead(p Place, at int64) (latest, promised int64) {
	return max(at, int64(t.leading.Load())), max(at, int64(t.neighbourhood(p).promised.Load()))
}
