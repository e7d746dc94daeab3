package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// TakeLog is [Table.Take] of a table of sliding logs. It returns also what there is to say
// about the record after the take, or when it was refused; if not all is wanted, only how
// long a refusal stands, which is no search.
func (t *Table) TakeLog(p Place, now int64, n uint64, tier uint8, all bool) (Outcome, atomicbucket.Status) {
	defer runtime.KeepAlive(t)
	for {
		o, status := t.hitLog(p, now, n, tier, all)
		if o.Verdict != Undecided {
			return o, status
		}
		at := t.catchUp(now)
		if o = t.insert(p, request{at, n, tier}); o.Verdict != Undecided {
			return o, o.Status(0, tier) // a record of one request, or none
		}
		now = at
		t.shard(p).retries.Add(1)
	}
}

// hitLog takes from the key's live record.
func (t *Table) hitLog(p Place, now int64, n uint64, tier uint8, all bool) (Outcome, atomicbucket.Status) {
	for {
		s, plan, sl := t.record(p)
		if sl == nil || n > plan.Quota(tier).Tokens || uint64(now)-t.watermark.Load() > plan.skew { // R7
			return undecided, atomicbucket.Status{}
		}
		algorithm, tick, d := plan.log, plan.log.Ticks(now), plan.Quota(tier).Demand(n)
		r := t.ring(sl, algorithm, s, tick)
		// No more than the limit with this request: the one that would be one too many
		// has left the window.
		if shortfall := r.left(d.Limit-d.Cost, tick); shortfall > 0 {
			status := atomicbucket.Status{RetryAfter: algorithm.Wait(now, shortfall)}
			if all {
				status = r.read(now, tick, d)
			}
			if sl.state.Load() == s { // R2
				return Outcome{s, plan, now, plan.refusal(shortfall)}, status
			}
		} else {
			status := atomicbucket.Status{}
			if all {
				status = r.read(now, tick, d)
				status.Remaining -= n
			}
			if r.fill(sl) { // the last change, before this one takes its place: R10
				if after, ok := sl.state.Move(s, algorithm.Push(s, tick, n)); ok {
					if all && status.ResetAfter == 0 { // it is the only one
						status.ResetAfter = algorithm.Wait(now, algorithm.UntilIdle(after, tick))
					}
					return Outcome{after, plan, now, Admitted}, status
				}
			}
		}
		t.shard(p).retries.Add(1)
	}
}

// PeekLog is [Table.Peek] of a table of sliding logs, for somebody in a tier who asks for n
// tokens.
func (t *Table) PeekLog(p Place, now int64, n uint64, tier uint8) (Outcome, atomicbucket.Status) {
	defer runtime.KeepAlive(t)
	for {
		s, plan, sl, at := t.recordAt(p, now)
		o := Outcome{State: s, Plan: plan, At: at}
		if sl == nil {
			return o, o.Status(n, tier)
		}
		tick := plan.log.Ticks(at)
		r := t.ring(sl, plan.log, s, tick)
		status := r.read(at, tick, plan.Quota(tier).Demand(n))
		if sl.state.Load() == s { // R2
			return o, status
		}
	}
}

// refundLog is [Table.Refund] of a table of sliding logs: it forgets the newest n tokens'
// requests.
func (t *Table) refundLog(p Place, now int64, n uint64, tier uint8) Outcome {
	for {
		s, plan, sl, at := t.recordAt(p, now)
		if sl == nil {
			return Outcome{State: s, Plan: plan, At: at}
		}
		tick := plan.log.Ticks(at)
		r := t.ring(sl, plan.log, s, tick)
		if !r.fill(sl) {
			continue
		}
		n := min(n, plan.Quota(tier).Tokens, r.used(tick))
		if n == 0 {
			return Outcome{s, plan, at, Admitted}
		}
		payload := plan.log.Pack(atomicbucket.Log{Newest: r.log.Newest, Head: r.position(n), Pending: n, Emptied: true})
		// With another version: a refund and a request could else make the state what it was,
		// with another ring behind it (R10).
		if after, ok := sl.state.Convert(s, plan.live, payload); ok {
			return Outcome{after, plan, at, Admitted}
		}
		t.shard(p).retries.Add(1)
	}
}
