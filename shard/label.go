package shard

import (
	"runtime"
	"sync/atomic"

	"github.com/weir-go/weir/atomicbucket"
)

// A key word is a label: the fingerprint, in which four bits say under which tier the key's last take was. Only a
// conversion (R24 in doc.go) and [Table.LastTier] need to know that.

const (
	tierShift = 20 // not of the bits that choose the shard, and not of those that choose the home
	tierMask  = noTier << tierShift
	noTier    = MaxTiers - 1 // a quota with numbers of its own
)

// label returns what the key word of a record says that was charged under a quota.
func (t *Table) label(p Place, q Quota) uint64 {
	switch {
	case !t.buckets: // whose numbers mean the same under every tier
		return p.fingerprint
	case q.IsTier():
		return p.fingerprint | q.rest%MaxTiers<<tierShift
	}
	return p.fingerprint | tierMask
}

// relabel makes the key word say under which quota the key takes: before the take (R24). If the slot is another key's
// by now nothing is written.
func (t *Table) relabel(p Place, sl *slot, q Quota) {
	label := t.label(p, q)
	if old := sl.key.Load(); old != label && old&^tierMask == p.fingerprint {
		sl.key.CompareAndSwap(old, label)
	}
}

// follow makes a plan one whose records followed another. Where a token costs the same by every tier, the highest limit
// that a key had is that of all tiers: the key word says under which one the key took last, and not what it owes.
func (p *Plan) follow(before *Plan, clock func() int64) {
	p.from, p.clock, p.replaced = before.algorithm, clock, new(atomic.Uint64)
	highest := uint64(0)
	for tier := range before.numbers[:noTier] {
		highest = max(highest, before.numbers[tier].limit)
	}
	for tier := range p.changes {
		was, is := &before.numbers[tier], &p.numbers[tier]
		p.changes[tier] = atomicbucket.Change{Before: was.Token, After: is.Token, Highest: max(highest, was.limit)}
	}
}

// LastTier returns under which tier the key at p took last; false if it has no record, took under a quota, or if it
// does not matter, because a token is the same under every tier.
func (t *Table) LastTier(p Place) (tier int, known bool) {
	defer runtime.KeepAlive(t)
	_, _, sl := t.record(p)
	if sl == nil || !t.buckets {
		return 0, false
	}
	label := sl.key.Load()
	tier = int(label & tierMask >> tierShift)
	return tier, label&^tierMask == p.fingerprint && tier != noTier
}
