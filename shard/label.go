package shard

import (
	"math"
	"runtime"
	"sync/atomic"

	"github.com/weir-go/weir/atomicbucket"
)

// A key word contains a label: the fingerprint of the key, with the tier of the key's last take in four of its bits.
// Only a conversion (R24) and [Table.LastTier] use the tier.

const (
	tierShift = 20 // not among the bits that choose the shard or the home
	tierMask  = noTier << tierShift
	noTier    = MaxTiers - 1 // in a key word: the key took under a quota with its own numbers
)

// label returns the key word of a record that was charged under the quota q.
func (t *Table) label(p Place, q Quota) uint64 {
	switch {
	case !t.buckets: // the numbers mean the same under every tier
		return p.fingerprint
	case q.IsTier():
		return p.fingerprint | q.packed%MaxTiers<<tierShift
	}
	return p.fingerprint | tierMask
}

// relabel writes the label for the quota q, before the key takes under q (R24). It writes nothing if the slot belongs
// to another key by now.
func (t *Table) relabel(p Place, sl *slot, q Quota) {
	label := t.label(p, q)
	if old := sl.key.Load(); old != label && old&^tierMask == p.fingerprint {
		sl.key.CompareAndSwap(old, label)
	}
}

// takeOver prepares the plan p to convert the records of the previous plan (before). If a token costs the same under
// every tier, each key's highest limit is the highest of all tiers. The reason is that the key word names only the last
// tier, but the key may owe tokens of other tiers.
func (p *Plan) takeOver(before *Plan, clock func() int64) {
	p.from, p.clock, p.takeover = before.algorithm, clock, new(atomic.Uint64)
	if windows, ok := p.algorithm.(*atomicbucket.FixedWindow); ok && windows.Aligned() {
		p.hasNewGrid = !windows.SameGrid(before.algorithm.(*atomicbucket.FixedWindow))
	}
	highest, longest := uint64(0), p.changes[0].Longest
	for tier := range before.lastQuotas[:noTier] {
		highest = max(highest, before.lastQuotas[tier].limit)
	}
	for tier := range p.changes {
		oldQuota, newQuota := &before.lastQuotas[tier], &p.lastQuotas[tier]
		p.changes[tier] = atomicbucket.Change{Before: oldQuota.Token, After: newQuota.Token, Highest: max(highest, oldQuota.limit)}
	}
	if !p.isBucket && clock != nil { // without a clock it is not known when tokens were taken
		p.changes[0].Lowest, p.changes[0].Longest = p.lowest(), longest
	}
}

// lowest returns the lowest limit of all tiers that ever had one (R24). It returns 0, for "not known", while such a
// tier is blocked or unlimited.
func (p *Plan) lowest() uint64 {
	lowest := uint64(math.MaxUint64)
	for _, tier := range p.lastQuotas[:noTier] {
		if tier.limit > 0 {
			lowest = min(lowest, tier.Tokens)
		}
	}
	return lowest
}

// LastTier returns the tier under which the key at p took last. ok is false if the key has no record, if it took under
// a quota with its own numbers, or if a token costs the same under every tier.
func (t *Table) LastTier(p Place) (tier int, ok bool) {
	defer runtime.KeepAlive(t)
	_, _, sl := t.record(p)
	if sl == nil || !t.buckets {
		return 0, false
	}
	label := sl.key.Load()
	tier = int(label & tierMask >> tierShift)
	return tier, label&^tierMask == p.fingerprint && tier != noTier
}
