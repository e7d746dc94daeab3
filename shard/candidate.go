package shard

import "github.com/weir-go/weir/atomicbucket"

// A candidate is the slot that an insert is going to claim: the best that its search has met so far. Any slot that
// may be claimed would be right (R5, R7), so which one is a hint. It decides how often a key that comes back
// still finds its record: keys that are below their limit are idle whenever they come back.
type candidate struct {
	slot  *slot
	state atomicbucket.State
	rank  rank
}

// A rank says how little is lost when a slot is claimed: more is better.
//
//	0                   it may not be claimed
//	1 ...               idle by the clock of the request, for so many ticks
//	idleAtWatermark ... idle at the watermark as well: the key has not come back since the watermark moved
//	unowned             free, or never used
type rank uint64

const (
	idleAtWatermark rank = 1 << 62
	unowned         rank = 1 << 63
)

// nearSlots is where an insert compares slots: two lines, which is as far as [Table.Hit] searches. Further on it
// takes the first slot that may be claimed.
const nearSlots = hitLines * lineSlots

// atHome returns the candidate of a table of token buckets if it is in the home line of p: a slot without a record, or
// of those that are idle at the watermark the one that has been so for longest. Otherwise it has no slot, and the
// search of the insert finds one. Like Hit it calls nothing, so that everything stays in registers.
func (t *Table) atHome(p Place) (c candidate) {
	for i := range min(t.near, lineSlots) {
		sl := p.at(i)
		s := sl.state.Load()
		plan := t.plan.Load()                                         // after the state: R9
		if s.Tag() != plan.live || t.planned.Load() != plan.planned { // or the plan is not the present one: R21
			if s.Tag() <= atomicbucket.Free {
				return candidate{sl, s, unowned} // no claim goes further: R5
			}
			return candidate{}
		}
		if now := plan.bucket.Ticks(t.Watermark()); plan.bucket.Idle(s, now) { // the watermark after the state: R7
			c.consider(sl, s, idleAtWatermark+rank(plan.bucket.IdleFor(s, now)))
		}
	}
	return c
}

// rank returns the rank of a slot for a request whose clock reads now, and of a token bucket that is not idle what it
// owes, without an indirect call: a new key in a full table asks this of a whole probe window.
func (t *Table) rank(s atomicbucket.State, plan *Plan, now int64) (r rank, owed uint64) {
	if s.Tag() <= atomicbucket.Free {
		return unowned, 0
	}
	if !s.IsLive() {
		return 0, 0
	}
	if plan.isBucket { // at the watermark, which is not later, it owes more: the insert looks at that once more
		if owed = plan.bucket.UntilIdle(s, plan.bucket.Ticks(now)); owed > 0 {
			return 0, owed
		}
	}
	if idle := plan.idleFor(s, t.Watermark()); idle > 0 { // the watermark after the state: R7
		return idleAtWatermark + idle, 0
	}
	return plan.idleFor(s, now), 0
}

// A victim is a live record of a probe window without a slot that may be claimed.
type victim struct {
	slot  *slot
	state atomicbucket.State
	plan  *Plan // that it follows
	owed  uint64
}

// consider makes a token bucket the victim if it owes less, and is not idle.
func (v *victim) consider(sl *slot, s atomicbucket.State, plan *Plan, owed uint64) {
	if owed > 0 && owed < v.owed {
		*v = victim{sl, s, plan, owed}
	}
}

// consider makes a slot the candidate if it is better.
func (c *candidate) consider(sl *slot, s atomicbucket.State, r rank) {
	if r > c.rank {
		*c = candidate{sl, s, r}
	}
}

// suffices reports whether the candidate is taken without a look at slot i of the probe window and those further on. A
// key that has not come back since the watermark moved is not worth another line.
func (c *candidate) suffices(i uint64) bool {
	return c.rank >= unowned || c.rank >= idleAtWatermark && i%lineSlots == 0 || c.rank > 0 && i >= nearSlots
}
