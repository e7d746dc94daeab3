package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// A Verdict is the outcome of [Table.Take].
type Verdict uint8

const (
	// Refused: the record does not have the tokens. Nothing was written.
	Refused Verdict = iota
	// Doubtful: refused, but the wait is so short that a late clock may be the reason. Only plans with a lateness
	// ([NewPlan]) return it.
	Doubtful
	// Admitted: the tokens were charged to the key's record.
	Admitted
	// NoRoom: refused, because there is no slot for a record of the key, or no free entry (R26). Without a slot, under
	// the policy Refuse, the state belongs to the record in the probe window that will be idle first.
	NoRoom
	// Unrecorded: as NoRoom, but the policy is to admit. Without a slot, the state is what the key's record would have.
	Unrecorded
	// TooMuch: the call asks for more tokens than the limit. The outcome has no state.
	TooMuch
	// Undecided: nothing was taken, and the caller must continue with another call.
	Undecided
	// UnlimitedQuota: the quota admits everything. The outcome has no state.
	UnlimitedQuota
)

// Admits reports whether the verdict admits the request.
func (v Verdict) Admits() bool { return v == Admitted || v == Unrecorded || v == UnlimitedQuota }

// Refuses reports whether the verdict is a refusal because the key's record does not have the tokens.
func (v Verdict) Refuses() bool { return v <= Doubtful }

// An Outcome is the result of a call on a key.
type Outcome struct {
	State   atomicbucket.State // the record after the take, or the record that refused it
	Plan    *Plan              // the plan that the state follows
	At      int64              // the time of the decision: the call's time, or the watermark if that is later
	Verdict Verdict

	// ended is how many tenures near the key the call ended by force before its take (R15), or the useNumber of its
	// entry (R26).
	ended uint32
}

// A request has the demand of a take, and its times.
type request struct {
	now       int64
	clock     int64 // the time of the limiter's clock, to which the watermark may move: see callTimes
	n         uint64
	minTokens uint64 // the fewest tokens that a request of mode modeFill accepts
	quota     Quota
	mode      mode
	status    *atomicbucket.Status // receives what the client may want to know, if it is not nil
	charged   *uint64              // receives how many tokens a charge took

	hasFollowed bool // the watermark has followed the clock
	clockAhead  bool // the call's clock is ahead of the machine's: R23
	entryRef         // the entry of the request, in a shared table of limits in flight: R26
}

var undecided = Outcome{Verdict: Undecided}

// Take takes n tokens (n >= 1) from the key at p at the time now. This time is in nanoseconds from any fixed origin,
// and not negative. The limit is the quota of a tier of the current plan; tier is below [MaxTiers]. Take is lock-free:
// it retries only if another call on this probe window has succeeded.
func (t *Table) Take(p Place, now int64, n uint64, tier uint8) Outcome {
	defer runtime.KeepAlive(t)
	s, plan, v := t.Hit(p, now, n, tier)
	if v != Undecided {
		return Outcome{State: s, Plan: plan, At: now, Verdict: v}
	}
	return t.miss(p, request{now: now, clock: now, n: n, quota: TierQuota(tier)})
}

// Decide does what [Table.Take] does, and sets *status to what the client may want to know: the status of the record
// after the take, or the wait if the record refused. *status is unchanged if the outcome has no state, or if a full
// probe window gave the verdict NoRoom.
func (t *Table) Decide(p Place, now int64, n uint64, tier uint8, status *atomicbucket.Status) Outcome {
	return t.TakeAt(p, now, now, n, TierQuota(tier), status)
}

// TakeAt does what [Table.Take] does, with any quota, and also what [Table.Decide] does if status is not nil. The time
// now may be ahead of the time of the limiter's clock (clock) by at most the skew of the plan. It applies to this
// decision only, because the watermark follows the clock (R7).
func (t *Table) TakeAt(p Place, now, clock int64, n uint64, q Quota, status *atomicbucket.Status) Outcome {
	defer runtime.KeepAlive(t)
	s, plan, v := atomicbucket.State(0), (*Plan)(nil), Undecided
	if now <= clock { // otherwise the call must record that the request is ahead: R15
		s, plan, v = t.hitAny(p, now, n, q)
	}
	if v == Undecided {
		return t.miss(p, request{now: now, clock: clock, n: n, quota: q, status: status})
	}
	if v == Admitted {
		n = 0
	}
	if status != nil {
		*status = plan.StatusOf(s, now, n, q)
	}
	return Outcome{State: s, Plan: plan, At: now, Verdict: v}
}

// hitLines is how many lines of a probe window Hit searches. If live records fill 0.6 of the table, 98 of 100 records
// are in these lines.
const hitLines = 2

