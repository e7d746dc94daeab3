package shard

import (
	"fmt"
	"unsafe"

	"github.com/weir-go/weir/internal/word"
)

// parts is the memory that the calls on a table read and write, except the plan and what is computed from it.
type parts struct {
	memory         *memory
	rings          *memory // the rings of sliding logs, or the prices; nil if there are none
	common         *common
	counters       []counters
	bounds         []word.Word
	neighbourhoods []neighbourhood
}

// shardBytes is how many bytes a shard takes in addition to its slots.
const shardBytes = uint64(unsafe.Sizeof(shard{}) + unsafe.Sizeof(counters{}))

func (l layout) allocate(prefault bool) (p parts, err error) {
	if p.memory, err = allocate(l.slots(), prefault); err != nil {
		return parts{}, fmt.Errorf("shard: %d slots: %w", l.slots(), err)
	}
	if l.ringSize > 0 {
		if p.rings, err = allocate(l.ringSlots(), prefault); err != nil {
			return parts{}, fmt.Errorf("shard: %d slots with %d times each: %w", l.slots(), l.ringSize, err)
		}
	}
	p.common, p.counters = new(common), make([]counters, l.shards)
	p.bounds, p.neighbourhoods = make([]word.Word, l.boundWords()), make([]neighbourhood, l.neighbourhoods())
	if prefault {
		for i := range p.bounds {
			p.bounds[i].Store(0)
		}
	}
	return p, nil
}
