package shard

import "github.com/weir-go/weir/internal/word"

// The probe bound of a home is how far from it records of its keys lie: a search for a key's record
// goes no further (R11 in doc.go). In a table whose every slot was used this is what ends it.
//
// Two neighbouring homes have a byte together, in which there are two probe bounds of both, of which the
// larger counts. One is the target: what is published extends it. A sweep that lowers probe bounds makes the
// other one the target, extends it by what it meets, and when it has met everything clears the one before.

const (
	boundSteps = 8 // a probe window in strides
	boundBits  = 4 // of a probe bound, in strides: 0 to boundSteps
	boundMask  = 1<<boundBits - 1
	wordHomes  = 16                    // that a word has probe bounds of
	allFirst   = 0x0f0f_0f0f_0f0f_0f0f // the first probe bound of every byte
)

// What the word lowering says.
const (
	swapped = 1 << iota // the second of a home's probe bounds is the target
	partial             // no sweep has met every record since the target was changed: it is not changed before one has
	owned               // a sweep is under way that counts
)

// ownerShift is where the word lowering says which process that sweep is of, in a shared table.
const ownerShift = 3

// probe bounds are those of all homes.
type probeBounds struct {
	words  []word.Word
	stride uint64 // slots
}

// probeBoundOf returns the word that a home's probe bounds are in, and where.
func (t *Table) probeBoundOf(p Place) (w *word.Word, at uint64) {
	line := t.line(p)
	return &t.words[line/wordHomes], line % wordHomes / 2 * (2 * boundBits)
}

// beyond reports whether no live record of a key of this home is in slot i of its probe window or further on. The
// first stride is always within the probe bound: most records are there, and no call has to read a bound for them.
func (t *Table) beyond(p Place, i uint64) bool { return i >= t.stride && i >= t.probeBound(p) }

// probe bound returns how many slots of the probe window may hold a live record of a key of this home.
func (t *Table) probeBound(p Place) uint64 {
	w, at := t.probeBoundOf(p)
	return t.slotsOf(w.Load() >> at)
}

// slotsOf returns the larger of two probe bounds, in slots.
func (t *Table) slotsOf(both uint64) uint64 {
	return max(both&boundMask, both>>boundBits&boundMask, 1) * t.stride
}

// cover makes the probe bound cover slot i of the probe window. What the slot holds has been published, so that a
// sweep which changes the target from now on will meet it.
func (t *Table) cover(p Place, i uint64) {
	if i >= t.stride {
		t.extend(p, i/t.stride+1)
	}
}

// extend makes the probe bound at least so many strides.
func (t *Table) extend(p Place, strides uint64) {
	w, at := t.probeBoundOf(p)
	at += t.lowering.Load() & swapped * boundBits
	for {
		old := w.Load()
		if old>>at&boundMask >= strides || w.CompareAndSwap(old, old&^(boundMask<<at)|strides<<at) {
			return
		}
	}
}

// lower begins a sweep that lowers probe bounds, if no other is under way. One whose process is dead has given up
// (R18).
func (t *Table) lower() bool {
	v := t.lowering.Load()
	if v&owned != 0 && !t.deserted(v>>ownerShift) {
		return false
	}
	next := v&(swapped|partial) | owned | t.claimant<<ownerShift
	if v&partial == 0 {
		next = next ^ swapped | partial
	}
	return t.lowering.CompareAndSwap(v, next)
}

// lowered ends such a sweep, which has met everything if it is whole.
func (t *Table) lowered(whole bool) {
	v := t.lowering.Load() & (swapped | partial)
	if whole {
		v &^= partial
		before := uint64(allFirst)
		if v&swapped == 0 {
			before <<= boundBits
		}
		for i := range t.words {
			for {
				old := t.words[i].Load()
				if old&before == 0 || t.words[i].CompareAndSwap(old, old&^before) {
					break
				}
			}
		}
	}
	t.lowering.Store(v)
}
