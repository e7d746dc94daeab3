package shard

import "github.com/weir-go/weir/atomicbucket"

// decideOverflow decides a request for a key without a record, if the key's probe window has no slot to claim. The
// parameter cheapest is the live record in that window that may be evicted (see findVictim). Its slot is nil if no
// record is live. The outcome is undecided if another call has changed the record.
func (t *Table) decideOverflow(p Place, r *request, cheapest victim) Outcome {
	sl, oldState, plan := cheapest.slot, cheapest.state, cheapest.plan
	if t.overflow == Admit {
		t.shard(p).unrecorded.Add(1)
		demand, _ := r.firstDemand(plan, plan.granted(r.quota))
		state := atomicbucket.NewState(plan.live, 0, t.firstTake(plan, r.now, demand))
		plan.setStatus(state, r.now, r)
		return Outcome{State: state, Plan: plan, At: r.now, Verdict: Unrecorded}
	}
	if t.overflow == Refuse || sl == nil || t.entries != nil { // what is in flight is not forgotten: R26
		// If the policy is Evict but no record is live, other goroutines are inserting in every slot of the probe
		// window. Waiting for them would not be lock-free, and admitting the request would break I1.
		if sl != nil && sl.state.Load() != oldState { // R2
			return undecided
		}
		t.shard(p).noRoom.Add(1)
		return Outcome{State: oldState, Plan: plan, At: r.now, Verdict: NoRoom}
	}
	claimed, victimPlace, o := atomicbucket.State(0), t.Find(sl.key.Load()), undecided
	if t.forceEnd(victimPlace, func() (ok bool) { // so debt and key were the victim's
		claimed, ok = sl.state.Claim(oldState, t.claimant)
		return ok
	}) {
		t.shard(p).evictions.Add(1)
		t.shard(p).forgiven.Add(plan.algorithm.Tokens(cheapest.owed))
		plan.countForgotten(t.shard(p).counters, oldState, r.clock)
		o = t.publish(p, sl, claimed, r)
	}
	if t.neighbourhood(victimPlace) == t.neighbourhood(p) {
		o.ended = 1 // counted as begun, before the take: R15
	}
	return o
}

// findVictim returns the live record of p's probe window to evict: the record with the least debt. For policies other
// than Evict, it returns the live record that will be idle first. If no record is live, the result has a nil slot and a
// full record. ok is false if there is now a slot to claim, or if the key now has a record. With token buckets,
// findVictim is called only if the search of the insert found no such record.
func (t *Table) findVictim(p Place, now int64) (found victim, ok bool) {
	var minCost uint64
	for i := uint64(0); i < t.probeWindow; i++ {
		sl := p.slot(i)
		s := sl.state.Load()
		if s.Tag() == atomicbucket.Claimed || s.Tag() == atomicbucket.Tentative {
			continue
		}
		plan := t.current() // after the state: R9
		if s.Tag() != plan.live || sl.key.Load()&^tierMask == p.fingerprint || plan.idle(s, now) {
			return victim{}, false
		}
		cost := plan.algorithm.UntilIdle(s, plan.algorithm.Ticks(now))
		if t.overflow == Evict {
			cost = t.debt(sl, s, plan, now)
		}
		if found.slot == nil || cost < minCost {
			found, minCost = victim{sl, s, plan, cost}, cost
		}
	}
	if found.slot == nil {
		found.plan = t.current()
		found.state = found.plan.fullRecord(now).State
	}
	return found, true
}

// debt returns how much of its limit a record has used.
func (t *Table) debt(sl *slot, s atomicbucket.State, plan *Plan, now int64) uint64 {
	return plan.algorithm.Debt(atomicbucket.Record{State: s, Ring: t.ring(sl)}, plan.algorithm.Ticks(now))
}
