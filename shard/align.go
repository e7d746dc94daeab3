package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// When the length of the windows of the clock changes, the table may already have forgotten a key's last window of the
// old length. So a key's first window after the change ends no sooner than the first whole window of the new length
// (R29).

// take calls the algorithm's Take, without an indirect call for the algorithms listed here. It may end a new aligned
// window later (R29).
func (t *Table) take(plan *Plan, r atomicbucket.Record, now int64, d atomicbucket.Demand) (payload uint64, ok bool) {
	switch algorithm := plan.algorithm.(type) {
	case *atomicbucket.FixedWindow:
		tick := algorithm.Ticks(now)
		payload, ok = algorithm.Take(r, tick, d)
		if algorithm.Aligned() && algorithm.Debt(r, tick) == 0 { // also after a full refund, if the clock is late
			payload = algorithm.Later(payload, tick, t.alignedSince(plan))
		}
		return payload, ok
	case *atomicbucket.SlidingWindow:
		return algorithm.Take(r, algorithm.Ticks(now), d)
	case *atomicbucket.SlidingLog:
		return algorithm.Take(r, algorithm.Ticks(now), d)
	case *atomicbucket.Concurrency:
		return algorithm.Take(r, algorithm.Ticks(now), d)
	}
	return plan.algorithm.Take(r, plan.algorithm.Ticks(now), d)
}

func (t *Table) firstTake(plan *Plan, nanos int64, d atomicbucket.Demand) (payload uint64) {
	if plan.isBucket {
		now := plan.bucket.Ticks(nanos)
		full := atomicbucket.State(plan.bucket.Full(now)).Record()
		payload, _ = plan.bucket.Take(full, now, d) // Take reads only the payload
		return payload
	}
	payload, _ = t.take(plan, plan.fullRecord(nanos), nanos, d)
	return payload
}

// alignedSince returns an instant since which the windows of the clock have the length of the given plan. A forgotten
// window of another length ended at that instant or earlier, because it was over at the watermark (R7). The caller must
// have read the plan first, and then found no current window of the key. The result is at most the watermark. The word
// realigned may be later: it may be copied from a table with another clock ([Table.AlignAs]), or written by no call
// (R20).
func (t *Table) alignedSince(plan *Plan) int64 {
	if plan.hasNewGrid && t.isConverting(plan) {
		return t.Watermark()
	}
	return int64(min(t.realigned.Load(), t.watermark.Load()))
}

// isConverting reports whether some records may still follow the plan that the given plan replaced. The given plan is,
// or was, the current plan.
func (t *Table) isConverting(plan *Plan) bool {
	if t.owner != nil {
		return t.change.Load() == plan.planned<<changeShift|changing
	}
	return t.pace.Load()&replacingBit != 0
}

// AlignAs copies from another table the time since which windows of the clock have their current length. A table that
// takes over the debts of another table needs that time.
func (t *Table) AlignAs(from *Table) {
	defer runtime.KeepAlive(t)
	raiseWord(&t.realigned, from.alignedSince(from.current())) // a process may have died while records were converted
	runtime.KeepAlive(from)
}
