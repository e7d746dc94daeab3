package shard

import (
	"math"
	"unsafe"

	"github.com/weir-go/weir/atomicbucket"
)

// insert gives the key at p a record if it has none, and takes the request's tokens from that record. The outcome is
// undecided if the key has a live record, or if another call changed the probe window in the meantime.
func (t *Table) insert(p Place, r *request) Outcome {
	plan := t.current()
	if quota := plan.granted(r.quota); quota.unlimited() {
		return Outcome{Plan: plan, At: r.now, Verdict: UnlimitedQuota}
	} else if r.tooMuch(quota) {
		return Outcome{Plan: plan, At: r.now, Verdict: TooMuch}
	}
	room, least := t.atHome(p), victim{owed: math.MaxUint64}
	i, chosen := uint64(0), room.slot != nil
	if plan.isBucket && !chosen {
		i, least = t.indebted(p, plan, r.clock)
	}
	for ; i < t.probeWindow; i++ {
		chosen = chosen || room.suffices(i)
		if chosen && t.beyond(p, i) {
			break // R11
		}
		sl := p.at(i)
		if chosen { // the slot to claim is known: only a record of the key matters now
			if key := sl.key.Load(); key&^tierMask != p.fingerprint {
				if key == 0 {
					break // almost always a slot that was never used; if not, settle searches further
				}
				continue
			}
		}
		s := sl.state.Load() // before the key: R1
		plan := t.current()  // after the state: R9
		if s.IsLive() && s.Tag() != plan.live {
			t.convert(sl, s)
			return undecided
		}
		if sl.key.Load()&^tierMask == p.fingerprint && s.Tag() >= atomicbucket.Tentative {
			if s.IsLive() {
				t.findable(p, sl, s)
				return undecided
			}
			return t.settle(p, sl, s, r)
		}
		if !chosen {
			if owed := plan.bucketDebt(s, r.clock); owed == 0 {
				room.consider(sl, s, t.rank(s, plan, r.clock))
			} else if owed < least.owed {
				least = victim{sl, s, plan, owed}
			}
		}
		if s == 0 {
			break // R5
		}
	}
	watermark := t.watermark.Load()
	if plan = t.current(); uint64(r.now)-watermark > plan.skew || r.clock < int64(watermark) {
		return undecided // the states read above may look idle or indebted by mistake: R7
	}
	if room.slot == nil {
		if least.slot == nil {
			var ok bool
			if least, ok = t.least(p, r.clock); !ok {
				return undecided
			}
		}
		return t.overflowed(p, r, least)
	}
	if room.rank < idleAtWatermark {
		clock := t.reached(r.clock)
		if clock < r.clock && !plan.idle(room.state, clock) { // R23
			r.beyond = true
			return undecided
		}
		t.raiseTo(plan.idleSince(room.state, clock), clock) // R7: forget nothing that is not idle at the watermark
	}
	if room.state == 0 {
		t.claimsFirst(room.slot) // before it is claimed: R12
	}
	if t.entries != nil && !t.flushed(room.slot, room.state) { // R26
		return undecided
	}
	claimed, ok := room.slot.state.Claim(room.state, t.claimant)
	if !ok {
		return undecided
	}
	if room.state.IsLive() {
		t.current().forget(t.shard(p).counters, room.state, t.Watermark())
	}
	return t.publish(p, room.slot, claimed, r)
}

// publish writes the key into the claimed slot and settles the record.
func (t *Table) publish(p Place, sl *slot, claimed atomicbucket.State, r *request) Outcome {
	t.clear(sl, claimed, r.quota)
	sl.key.Store(t.label(p, r.quota))      // under CLAIM: R3
	tentative := sl.state.Publish(claimed) // before the search in settle: R4
	return t.settle(p, sl, tentative, r)
}

// another searches the slots from number i on, except the slot with the number mine, for p's key or the key 0. It
// returns the number of the first such slot, and the slot's key without its tier. If there is no such slot within the
// probe bound, the number is t.probeWindow. Like Hit, another calls no other function.
func (t *Table) another(p Place, i, mine uint64) (at, key uint64) {
	line, order, edge := p.line(), p.order(), t.stride
	for edge < i {
		edge += t.stride
	}
	for ; i < t.probeWindow; i++ {
		if i == edge { // the probe bound is whole strides
			if t.beyond(p, i) {
				break // R11
			}
			edge += t.stride
		}
		if i == mine {
			continue
		}
		sl := (*slot)(unsafe.Add(line, (i^order)*slotBytes)) // as Place.at
		if key = sl.key.Load() &^ tierMask; key == p.fingerprint || key == 0 {
			return i, key
		}
	}
	return t.probeWindow, 0
}

// settle decides the tentative record in the slot mine. If it is the key's only record, settle commits it together with
// the request's take. Otherwise, or if another call decided first, the outcome is undecided and nothing is taken.
//
// Every call that meets a tentative record of its own key settles it with its own take, so no call waits for the
// claimer.
func (t *Table) settle(p Place, mine *slot, tentative atomicbucket.State, r *request) Outcome {
	t.cover(p, p.index(mine)) // whichever call published it, and before the search: R11
search:
	at := p.index(mine)
	for i, key := t.another(p, 0, at); i < t.probeWindow; i, key = t.another(p, i+1, at) {
		other, lower := p.at(i), i < at
		if key != p.fingerprint {
			if other.state.Load() == 0 {
				break // R5
			}
			continue
		}
		// Slots in CLAIM and FREE are skipped: a claimer publishes later, and will then see this record. The key need
		// not be read again: if the slot has another owner by now, one of the two calls starts over at worst.
		s := other.state.Load()
		if s.Tag() < atomicbucket.Tentative {
			continue
		}
		if s.IsLive() || lower {
			t.findable(p, other, s)
			mine.state.Abort(tentative) // R6: the live one stays, else the lower one
			return undecided
		}
		if !other.state.Abort(s) { // R6: abort the higher one
			goto search // it changed, and may be live now
		}
	}
	plan := t.current() // after the tentative state: R9
	quota := plan.granted(r.quota)
	if r.tooMuch(quota) {
		mine.state.Abort(tentative)
		return undecided
	}
	// R7: a new bucket starts full at the watermark or later, and the watermark is read after the search.
	watermark := t.Watermark()
	now := max(r.now, watermark)
	if uint64(now-watermark) > plan.skew { // a new plan may have a smaller skew
		return undecided // the record stays tentative: the call starts over, and settles it then
	}
	if !t.isOf(mine, tentative, quota) { // R27: the call that claimed it has another price
		mine.state.Commit(tentative, plan.live, plan.full(now).State.Payload())
		return undecided
	}
	demand, charged := r.first(plan, quota)
	t.lead(r.now, r.clock)
	t.relabel(p, mine, r.quota)
	payload, ok := t.firstTake(plan, now, demand), true
	if t.entries != nil {
		payload, ok = t.enter(r, mine, tentative, payload, demand.Cost)
	}
	if !ok {
		mine.state.Abort(tentative)
		first := atomicbucket.NewState(plan.live, 0, t.firstTake(plan, now, demand))
		plan.tell(first, now, r)
		return t.noEntry(p, first, plan, now)
	}
	s, ok := mine.state.Commit(tentative, plan.live, t.born(p, plan, payload))
	if !ok {
		return undecided
	}
	t.entered(r)
	if r.mode >= charging {
		*r.charged = charged
	}
	plan.tell(s, now, r)
	return Outcome{State: s, Plan: plan, At: now, Verdict: Admitted}
}
