package shard

import (
	"iter"
	"math/bits"
	"sync/atomic"

	"github.com/weir-go/weir/internal/word"
)

// A page is a stretch of a table's slots. It is marked before a record in it is published for the first time, and
// stays marked: see R12 in doc.go. So a sweep touches no memory that no key has ever needed.
const (
	pageBytes = 4096 // of the system's small pages, on most systems
	pageSlots = pageBytes / slotBytes
	wordPages = 64 // that a word has marks of
)

// pages says which pages of a memory are marked.
type pages struct {
	marks []word.Word
	count atomic.Uint64 // marked pages
	dense uint64        // as many as are half of them; 0 if nobody wants to know
}

// pagesOf returns the marks of so many slots, none of which is set.
func pagesOf(slots uint64) pages { return pages{marks: make([]word.Word, markWords(slots))} }

// markWords returns how many words the marks of so many slots take.
func markWords(slots uint64) uint64 { return ceilDiv(slots, pageSlots*wordPages) }

// mark marks the page of a slot, given by its number, and reports whether half of the pages are marked since.
func (p *pages) mark(slot uint64) (dense bool) {
	page := slot / pageSlots
	w, bit := &p.marks[page/wordPages], uint64(1)<<(page%wordPages)
	for {
		old := w.Load()
		if old&bit != 0 {
			return false
		}
		if w.CompareAndSwap(old, old|bit) {
			return p.count.Add(1) == p.dense
		}
	}
}

// marked returns the slots of the memory page by page, but for those of pages that are not marked.
func (m *memory) marked() iter.Seq[[]slot] {
	return func(yield func([]slot) bool) {
		for i := range m.marks {
			for w := m.marks[i].Load(); w != 0; w &= w - 1 {
				from := (i*wordPages + bits.TrailingZeros64(w)) * pageSlots
				if from >= len(m.slots) {
					return // R20
				}
				if !yield(m.slots[from:min(from+pageSlots, len(m.slots))]) {
					return
				}
			}
		}
	}
}

// claimsFirst marks the pages of a slot that is about to be claimed for the first time (R12), and those of its ring.
func (t *Table) claimsFirst(sl *slot) {
	number := t.number(sl)
	dense := t.memory.mark(number)
	if t.rings != nil && t.owner == nil {
		perRing := t.ringWords / 2
		last := (number+1)*perRing - 1
		for at := number * perRing; at < last; at += pageSlots {
			dense = t.rings.mark(at) || dense
		}
		dense = t.rings.mark(last) || dense
	}
	if dense {
		select {
		case t.dense <- struct{}{}:
		default:
		}
	}
}

// Dense returns a channel from which a value can be received whenever [Table.Collapse] has something to do.
func (t *Table) Dense() <-chan struct{} { return t.dense }

// Collapse puts those parts of the table into huge pages of which half is in use, if the system has them and the table
// lies outside the Go heap. Until then they are in small pages, so that a few keys in a large table take little memory.
//
// A huge page is made by copying what is in 512 small ones, during which calls on these wait: a few hundred
// microseconds. After each it calls rest, if not nil, and gives up when that returns false.
func (t *Table) Collapse(rest func() bool) {
	for _, m := range []*memory{t.memory, t.rings} {
		if m != nil && m.dense > 0 && m.count.Load() >= m.dense {
			m.collapse(rest)
		}
	}
}
