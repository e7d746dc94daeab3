package shard

import "github.com/weir-go/weir/atomicbucket"

// overflowed decides for a key without a record whose probe window has no slot to reuse.
// It is undecided when another call changed that meanwhile.
func (t *Table) overflowed(p Place, r *request) Outcome {
	sl, victim, plan, ok := t.least(p, r.clock)
	if !ok {
		return undecided
	}
	if t.overflow == Admit {
		t.shard(p).unrecorded.Add(1)
		demand, _ := r.first(plan, plan.granted(r.quota))
		state := atomicbucket.NewState(plan.live, 0, plan.first(r.now, demand))
		plan.tell(state, r.now, r)
		return Outcome{State: state, Plan: plan, At: r.now, Verdict: Unrecorded}
	}
	if t.overflow == Refuse || sl == nil || t.entries != nil { // what is in flight is not forgotten: R26
		// Evict without a live record: other goroutines are inserting in every
		// slot of the probe window. Waiting for them would not be lock-free, admitting
		// would break I1.
		if sl != nil && sl.state.Load() != victim { // R2
			return undecided
		}
		t.shard(p).noRoom.Add(1)
		return Outcome{State: victim, Plan: plan, At: r.now, Verdict: NoRoom}
	}
	debt := t.debt(sl, victim, plan, r.clock)
	claimed, victims, o := atomicbucket.State(0), t.Find(sl.key.Load()), undecided
	if t.end(victims, func() (ok bool) { // so debt and key were the victim's
		claimed, ok = sl.state.Claim(victim, t.claimant)
		return ok
	}) {
		t.shard(p).evictions.Add(1)
		t.shard(p).forgiven.Add(plan.algorithm.Tokens(debt))
		plan.forget(t.shard(p).counters, victim, r.clock)
		o = t.publish(p, sl, claimed, r)
	}
	if t.neighbourhood(victims) == t.neighbourhood(p) {
		o.ended = 1 // counted as begun, before the take: R15
	}
	return o
}

// least returns the live record of p's probe window that is to be evicted, the one with the
// least debt, or under the other policies the one that will be idle first, and the plan
// that it follows; nil and a full record when no record is live. It is not ok when there is a
// free or idle slot, or the key's own record, meanwhile.
func (t *Table) least(p Place, now int64) (found *slot, state atomicbucket.State, plan *Plan, ok bool) {
	var least uint64
	for i := uint64(0); i < t.probeWindow; i++ {
		sl := p.at(i)
		s := sl.state.Load()
		if s.Tag() == atomicbucket.Claimed || s.Tag() == atomicbucket.Tentative {
			continue
		}
		follows := t.current() // after the state: R9
		if s.Tag() != follows.live || sl.key.Load()&^tierMask == p.fingerprint || follows.idle(s, now) {
			return nil, 0, nil, false
		}
		m := follows.algorithm.UntilIdle(s, follows.algorithm.Ticks(now))
		if t.overflow == Evict {
			m = t.debt(sl, s, follows, now)
		}
		if found == nil || m < least {
			found, state, plan, least = sl, s, follows, m
		}
	}
	if found == nil {
		plan = t.current()
		state = plan.full(now).State
	}
	return found, state, plan, true
}

// debt returns how much of its limit a record has used up.
func (t *Table) debt(sl *slot, s atomicbucket.State, plan *Plan, now int64) uint64 {
	return plan.algorithm.Debt(atomicbucket.Record{State: s, Ring: t.ring(sl)}, plan.algorithm.Ticks(now))
}
