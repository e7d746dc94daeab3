//go:build explore

package shard

import (
	"unsafe"

	"github.com/weir-go/weir/internal/word"
)

// Words returns every word that calls of t share, for the explorer of interleavings:
// the state and the key of each slot in turn, then the mark, the time of the last
// sweep, the plan, and the one before, and then the rings.
func (t *Table) Words() []*word.Word {
	var words []*word.Word
	for i := range t.shards {
		for j := range t.shards[i].slots {
			sl := &t.shards[i].slots[j]
			// A state word is a word.Word and nothing else.
			words = append(words, (*word.Word)(unsafe.Pointer(&sl.state)), &sl.key)
		}
	}
	words = append(words, &t.mark, &t.swept, &t.plan.Word, &t.before.Word)
	if t.rings != nil {
		for i := range t.shards {
			for j := range t.shards[i].slots {
				entries := t.entries(&t.shards[i].slots[j])
				for k := range entries {
					words = append(words, &entries[k])
				}
			}
		}
	}
	return words
}

// Before returns the plan before the present one, while there may be records that follow
// it.
func (t *Table) Before() *Plan { return t.before.Load() }

// Logs reports whether the records are sliding logs.
func (t *Table) Logs() bool { return t.rings != nil }
