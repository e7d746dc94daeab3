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
func (t *Table) RefundBy(p Place, clock func() int64, n uint64, tier uint8, of Receipt) Outcome {
	return t.RefundQuota(p, clock, n, TierQuota(tier), of)
}

// RefundQuota is RefundBy for any quota.
func (t *Table) RefundQuota(p Place, clock func() int64, n uint64, q Quota, of Receipt) Outcome {
	defer runtime.KeepAlive(t)
	for {
		before, _, _ := t.record(p)
		now := clock()
		record, plan, sl, at := t.recordAt(p, now, now)
		if sl != nil && record.State != before.State {
			t.shard(p).retries.Add(1)
			continue
		}
		if o, done := t.giveBack(p, record, plan, sl, at, n, q, &of); done {
			return o
		}
	}
}

// RefundAt is [Table.Refund] at a time that may be ahead of a clock: see [Table.TakeAt]. A log is refunded at its
// clock's time at the latest: what has left it only by a later one still counts for those who come now.
func (t *Table) RefundAt(p Place, now, clock int64, n uint64, q Quota, of Receipt) Outcome {
	defer runtime.KeepAlive(t)
	if t.rings != nil {
		now = min(now, clock)
	}
	for {
		record, plan, sl, at := t.recordAt(p, now, clock)
		if o, done := t.giveBack(p, record, plan, sl, at, n, q, &of); done {
			return o
		}
	}
}

// giveBack gives n tokens back to the record of the key at p, which was read before, in its slot, at a time. It is not
// done if the slot holds another state by now.
func (t *Table) giveBack(
	p Place, record atomicbucket.Record, plan *Plan, sl *slot, at int64, n uint64, q Quota, of *Receipt,
) (o Outcome, done bool) {
	returns := plan.returns(of)
	if sl == nil || !returns && (plan.looksAtNothing(q) || t.void(of, p, plan)) {
		return Outcome{State: record.State, Plan: plan, At: at}, true
	}
	algorithm, quota := plan.algorithm, plan.granted(q)
	// A record may owe more than the limit: by charges, or since the limit fell.
	demand := quota.Demand(min(n, plan.most/quota.Token))
	// All of this is read after the record: R15.
	latest := max(at, int64(t.leading.Load()))
	after, ok := algorithm.Refund(record, atomicbucket.Return{
		Now: algorithm.Ticks(at), Latest: algorithm.Ticks(latest), Of: of.of(), Demand: demand,
		Behind: int64(t.neighbourhood(p).promised.Load()) > at,
	}, &sl.state)
	if !ok {
		t.shard(p).retries.Add(1)
	}
	return Outcome{State: after, Plan: plan, At: at, Verdict: Admitted}, ok
}
