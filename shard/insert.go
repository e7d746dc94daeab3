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
	if quota := plan.granted(r.quota); quota.isUnlimited() {
		return Outcome{Plan: plan, At: r.now, Verdict: UnlimitedQuota}
	} else if r.isTooMuch(quota) {
		return Outcome{Plan: plan, At: r.now, Verdict: TooMuch}
	}
	best, cheapest := t.homeCandidate(p), victim{owed: math.MaxUint64}
	i, hasSlot := uint64(0), best.slot != nil
	if plan.isBucket && !hasSlot {
		i, cheapest = t.skipIndebted(p, plan, r.clock)
	}
	for ; i < t.probeWindow; i++ {
		hasSlot = hasSlot || best.suffices(i)
		if hasSlot && t.isBeyond(p, i) {
			break // R11
		}
		sl := p.slot(i)
		if hasSlot { // the slot to claim is known: only a record of the key matters now
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
				t.ensureFindable(p, sl, s)
				return undecided
			}
			return t.settle(p, sl, s, r)
		}
		if !hasSlot {
			if owed := plan.bucketDebt(s, r.clock); owed == 0 {
				best.consider(sl, s, t.rank(s, plan, r.clock))
			} else if owed < cheapest.owed {
				cheapest = victim{sl, s, plan, owed}
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
	if best.slot == nil {
		if cheapest.slot == nil {
			var ok bool
			if cheapest, ok = t.findVictim(p, r.clock); !ok {
				return undecided
			}
		}
		return t.decideOverflow(p, r, cheapest)
	}
	if best.rank < idleAtWatermark {
		clock := t.reachedTime(r.clock)
		if clock < r.clock && !plan.idle(best.state, clock) { // R23
			r.clockAhead = true
			return undecided
		}
		t.raiseTo(plan.idleSince(best.state, clock), clock) // R7: forget nothing that is not idle at the watermark
	}
	if best.state == 0 {
		t.markPage(best.slot) // before it is claimed: R12
	}
	if t.entries != nil && !t.markLastChange(best.slot, best.state) { // R26
		return undecided
	}
	claimed, ok := best.slot.state.Claim(best.state, t.claimant)
	if !ok {
		return undecided
	}
	if best.state.IsLive() {
		t.current().countForgotten(t.shard(p).counters, best.state, t.Watermark())
	}
	return t.publish(p, best.slot, claimed, r)
}

// publish writes the key into the claimed slot and settles the record.
func (t *Table) publish(p Place, sl *slot, claimed atomicbucket.State, r *request) Outcome {
	t.clearRing(sl, claimed, r.quota)
	sl.key.Store(t.label(p, r.quota))      // under CLAIM: R3
	tentative := sl.state.Publish(claimed) // before the search in settle: R4
	return t.settle(p, sl, tentative, r)
}

// nextMatch searches the slots from number i on, except the slot with the number skip, for p's key or the key 0. It
// returns the number of the first such slot (index), and the slot's key without its tier. If there is no such slot
// within the probe bound, the number is t.probeWindow. Like Hit, nextMatch calls no other function.
func (t *Table) nextMatch(p Place, i, skip uint64) (index, key uint64) {
	line, order, edge := p.line(), p.order(), t.stride
	for edge < i {
		edge += t.stride
	}
	for ; i < t.probeWindow; i++ {
		if i == edge { // the probe bound is whole strides
			if t.isBeyond(p, i) {
				break // R11
			}
			edge += t.stride
		}
		if i == skip {
			continue
		}
		sl := (*slot)(unsafe.Add(line, (i^order)*slotBytes)) // as Place.at
		if key = sl.key.Load() &^ tierMask; key == p.fingerprint || key == 0 {
			return i, key
		}
	}
	return t.probeWindow, 0
}

// settle decides the tentative record in the slot sl. If it is the key's only record, settle commits it together with
// the request's take. Otherwise, or if another call decided first, the outcome is undecided and nothing is taken.
//
// Every call that meets a tentative record of its own key settles it with its own take, so no call waits for the
// claimer.
func (t *Table) settle(p Place, sl *slot, tentative atomicbucket.State, r *request) Outcome {
	t.cover(p, p.index(sl)) // whichever call published it, and before the search: R11
search:
	index := p.index(sl)
	for i, key := t.nextMatch(p, 0, index); i < t.probeWindow; i, key = t.nextMatch(p, i+1, index) {
		other, isLower := p.slot(i), i < index
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
		if s.IsLive() || isLower {
			t.ensureFindable(p, other, s)
			sl.state.Abort(tentative) // R6: the live one stays, else the lower one
			return undecided
		}
		if !other.state.Abort(s) { // R6: abort the higher one
			goto search // it changed, and may be live now
		}
	}
	plan := t.current() // after the tentative state: R9
	quota := plan.granted(r.quota)
	if r.isTooMuch(quota) {
		sl.state.Abort(tentative)
		return undecided
	}
	// R7: a new bucket starts full at the watermark or later, and the watermark is read after the search.
	watermark := t.Watermark()
	now := max(r.now, watermark)
	if uint64(now-watermark) > plan.skew { // a new plan may have a smaller skew
		return undecided // the record stays tentative: the call starts over, and settles it then
	}
	if !t.hasPriceOf(sl, tentative, quota) { // R27: the call that claimed it has another price
		sl.state.Commit(tentative, plan.live, plan.fullRecord(now).State.Payload())
		return undecided
	}
	demand, charged := r.firstDemand(plan, quota)
	t.recordLead(r.now, r.clock)
	t.relabel(p, sl, r.quota)
	payload, ok := t.firstTake(plan, now, demand), true
	if t.entries != nil {
		payload, ok = t.prepareEntry(r, sl, tentative, payload, demand.Cost)
	}
	if !ok {
		sl.state.Abort(tentative)
		first := atomicbucket.NewState(plan.live, 0, t.firstTake(plan, now, demand))
		plan.setStatus(first, now, r)
		return t.noEntryOutcome(p, first, plan, now)
	}
	s, ok := sl.state.Commit(tentative, plan.live, t.tenurePayload(p, plan, payload))
	if !ok {
		return undecided
	}
	t.confirmEntry(r)
	if r.mode >= modeCharge {
		*r.charged = charged
	}
	plan.setStatus(s, now, r)
	return Outcome{State: s, Plan: plan, At: now, Verdict: Admitted}
}
