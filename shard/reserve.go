package shard

import (
	"runtime"
	"time"
)

// Reserve is [Table.Take] from a table of token buckets by a caller that is ready to wait: if the
// tokens are not there but will be within that time, they are taken ahead. Outcome.Overdrawn
// then says how long to wait. The next call waits behind: a bucket knows one queue.
func (t *Table) Reserve(p Place, now int64, n uint64, tier uint8, patience time.Duration) Outcome {
	return t.ReserveAt(p, now, now, n, tier, patience)
}

// ReserveAt is [Table.Reserve] at a time that may be ahead of a clock: see [Table.DecideAt].
func (t *Table) ReserveAt(p Place, now, clock int64, n uint64, tier uint8, patience time.Duration) Outcome {
	defer runtime.KeepAlive(t)
	for {
		s, follows, v := t.Hit(p, now, n, tier)
		o := Outcome{s, follows, now, v}
		if v == Undecided {
			o = t.miss(p, request{now, min(now, clock), n, tier, nil})
		}
		if !o.Verdict.Refuses() {
			return o
		}
		record, plan, sl := t.record(p)
		if sl == nil || n > plan.Quota(tier).Tokens || uint64(o.At)-t.watermark.Load() > plan.skew { // R7
			continue
		}
		demand := plan.bucket.Ahead(o.At, patience, plan.quotas[tier%MaxTiers].Demand(n))
		payload, ok := plan.bucket.Take(record, plan.bucket.Ticks(o.At), demand)
		if !ok {
			if sl.state.Load() == record.State { // R2
				return Outcome{State: record.State, Plan: plan, At: o.At}
			}
		} else if after, ok := sl.state.Move(record.State, payload); ok {
			return Outcome{State: after, Plan: plan, At: o.At, Verdict: Admitted}
		}
		t.shard(p).retries.Add(1)
	}
}

// Overdrawn returns how long a caller that has taken ahead has to wait: 0 if the tokens were there.
func (o Outcome) Overdrawn(tier uint8) time.Duration {
	return o.Plan.bucket.Overdrawn(o.State, o.At, o.Plan.quotas[tier%MaxTiers].limit)
}

// Buckets reports whether the records are token buckets.
func (t *Table) Buckets() bool { return t.buckets }
