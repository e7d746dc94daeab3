//go:build explore

package shard

import (
	"unsafe"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// Words returns every word that calls of t share, for the explorer of interleavings:
// the state and the key of each slot in turn, then the watermark, the time of the last
// sweep, the plan, and the one before, then the rings, and at last those of ProbeBoundWords.
func (t *Table) Words() []*word.Word {
	var words []*word.Word
	for i := range t.shards {
		for j := range t.shards[i].slots {
			sl := &t.shards[i].slots[j]
			// A state word is a word.Word and nothing else.
			words = append(words, (*word.Word)(unsafe.Pointer(&sl.state)), &sl.key)
		}
	}
	words = append(words, &t.watermark, &t.swept, &t.plan.Word, &t.before.Word)
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
	return append(words, t.ProbeBoundWords()...)
}

// ProbeBoundWords returns the words that say how far searches go.
func (t *Table) ProbeBoundWords() []*word.Word {
	words := []*word.Word{&t.lowering}
	for i := range t.words {
		words = append(words, &t.words[i])
	}
	return words
}

// FixProbeBounds makes every probe bound the whole probe window, for good.
func (t *Table) FixProbeBounds() {
	t.lowering.Poke(owned)
	for i := range t.words {
		t.words[i].Poke(allFirst / boundMask * boundSteps)
	}
}

// BeyondProbeBound returns a live record that a search for its key would not find.
func (t *Table) BeyondProbeBound() (key uint64, beyond bool) {
	for i := range t.shards {
		for j := range t.shards[i].slots {
			sl := &t.shards[i].slots[j]
			if s := atomicbucket.State((*word.Word)(unsafe.Pointer(&sl.state)).Peek()); !s.IsLive() {
				continue
			}
			p := t.Find(sl.key.Peek())
			if w, at := t.probeBoundOf(p); p.index(sl) >= t.slotsOf(w.Peek()>>at) {
				return p.fingerprint, true
			}
		}
	}
	return 0, false
}

// Before returns the plan before the present one, while there may be records that follow
// it.
func (t *Table) Before() *Plan { return t.before.Load() }
