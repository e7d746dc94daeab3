package shard

import "github.com/weir-go/weir/atomicbucket"

// overflowed decides a request for a key without a record, if the key's probe window has no slot to claim. The victim
// is the live record in that window that owes the least, if there is one. The outcome is undecided if another call has
// changed that record.
func (t *Table) overflowed(p Place, r *request, least victim) Outcome {
	sl, victim, plan := least.slot, least.state, least.plan
	if t.overflow == Admit {
		t.shard(p).unrecorded.Add(1)
		demand, _ := r.first(plan, plan.granted(r.quota))
		state := atomicbucket.NewState(plan.live, 0, t.firstTake(plan, r.now, demand))
		plan.tell(state, r.now, r)
		return Outcome{State: state, Plan: plan, At: r.now, Verdict: Unrecorded}
	}
	if t.overflow == Refuse || sl == nil || t.entries != nil { // what is in flight is not forgotten: R26
		// If the policy is Evict but no record is live, other goroutines are inserting in every slot of the probe
		// window. Waiting for them would not be lock-free, and admitting the request would break I1.
		if sl != nil && sl.state.Load() != victim { // R2
			return undecided
		}
		t.shard(p).noRoom.Add(1)
		return Outcome{State: victim, Plan: plan, At: r.now, Verdict: NoRoom}
	}
	claimed, victims, o := atomicbucket.State(0), t.Find(sl.key.Load()), undecided
	if t.end(victims, func() (ok bool) { // so debt and key were the victim's
		claimed, ok = sl.state.Claim(victim, t.claimant)
		return ok
	}) {
		t.shard(p).evictions.Add(1)
		t.shard(p).forgiven.Add(plan.algorithm.Tokens(least.owed))
		plan.forget(t.shard(p).counters, victim, r.clock)
		o = t.publish(p, sl, claimed, r)
	}
	if t.neighbourhood(victims) == t.neighbourhood(p) {
		o.ended = 1 // counted as begun, before the take: R15
	}
	return o
}

// least returns the live record of p's probe window to evict: the record with the least debt. For policies other than
// Evict, it returns the live record that will be idle first. If no record is live, the result has a nil slot and a full
// record. ok is false if there is now a slot to claim, or if the key now has a record. With token buckets, least is
// called only if the search of the insert found no such record.
func (t *Table) least(p Place, now int64) (found victim, ok bool) {
	var least uint64
	for i := uint64(0); i < t.probeWindow; i++ {
		sl := p.at(i)
		s := sl.state.Load()
		if s.Tag() == atomicbucket.Claimed || s.Tag() == atomicbucket.Tentative {
			continue
		}
		follows := t.current() // after the state: R9
		if s.Tag() != follows.live || sl.key.Load()&^tierMask == p.fingerprint || follows.idle(s, now) {
			return victim{}, false
		}
		m := follows.algorithm.UntilIdle(s, follows.algorithm.Ticks(now))
		if t.overflow == Evict {
			m = t.debt(sl, s, follows, now)
		}
		if found.slot == nil || m < least {
			found, least = victim{sl, s, follows, m}, m
		}
	}
	if found.slot == nil {
		found.plan = t.current()
		found.state = found.plan.full(now).State
	}
	return found, true
}

// debt returns how much of its limit a record has used.
func (t *Table) debt(sl *slot, s atomicbucket.State, plan *Plan, now int64) uint64 {
	return plan.algorithm.Debt(atomicbucket.Record{State: s, Ring: t.ring(sl)}, plan.algorithm.Ticks(now))
}
