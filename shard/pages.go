package shard

import (
	"iter"
	"math/bits"
	"sync/atomic"

	"github.com/weir-go/weir/internal/word"
)

// A page is a range of a table's slots. It is marked before its first record is published, and stays marked (R12). So a
// sweep touches no memory that no key has needed.
const (
	pageBytes = 4096 // the size of small pages on most systems
	pageSlots = pageBytes / slotBytes
	wordPages = 64 // pages whose marks are in one word
)

type pages struct {
	marks []word.Word
	count atomic.Uint64 // marked pages
	dense uint64        // half of the pages: mark returns true at this count; 0 if no caller needs to know
}

func newPages(slots uint64) pages { return pages{marks: make([]word.Word, markWords(slots))} }

func markWords(slots uint64) uint64 { return ceilDiv(slots, pageSlots*wordPages) }

// mark marks the page of a slot, given by its number. It returns true if this mark raises the number of marked pages to
// half of all pages.
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

// markedPages returns the slots of the marked pages, page by page.
func (m *memory) markedPages() iter.Seq[[]slot] {
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

// markPage marks the page of a slot that is about to be claimed for the first time (R12), and the pages of its ring.
func (t *Table) markPage(sl *slot) {
	number := t.number(sl)
	dense := t.memory.mark(number)
	if t.rings != nil && t.owner == nil {
		perRing := t.ringWords / 2
		last := (number+1)*perRing - 1
		for i := number * perRing; i < last; i += pageSlots {
			dense = t.rings.mark(i) || dense
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

// Dense returns a channel that delivers a value whenever [Table.Collapse] has something to do.
func (t *Table) Dense() <-chan struct{} { return t.dense }

// Collapse moves a table outside the Go heap to huge pages, if the system has them. Slots and rings each stay in small
// pages while less than half of their pages are in use, so that a few keys in a large table take little memory.
//
// The system copies 512 small pages into a huge one. Calls that access these pages wait during the copy, for a few
// hundred microseconds. If pause is not nil, Collapse calls it after each huge page, and stops if pause returns false.
func (t *Table) Collapse(pause func() bool) {
	for _, m := range []*memory{t.memory, t.rings} {
		if m != nil && m.dense > 0 && m.count.Load() >= m.dense {
			m.collapse(pause)
		}
	}
}
