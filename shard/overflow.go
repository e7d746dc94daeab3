package shard

import "github.com/weir-go/weir/atomicbucket"

// overflowed decides for a key without a record whose window has no slot to reuse.
// It is undecided when another call changed that meanwhile.
func (t *Table) overflowed(p Place, now int64, cost uint64) (atomicbucket.State, int64, Verdict) {
	tick := t.rule.Ticks(now)
	sl, victim := t.leastDebt(p, tick)
	if sl != nil && (!victim.IsLive() || sl.key.Load() == p.fingerprint || t.rule.Idle(victim, tick)) {
		return 0, 0, Undecided // no longer so: it has a record, or there is room
	}
	if t.overflow == Admit {
		t.shard(p).unrecorded.Add(1)
		return atomicbucket.NewState(atomicbucket.Live, 0, t.rule.Fresh(tick, cost)), now, Unrecorded
	}
	if t.overflow == Refuse || sl == nil {
		// Evict without a live record: other goroutines are inserting in every
		// slot of the window. Waiting for them would not be lock-free, admitting
		// would break I1.
		t.shard(p).noRoom.Add(1)
		return victim, now, NoRoom
	}
	claimed, ok := sl.state.Claim(victim)
	if !ok {
		return 0, 0, Undecided
	}
	t.shard(p).evictions.Add(1)
	t.shard(p).forgiven.Add(t.rule.Tokens(t.rule.Debt(victim, tick)))
	return t.publish(p, sl, claimed, now, cost)
}

// leastDebt returns the live record of p's window with the least debt, which is
// also the first to be idle; the key's own record, or a free slot, if there is one
// meanwhile; and nil with an idle state when no record is live.
func (t *Table) leastDebt(p Place, tick uint64) (*slot, atomicbucket.State) {
	found, least := (*slot)(nil), atomicbucket.NewState(atomicbucket.Live, 0, tick)
	for i := uint64(0); i < t.window; i++ {
		sl := p.at(i)
		s := sl.state.Load()
		if s.Tag() == atomicbucket.Claimed || s.Tag() == atomicbucket.Tentative {
			continue
		}
		if !s.IsLive() || sl.key.Load() == p.fingerprint {
			return sl, s
		}
		if found == nil || t.rule.Debt(s, tick) < t.rule.Debt(least, tick) {
			found, least = sl, s
		}
	}
	return found, least
}
