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

// rank returns the rank of a slot for a request whose clock reads now.
func (t *Table) rank(s atomicbucket.State, plan *Plan, now int64) rank {
	switch {
	case s.Tag() <= atomicbucket.Free:
		return unowned
	case !s.IsLive():
		return 0
	case plan.idle(s, t.Watermark()): // the watermark after the state: R7
		return idleAtWatermark + plan.idleFor(s, now)
	case plan.idle(s, now):
		return 1 + plan.idleFor(s, now)
	}
	return 0
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
