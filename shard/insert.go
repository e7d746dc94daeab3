package shard

import "github.com/weir-go/weir/atomicbucket"

// insert gives the key at p a record with cost taken from it, if it has none. It is
// undecided when the key has a live record, and when another call changed the
// window meanwhile.
func (t *Table) insert(p Place, now int64, cost uint64) (atomicbucket.State, int64, Verdict) {
	tick := t.rule.Ticks(now)
	room, from := (*slot)(nil), atomicbucket.State(0)
	for i := uint64(0); i < t.window; i++ {
		sl := p.at(i)
		s := sl.state.Load() // before the key: R1
		if sl.key.Load() == p.fingerprint && s.Tag() >= atomicbucket.Tentative {
			if s.IsLive() {
				return 0, 0, Undecided
			}
			return t.settle(p, sl, s, now, cost)
		}
		if room == nil && (s.Tag() <= atomicbucket.Free || s.IsLive() && t.rule.Idle(s, tick)) {
			room, from = sl, s
		}
		if s == 0 {
			break // R5
		}
	}
	mark := t.mark.Load()
	if uint64(now)-mark > t.skew { // what was read above may be misjudged: R7
		return 0, 0, Undecided
	}
	if room == nil {
		return t.overflowed(p, now, cost)
	}
	if from.IsLive() && !t.rule.Idle(from, t.rule.Ticks(int64(mark))) {
		t.raise(now) // R7: forget nothing that is not idle at the mark
	}
	claimed, ok := room.state.Claim(from)
	if !ok {
		return 0, 0, Undecided
	}
	return t.publish(p, room, claimed, now, cost)
}

// publish writes the key into the claimed slot and settles the record.
func (t *Table) publish(p Place, sl *slot, claimed atomicbucket.State, now int64, cost uint64) (atomicbucket.State, int64, Verdict) {
	sl.key.Store(p.fingerprint)            // under CLAIM: R3
	tentative := sl.state.Publish(claimed) // before the search in settle: R4
	return t.settle(p, sl, tentative, now, cost)
}

// settle decides the tentative record in the slot mine: is it the key's
// only one? If so it commits the record together with the take of cost. It is
// undecided, and nothing is taken, when it is not, or when another call decided
// first.
//
// Anybody who meets a tentative record of its own key settles it, each with its
// own take: nobody waits for the goroutine that claimed it.
func (t *Table) settle(p Place, mine *slot, tentative atomicbucket.State, now int64, cost uint64) (atomicbucket.State, int64, Verdict) {
search:
	lower := true // whether other is before mine
	for i := uint64(0); i < t.window; i++ {
		other := p.at(i)
		if other == mine {
			lower = false
			continue
		}
		if key := other.key.Load(); key != p.fingerprint {
			if key == 0 && other.state.Load() == 0 {
				break // R5
			}
			continue
		}
		// CLAIM and FREE are passed over: who claims publishes later, and will
		// see this record. The key need not be read again: if the slot has another
		// owner by now, what follows costs one of the two another round, no more.
		s := other.state.Load()
		if s.Tag() < atomicbucket.Tentative {
			continue
		}
		if s.IsLive() || lower {
			mine.state.Abort(tentative) // R6: the live one stays, else the lower one
			return 0, 0, Undecided
		}
		if !other.state.Abort(s) { // R6: kill the higher one
			goto search // it changed: it may be live now
		}
	}
	// R7: a new bucket is full at the mark or later, and the mark is read after
	// the search.
	now = max(now, t.Mark())
	s, ok := mine.state.Commit(tentative, t.rule.Fresh(t.rule.Ticks(now), cost))
	if !ok {
		return 0, 0, Undecided
	}
	if t.Mark()-now >= overtook*int64(t.skew) { // time leapt meanwhile: R7
		mine.state.Free(s)
	}
	return s, now, Admitted
}
