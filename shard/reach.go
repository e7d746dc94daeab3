package shard

import (
	"unsafe"

	"github.com/weir-go/weir/internal/word"
)

// The reach of a home is how far from it records of its keys lie: a search for a key's record
// goes no further (R11 in doc.go). In a table whose every slot was used this is what ends it.
//
// Two neighbouring homes have a byte together, in which there are two reaches of both, of which the
// larger counts. One is the target: what is published extends it. A sweep that lowers reaches makes the
// other one the target, extends it by what it meets, and when it has met everything clears the one before.

const (
	reachSteps = 8 // a window in strides
	reachBits  = 4 // of a reach, in strides: 0 to reachSteps
	reachMask  = 1<<reachBits - 1
	wordHomes  = 16                    // that a word has reaches of
	allFirst   = 0x0f0f_0f0f_0f0f_0f0f // the first reach of every byte
)

// What the word lowering says.
const (
	swapped = 1 << iota // the second of a home's reaches is the target
	partial             // no sweep has met every record since the target was changed: it is not changed before one has
	owned               // a sweep is under way that counts
)

// reaches are those of all homes.
type reaches struct {
	words    []word.Word
	stride   uint64 // slots
	lowering word.Word
}

// begin makes all reaches 0.
func (r *reaches) begin(l layout, prefault bool) {
	r.words, r.stride = make([]word.Word, l.reachWords()), ceilDiv(l.window, reachSteps)
	if prefault {
		for i := range r.words {
			r.words[i].Store(0)
		}
	}
}

// reachOf returns the word that a home's reaches are in, and where.
func (t *Table) reachOf(p Place) (w *word.Word, at uint64) {
	line := uint64(uintptr(unsafe.Pointer(p.home))-uintptr(unsafe.Pointer(t.first))) / lineBytes
	return &t.words[line/wordHomes], line % wordHomes / 2 * (2 * reachBits)
}

// beyond reports whether no live record of a key of this home is in slot i of its window or further on. The
// first stride is always within reach: most records are there, and nobody has to look at a reach for them.
func (t *Table) beyond(p Place, i uint64) bool { return i >= t.stride && i >= t.reach(p) }

// reach returns how many slots of the window may hold a live record of a key of this home.
func (t *Table) reach(p Place) uint64 {
	w, at := t.reachOf(p)
	return t.slotsOf(w.Load() >> at)
}

// slotsOf returns the larger of two reaches, in slots.
func (t *Table) slotsOf(both uint64) uint64 {
	return max(both&reachMask, both>>reachBits&reachMask, 1) * t.stride
}

// cover makes the reach cover slot i of the window. What the slot holds has been published, so that a
// sweep which changes the target from now on will meet it.
func (t *Table) cover(p Place, i uint64) {
	if i >= t.stride {
		t.extend(p, i/t.stride+1)
	}
}

// extend makes the reach at least so many strides.
func (t *Table) extend(p Place, strides uint64) {
	w, at := t.reachOf(p)
	at += t.lowering.Load() & swapped * reachBits
	for {
		old := w.Load()
		if old>>at&reachMask >= strides || w.CompareAndSwap(old, old&^(reachMask<<at)|strides<<at) {
			return
		}
	}
}

// lower begins a sweep that lowers reaches, if no other is under way.
func (r *reaches) lower() bool {
	v := r.lowering.Load()
	if v&owned != 0 {
		return false
	}
	next := v | owned
	if v&partial == 0 {
		next = next ^ swapped | partial
	}
	return r.lowering.CompareAndSwap(v, next)
}

// lowered ends such a sweep, which has met everything if it is whole.
func (r *reaches) lowered(whole bool) {
	v := r.lowering.Load() &^ owned
	if whole {
		v &^= partial
		before := uint64(allFirst)
		if v&swapped == 0 {
			before <<= reachBits
		}
		for i := range r.words {
			for {
				old := r.words[i].Load()
				if old&before == 0 || r.words[i].CompareAndSwap(old, old&^before) {
					break
				}
			}
		}
	}
	r.lowering.Store(v)
}
