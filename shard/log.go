package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// TakeLog is [Table.Take] of a table of sliding logs. It returns also what there is to say
// about the record after the take, or when it was refused; if not all is wanted, only how
// long a refusal stands, which is no search.
func (t *Table) TakeLog(p Place, now int64, n uint64, tier uint8, all bool) (Outcome, atomicbucket.Reading) {
	defer runtime.KeepAlive(t)
	for {
		o, reading := t.hitLog(p, now, n, tier, all)
		if o.Verdict != Undecided {
			return o, reading
		}
		at := t.catchUp(now)
		if o = t.insert(p, request{at, n, tier}); o.Verdict != Undecided {
			return o, o.Read(0, tier) // a record of one request, or none
		}
		now = at
		t.shard(p).retries.Add(1)
	}
}

// hitLog takes from the key's live record.
func (t *Table) hitLog(p Place, now int64, n uint64, tier uint8, all bool) (Outcome, atomicbucket.Reading) {
	for {
		s, plan, sl := t.record(p)
		if sl == nil || n > plan.Quota(tier).Tokens || uint64(now)-t.mark.Load() > plan.skew { // R7
			return undecided, atomicbucket.Reading{}
		}
		rule, tick, d := plan.log, plan.log.Ticks(now), plan.Quota(tier).Demand(n)
		r := t.ring(sl, rule, s, tick)
		// No more than the limit with this request: the one that would be one too many
		// has left the window.
		if lack := r.left(d.Limit-d.Cost, tick); lack > 0 {
			reading := atomicbucket.Reading{RetryAfter: rule.Wait(now, lack)}
			if all {
				reading = r.read(now, tick, d)
			}
			if sl.state.Load() == s { // R2
				return Outcome{s, plan, now, plan.refusal(lack)}, reading
			}
		} else {
			reading := atomicbucket.Reading{}
			if all {
				reading = r.read(now, tick, d)
				reading.Remaining -= n
			}
			if r.fill(sl) { // the last change, before this one takes its place: R10
				if after, ok := sl.state.Move(s, rule.Push(s, tick, n)); ok {
					if all && reading.ResetAfter == 0 { // it is the only one
						reading.ResetAfter = rule.Wait(now, rule.Rest(after, tick))
					}
					return Outcome{after, plan, now, Admitted}, reading
				}
			}
		}
		t.shard(p).retries.Add(1)
	}
}

// LookLog is [Table.Look] of a table of sliding logs, for somebody in a tier who asks for n
// tokens.
func (t *Table) LookLog(p Place, now int64, n uint64, tier uint8) (Outcome, atomicbucket.Reading) {
	defer runtime.KeepAlive(t)
	for {
		s, plan, sl, at := t.recordAt(p, now)
		o := Outcome{State: s, Plan: plan, At: at}
		if sl == nil {
			return o, o.Read(n, tier)
		}
		tick := plan.log.Ticks(at)
		r := t.ring(sl, plan.log, s, tick)
		reading := r.read(at, tick, plan.Quota(tier).Demand(n))
		if sl.state.Load() == s { // R2
			return o, reading
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
