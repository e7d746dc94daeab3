package shard

import (
	"math"
	"unsafe"

	"github.com/weir-go/weir/atomicbucket"
)

// A candidate is the best slot to claim that the search of an insert has met so far. Any slot that may be claimed is a
// correct choice (R5, R7). A good choice keeps the records of keys that come back.
type candidate struct {
	slot  *slot
	state atomicbucket.State
	rank  rank
}

// A rank orders slots by how little is lost when they are claimed. Higher is better.
//
//	0                   the slot may not be claimed
//	1 ...               the record is idle by the clock of the request, for that many ticks
//	idleAtWatermark ... it is also idle at the watermark: its key has not come back since the watermark moved
//	unowned             the slot is free or was never used
type rank uint64

const (
	idleAtWatermark rank = 1 << 62
	unowned         rank = 1 << 63
)

// nearSlots is the number of slots among which an insert looks for the best one: two lines, as many as [Table.Hit]
// searches. Beyond them it takes the first slot that may be claimed.
const nearSlots = hitLines * lineSlots

// homeCandidate returns a candidate in the home line of p: a slot without a record, else the slot that has been idle
// longest at the watermark. The result has no slot if the line has none to claim, or if the records are not token
// buckets. Like Hit, homeCandidate calls no other function, so its values stay in registers.
func (t *Table) homeCandidate(p Place) (c candidate) {
	for i := range min(t.hitQuotaSlots, lineSlots) {
		sl := p.slot(i)
		s := sl.state.Load()
		plan := t.plan.Load()                                         // after the state: R9
		if s.Tag() != plan.live || t.planned.Load() != plan.planned { // or the plan is not the current one: R21
			if s.Tag() <= atomicbucket.Free {
				return candidate{sl, s, unowned} // a claim may not go further: R5
			}
			return candidate{}
		}
		if now := plan.bucket.Ticks(t.Watermark()); plan.bucket.Idle(s, now) { // the watermark after the state: R7
			c.consider(sl, s, idleAtWatermark+rank(plan.bucket.IdleFor(s, now)))
		}
	}
	return c
}

// skipIndebted skips the slots at the start of p's probe window that an insert may not claim. These have live records
// of other keys, which follow the given plan and owe something at the time nanos. The plan must be current and have
// token buckets. skipIndebted returns the number of the first slot that it does not skip, and the skipped record that
// owes the least (cheapest), if any. For speed, it calls no function in its loop.
func (t *Table) skipIndebted(p Place, plan *Plan, nanos int64) (i uint64, cheapest victim) {
	line, order, tick := p.line(), p.order(), plan.bucket.Ticks(nanos)
	index, state, leastOwed := uint64(0), atomicbucket.State(0), uint64(math.MaxUint64)
	for ; i < t.probeWindow; i++ {
		sl := (*slot)(unsafe.Add(line, (i^order)*slotBytes)) // as Place.at
		s := sl.state.Load()                                 // before the key: R1
		if t.plan.Load() != plan || s.Tag() != plan.live {   // after the state: R9
			break
		}
		if t.planned.Load() != plan.planned { // after the state: R21
			break
		}
		if sl.key.Load()&^tierMask == p.fingerprint {
			break
		}
		owed := plan.bucket.UntilIdle(s, tick)
		if owed == 0 {
			break
		}
		if owed < leastOwed {
			index, state, leastOwed = i, s, owed
		}
	}
	if i > 0 {
		return i, victim{p.slot(index), state, plan, leastOwed}
	}
	return 0, victim{owed: math.MaxUint64}
}

// rank returns the rank of a slot for a request whose clock reads now. It is not called for token buckets that owe
// something at now. Their rank is 0, because they also owe something at the watermark, which is not later than now.
func (t *Table) rank(s atomicbucket.State, plan *Plan, now int64) rank {
	if s.Tag() <= atomicbucket.Free {
		return unowned
	}
	if !s.IsLive() {
		return 0
	}
	if idle := plan.idleFor(s, t.Watermark()); idle > 0 { // the watermark after the state: R7
		return idleAtWatermark + idle
	}
	return plan.idleFor(s, now)
}

// A victim is the live record that an insert may evict if its probe window has no slot to claim.
type victim struct {
	slot  *slot
	state atomicbucket.State
	plan  *Plan // the plan that the record follows
	owed  uint64
}

func (c *candidate) consider(sl *slot, s atomicbucket.State, r rank) {
	if r > c.rank {
		*c = candidate{sl, s, r}
	}
}

// suffices reports whether the insert may claim the candidate without reading the probe window from slot i on. For a
// candidate that is idle at the watermark, no further line is loaded.
func (c *candidate) suffices(i uint64) bool {
	return c.rank >= unowned || c.rank >= idleAtWatermark && i%lineSlots == 0 || c.rank > 0 && i >= nearSlots
}
