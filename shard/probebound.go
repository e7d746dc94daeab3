package shard

import "github.com/weir-go/weir/internal/word"

// The probe bound of a home bounds the distance between the home and the records of its keys: a search for a key's
// record ends there (R11). Two adjacent homes share a byte with two probe bounds, and the larger one counts. Published
// records extend one of the two, the target.

const (
	boundSteps  = 8 // strides in a probe window
	boundBits   = 4 // of a probe bound, in strides: 0 to boundSteps
	boundMask   = 1<<boundBits - 1
	wordHomes   = 16                    // homes whose probe bounds are in one word
	firstBounds = 0x0f0f_0f0f_0f0f_0f0f // the first probe bound of every byte
)

// These are the lowest bits of the word lowering.
const (
	swappedBit = 1 << iota // the second probe bound of each home is the target
	partialBit             // no sweep has visited every slot since the target was switched, so it is not switched again
	ownedBit               // a sweep that lowers probe bounds is under way
)

// ownerShift is the lowest bit of a process number in the word lowering. In a shared table, this is the number of the
// process whose sweep lowers probe bounds.
const ownerShift = 3

type probeBounds struct {
	words  []word.Word
	stride uint64 // slots
}

// probeBoundOf returns the word that holds the probe bounds of p's home, and their position in it.
func (t *Table) probeBoundOf(p Place) (w *word.Word, shift uint64) {
	line := t.line(p)
	return &t.words[line/wordHomes], line % wordHomes / 2 * (2 * boundBits)
}

// isBeyond reports whether no slot from i on in the probe window has a live record of a key of this home. The first
// stride is always within the probe bound, so calls for most records need not read the bound.
func (t *Table) isBeyond(p Place, i uint64) bool { return i >= t.stride && i >= t.probeBound(p) }

// probeBound returns how many slots of the probe window may hold a live record of a key of this home.
func (t *Table) probeBound(p Place) uint64 {
	w, shift := t.probeBoundOf(p)
	return t.slotsOf(w.Load() >> shift)
}

func (t *Table) slotsOf(pair uint64) uint64 {
	return max(pair&boundMask, pair>>boundBits&boundMask, 1) * t.stride
}

// cover extends the probe bound to slot i of the probe window. The record in the slot must be published before the
// call, so that a sweep which switches the target from now on will visit the record.
func (t *Table) cover(p Place, i uint64) {
	if i >= t.stride {
		t.extend(p, i/t.stride+1)
	}
}

// extend raises the target to a number of strides, unless it is already at least that large.
func (t *Table) extend(p Place, strides uint64) {
	w, shift := t.probeBoundOf(p)
	shift += t.lowering.Load() & swappedBit * boundBits
	for {
		old := w.Load()
		if old>>shift&boundMask >= strides || w.CompareAndSwap(old, old&^(boundMask<<shift)|strides<<shift) {
			return
		}
	}
}

// beginLowering starts a sweep that lowers probe bounds, if no other one is under way, and reports whether it did. A
// sweep of a dead process does not count (R18).
func (t *Table) beginLowering() bool {
	v := t.lowering.Load()
	if v&ownedBit != 0 && !t.isDeserted(v>>ownerShift) {
		return false
	}
	next := v&(swappedBit|partialBit) | ownedBit | t.claimant<<ownerShift
	if v&partialBit == 0 {
		next = next ^ swappedBit | partialBit
	}
	return t.lowering.CompareAndSwap(v, next)
}

// endLowering ends a sweep that lowers probe bounds. The parameter complete says whether the sweep has visited every
// slot.
func (t *Table) endLowering(complete bool) {
	v := t.lowering.Load() & (swappedBit | partialBit)
	if complete {
		v &^= partialBit
		clearMask := uint64(firstBounds)
		if v&swappedBit == 0 {
			clearMask <<= boundBits
		}
		for i := range t.words {
			for {
				old := t.words[i].Load()
				if old&clearMask == 0 || t.words[i].CompareAndSwap(old, old&^clearMask) {
					break
				}
			}
		}
	}
	t.lowering.Store(v)
}
