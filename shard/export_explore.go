//go:build explore

package shard

import (
	"slices"
	"unsafe"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// Words returns every word that calls of t share, for the explorer of interleavings. The order: state and key of each
// slot in turn, watermark, time of the last sweep, plan, pace, count of calls that may move the watermark, rings,
// PlanWords, ProbeBoundWords, PageWords and RefundWords.
func (t *Table) Words() []*word.Word {
	var words []*word.Word
	for i := range t.shards {
		for j := range t.shards[i].slots {
			sl := &t.shards[i].slots[j]
			// A state word is a word.Word and nothing else.
			words = append(words, (*word.Word)(unsafe.Pointer(&sl.state)), &sl.key)
		}
	}
	words = append(words, &t.watermark, &t.swept, &t.plan.Word, &t.pace, &t.advancing)
	if t.rings != nil {
		for i := range t.shards {
			for j := range t.shards[i].slots {
				entries := t.ring(&t.shards[i].slots[j])
				for k := range entries {
					words = append(words, &entries[k])
				}
			}
		}
	}
	return slices.Concat(words, t.PlanWords(), t.ProbeBoundWords(), t.PageWords(), t.RefundWords())
}

// PlanWords returns the words by which the plan of a shared table is replaced and, for each area, the count of numbers
// and the first number. Other tables have no such words.
func (t *Table) PlanWords() (words []*word.Word) {
	if t.owner == nil {
		return nil
	}
	words = append(words, &t.planned, &t.change, &t.setting)
	for i := range t.areas {
		words = append(words, &t.areas[i][0], &t.areas[i][1])
	}
	return words
}

// PlannedWord returns the word with the number of a shared table's current plan.
func (t *Table) PlannedWord() *word.Word { return &t.planned }

// Follows makes this process follow a plan, whichever plan it followed before.
func (t *Table) Follows(plan *Plan) {
	t.plan = word.Pointer[Plan]{}
	t.plan.Store(plan)
}

// Following returns the number of the plan that this process follows.
func (t *Table) Following() uint64 {
	if number := t.plan.Peek(); number > 0 {
		return t.plan.At(number).planned
	}
	return 0
}

// IsSettled reports whether no replacement of a shared table's plan is under way.
func (t *Table) IsSettled() bool { return t.change.Peek() == t.planned.Peek()<<changeShift }

// Announced returns the number of the latest announced plan of a shared table, and whether its replacement is under
// way.
func (t *Table) Announced() (number uint64, underway bool) {
	change := t.change.Peek()
	return change >> changeShift, change&changing != 0
}

// NumberOf returns the first number of the plan with number planned.
func (t *Table) NumberOf(planned uint64) uint64 { return t.areas[planned%planAreas][1].Peek() }

// RefundWords returns the words that are used only by refunds, and by calls that want a receipt.
func (t *Table) RefundWords() []*word.Word {
	words := []*word.Word{&t.leading}
	for i := range t.neighbourhoods {
		words = append(words, &t.neighbourhoods[i].ends, &t.neighbourhoods[i].promised)
	}
	return words
}

// PageWords returns the words with the marks of pages.
func (t *Table) PageWords() []*word.Word {
	var words []*word.Word
	for _, m := range []*memory{t.memory, t.rings} {
		for i := 0; m != nil && i < len(m.marks); i++ {
			words = append(words, &m.marks[i])
		}
	}
	return words
}

// MarkPages marks every page.
func (t *Table) MarkPages() {
	for _, m := range []*memory{t.memory, t.rings} {
		for page := uint64(0); m != nil && page < ceilDiv(uint64(len(m.slots)), pageSlots); page++ {
			w := &m.marks[page/wordPages]
			w.Poke(w.Peek() | 1<<(page%wordPages))
		}
	}
}

// ProbeBoundWords returns the words with the probe bounds.
func (t *Table) ProbeBoundWords() []*word.Word {
	words := []*word.Word{&t.lowering}
	for i := range t.words {
		words = append(words, &t.words[i])
	}
	return words
}

// FixProbeBounds sets every probe bound to the whole probe window, permanently.
func (t *Table) FixProbeBounds() {
	t.lowering.Poke(ownedBit)
	for i := range t.words {
		t.words[i].Poke(firstBounds / boundMask * boundSteps)
	}
}

// BeyondProbeBound returns the key of a live record that a search for this key would not find.
func (t *Table) BeyondProbeBound() (key uint64, beyond bool) {
	for i := range t.shards {
		for j := range t.shards[i].slots {
			sl := &t.shards[i].slots[j]
			if s := atomicbucket.State((*word.Word)(unsafe.Pointer(&sl.state)).Peek()); !s.IsLive() {
				continue
			}
			p := t.Find(sl.key.Peek())
			if w, shift := t.probeBoundOf(p); p.index(sl) >= t.slotsOf(w.Peek()>>shift) {
				return p.fingerprint, true
			}
		}
	}
	return 0, false
}

// TierMask has the bits of a key word that hold the tier of the key's last take.
const TierMask = tierMask

// From returns the algorithm of the previous plan, or nil.
func (p *Plan) From() atomicbucket.Algorithm { return p.from }

// Ended returns how many tenures near the key the call began to end by force.
func (o Outcome) Ended() uint32 { return o.ended }

// Word returns the word with all its counts.
func (e Ends) Word() uint64 { return e.word }

// RestAfter makes sweeps call rest after a number of slots.
func (t *Table) RestAfter(slots int) { t.chunk = slots }
