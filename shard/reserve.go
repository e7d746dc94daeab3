package shard

import (
	"runtime"
	"time"
)

// Reserve does what [Table.Take] does, for a caller that can wait, in a table of token buckets. Tokens that are not
// available now are taken in advance, if they will be available within the time patience. Outcome.Overdrawn then
// returns how long the caller must wait. Later calls wait behind this caller, because a bucket has one queue.
func (t *Table) Reserve(p Place, now int64, n uint64, tier uint8, patience time.Duration) Outcome {
	return t.ReserveAt(p, now, now, n, TierQuota(tier), patience)
}

// ReserveAt does what [Table.Reserve] does, at a time that may be ahead of a clock: see [Table.TakeAt].
func (t *Table) ReserveAt(p Place, now, clock int64, n uint64, q Quota, patience time.Duration) Outcome {
	defer runtime.KeepAlive(t)
	ended := uint32(0)
	for found := true; ; { // if only Hit finds the record, miss decides (R20)
		o := undecided
		if found && now <= clock {
			o.State, o.Plan, o.Verdict = t.hitAny(p, now, n, q)
			o.At = now
		}
		if o.Verdict == Undecided {
			o = t.miss(p, request{now: now, clock: clock, n: n, quota: q, mode: modeReserve})
		}
		ended += o.ended
		if !o.Verdict.Refuses() {
			o.ended = ended
			return o
		}
		record, plan, sl := t.record(p)
		quota := plan.granted(q)
		if found = sl != nil; !found || n > quota.Tokens || uint64(o.At)-t.watermark.Load() > plan.skew { // R7
			continue
		}
		demand := plan.bucket.Ahead(o.At, patience, quota.Demand(n))
		view := t.view(p, record, plan, quota.Token, o.At, clock)
		payload, ok := plan.bucket.Take(view.Record, plan.bucket.Ticks(o.At), demand)
		if !ok && view.isFaster() { // R27
			if t.lowerPrice(p, sl, view, plan, &request{now: o.At, quota: q}) {
				continue
			}
		} else if !ok {
			if sl.state.Load() == record.State { // R2
				return Outcome{State: view.State, Plan: plan, At: o.At}
			}
		} else {
			outcome := Outcome{State: view.After(payload).State, Plan: plan, At: o.At, Verdict: Admitted, ended: ended}
			if now > clock {
				t.recordLead(o.At, clock)
			}
			if wait := outcome.OverdrawnOf(q); wait > 0 {
				t.recordPromise(p, o.At+int64(wait)) // before the move: R15
			}
			t.relabel(p, sl, q)
			if outcome.State, ok = t.move(sl, view, plan, payload, o.At); ok {
				return outcome
			}
		}
		t.shard(p).retries.Add(1)
	}
}

// Overdrawn returns how long a caller that has taken tokens in advance must wait. It returns 0 if the tokens were
// available.
func (o Outcome) Overdrawn(tier uint8) time.Duration { return o.OverdrawnOf(TierQuota(tier)) }

// OverdrawnOf does what Overdrawn does, for any quota.
func (o Outcome) OverdrawnOf(q Quota) time.Duration {
	return o.Plan.bucket.Overdrawn(o.State, o.At, o.Plan.granted(q).limit)
}

// Buckets reports whether the records are token buckets.
func (t *Table) Buckets() bool { return t.buckets }