// Hit handles the common case of Take in a table of token buckets; in other tables its verdict is always Undecided.
// After an undecided Hit, the caller calls [Table.Miss]. The caller must keep the table alive, since its slots may lie
// outside the Go heap.
//
// Hit is exported so that callers for which nanoseconds count can save a call. It calls no other function, so that its
// values stay in registers, and it searches only the first lines.
func (t *Table) Hit(p Place, now int64, n uint64, tier uint8) (atomicbucket.State, *Plan, Verdict) {
	sl, label := p.home, p.fingerprint|uint64(tier%MaxTiers)<<tierShift
	for i := uint64(0); i < t.hitSlots; { // without a post statement, a fifth faster if records are near home
		s := sl.state.Load()
		if sl.key.Load() != label { // the key after the state: R1
			if s == 0 {
				break // R5
			}
			i++
			sl = p.slot(i)
			continue
		}
		plan := t.plan.Load() // after the state: R9
		if s.Tag() != plan.live {
			if s.IsLive() {
				break // the record follows another plan
			}
			i++
			sl = p.slot(i)
			continue
		}
		quota := &plan.quotas[tier%MaxTiers]
		if n > quota.Tokens || uint64(now)-t.watermark.Load() > plan.trust || // late, or far ahead: R7
			t.planned.Load() != plan.planned { // or the plan is not the current one: R21
			break
		}
		tick, demand := plan.bucket.Ticks(now), quota.Demand(n)
		payload, ok := plan.bucket.Take(s.Record(), tick, demand)
		if !ok {
			if sl.state.Load() == s { // R2
				return s, plan, plan.refusalAfter(payload - tick - demand.Limit)
			}
		} else if s, ok = sl.state.Move(s, payload); ok {
			return s, plan, Admitted
		}
		// Try the same slot again at once, because its line is in the processor's cache now.
	}
	return 0, nil, Undecided
}

// Miss does what [Table.Take] does, after an undecided [Table.Hit], and also what [Table.Decide] does if status is not
// nil. It gives the key a record, settles a tentative record, or returns why it cannot. The caller must keep the table
// alive.
func (t *Table) Miss(p Place, now int64, n uint64, tier uint8, status *atomicbucket.Status) Outcome {
	return t.MissQuota(p, now, n, TierQuota(tier), status)
}

// MissQuota does what Miss does, for any quota.
func (t *Table) MissQuota(p Place, now int64, n uint64, q Quota, status *atomicbucket.Status) Outcome {
	return t.miss(p, request{now: now, clock: now, n: n, quota: q, status: status})
}

// hitAny does what Hit, HitTier or HitQuota does, depending on the quota.
func (t *Table) hitAny(p Place, now int64, n uint64, q Quota) (atomicbucket.State, *Plan, Verdict) {
	if q.IsTier() {
		if t.prices != nil {
			return t.HitTier(p, now, n, q)
		}
		return t.Hit(p, now, n, q.Tier())
	}
	return t.HitQuota(p, now, n, q)
}

func (t *Table) miss(p Place, r request) Outcome {
	if t.hitSlots == 0 { // Hit has not searched, because it does not decide in such a table
		if o := t.hit(p, &r); o.Verdict != Undecided {
			t.concludeEntry(&r, &o)
			return o
		}
	}
	ended := uint32(0)
	for now, clock := r.now, r.clock; ; {
		r.now, r.clock = t.callTimes(now, clock)
		r.hasFollowed, r.clockAhead = true, false
		o := t.insert(p, &r)
		if r.clockAhead {
			now, clock = t.trustedTimes(now, clock)
		}
		ended += o.ended
		if o.Verdict == TooMuch && r.mode == modeTake && o.Plan.refusals != Nothing {
			t.penalizeTooMuch(p, r)
		}
		if o.Verdict == Undecided {
			o = t.hit(p, &r)
		}
		if o.Verdict != Undecided {
			o.ended = ended
			t.concludeEntry(&r, &o)
			return o
		}
		t.shard(p).retries.Add(1)
	}
}

// hit takes from the key's live record, whatever the algorithm.
func (t *Table) hit(p Place, r *request) Outcome {
	if r.mode >= modeCharge {
		return t.chargeRecord(p, r)
	}
	for {
		record, plan, sl := t.record(p)
		quota := plan.granted(r.quota)
		if sl == nil || r.n > quota.Tokens || uint64(r.now)-t.watermark.Load() > plan.maxAhead(r) { // R7
			return undecided
		}
		demand, view := quota.Demand(r.n), t.view(p, record, plan, quota.Token, r.now, r.clock)
		if payload, ok := t.take(plan, view.Record, r.now, demand); !ok && plan.refusals != Nothing && r.mode == modeTake {
			if o := t.penalize(p, view, plan, sl, r, quota); o.Verdict != Undecided {
				return o
			}
		} else if !ok && view.isFaster() && r.mode == modeTake {
			if t.lowerPrice(p, sl, view, plan, r) {
				continue
			}
		} else if !ok {
			verdict := plan.refusalOf(view, r.now, demand)
			hasRoom := false
			if r.status != nil {
				*r.status = plan.statusOf(view, r.now, demand)
				hasRoom = r.status.RetryAfter == 0 // by a concurrent exchange: R10
			}
			if sl.state.Load() == record.State && !hasRoom { // R2
				return Outcome{State: view.State, Plan: plan, At: r.now, Verdict: verdict}
			}
		} else if plan.flush(record, r.now, &sl.state) { // R10
			if r.status != nil { // before the move: after it, the ring may change
				*r.status = plan.status(view.After(payload), r.now, quota.Demand(0))
			}
			if ok = t.entries == nil; !ok {
				payload, ok = t.prepareEntry(r, sl, record.State, payload, demand.Cost)
			}
			if !ok {
				return t.noEntryOutcome(p, record.State, plan, r.now)
			}
			t.recordLead(r.now, r.clock)
			t.relabel(p, sl, r.quota)
			if after, ok := t.move(sl, view, plan, payload, r.now); ok {
				plan.countForgotten(t.shard(p).counters, record.State, r.now)
				t.confirmEntry(r)
				return Outcome{State: after, Plan: plan, At: r.now, Verdict: Admitted}
			}
		}
		t.shard(p).retries.Add(1)
	}
}
