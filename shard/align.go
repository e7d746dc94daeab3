package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// Windows of the clock may have begun before a change of their length. What a key took in them is then over and
// forgotten. So for each key the first window after the change lasts at least as long as a whole one (R29).

// take is the algorithm's Take, without an indirect call for the algorithms listed.
func (t *Table) take(plan *Plan, r atomicbucket.Record, now int64, d atomicbucket.Demand) (payload uint64, ok bool) {
	switch algorithm := plan.algorithm.(type) {
	case *atomicbucket.FixedWindow:
		tick := algorithm.Ticks(now)
		payload, ok = algorithm.Take(r, tick, d)
		if algorithm.Aligned() && algorithm.Debt(r, tick) == 0 { // also for a late call, if all was given back since
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

// firstTake returns the payload after the first take of a key.
func (t *Table) firstTake(plan *Plan, nanos int64, d atomicbucket.Demand) (payload uint64) {
	if plan.isBucket {
		now := plan.bucket.Ticks(nanos)
		full := atomicbucket.State(plan.bucket.Full(now)).Record()
		payload, _ = plan.bucket.Take(full, now, d) // reads the payload only
		return payload
	}
	payload, _ = t.take(plan, plan.full(nanos), nanos, d)
	return payload
}

// alignedSince returns an instant from which on the windows of the clock have their length under plan. No window of
// another length that has been forgotten ended later, because that window was over at the watermark (R7). The caller
// has read the plan, and has found that the key has no current window. A time that the watermark has not reached is of
// a table with another clock ([Table.AlignAs]), or no process wrote it (R20).
func (t *Table) alignedSince(plan *Plan) int64 {
	if plan.realigns && t.converting(plan) {
		return t.Watermark()
	}
	return int64(min(t.realigned.Load(), t.watermark.Load()))
}

// converting reports whether some records may follow the plan before plan, which is or was the current one.
func (t *Table) converting(plan *Plan) bool {
	if t.owner != nil {
		return t.change.Load() == plan.planned<<changeShift|changing
	}
	return t.pace.Load()&replacing != 0
}

// realign sets the time from which on windows of the clock have a length, unless it is set to a later time.
func (t *Table) realign(since int64) {
	for {
		was := t.realigned.Load()
		if int64(was) >= since || t.realigned.CompareAndSwap(was, uint64(since)) {
			return
		}
	}
}

// AlignAs makes windows of the clock begin as in another table, whose debts this one takes over.
func (t *Table) AlignAs(from *Table) {
	defer runtime.KeepAlive(t)
	t.realign(from.alignedSince(from.current())) // a process may have died while records were converted
	runtime.KeepAlive(from)
}
