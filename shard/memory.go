package shard

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/weir-go/weir/internal/word"
)

const (
	// maxBytes bounds the size of a table by the address space.
	maxBytes = math.MaxInt / 2
	// mapThreshold is the size from which a table gets memory outside the Go heap: two huge pages. Smaller tables would
	// gain little.
	mapThreshold = 4 << 20
)

// memory holds the slots of a table. They contain no pointers, so the garbage collector does not scan them.
type memory struct {
	slots  []slot
	mapped uint64 // bytes outside the Go heap
	heap   uint64 // bytes on the Go heap
	pages
}

// allocate returns n zeroed slots that start on a cache line. Large tables lie outside the Go heap, and can be moved to
// huge pages. Their memory returns to the system when the memory value is collected.
func allocate(n uint64, prefault bool) (*memory, error) {
	if available := physicalMemory(); n*slotBytes > available {
		return nil, fmt.Errorf("%d bytes are needed: this machine has %d bytes of memory", n*slotBytes, available)
	}
	if n*slotBytes >= mapThreshold {
		m, err := mapSlots(n, prefault)
		if err != nil || m != nil {
			if err == nil && prefault {
				touch(m.slots)
			}
			return m, err
		}
	}
	buf := make([]slot, n+spareSlots)
	m := &memory{heap: uint64(len(buf)) * slotBytes, pages: newPages(n)}
	skip := -uintptr(unsafe.Pointer(&buf[0])) % lineBytes / slotBytes
	m.slots = buf[skip:][:n:n]
	if prefault {
		touch(m.slots)
	}
	return m, nil
}

// spareSlots is how many slots are taken from the heap in addition. Up to three are before the first slot, so that the
// first slot starts a line. One line is behind the last slot: a hit computes, but does not read, the address of the
// slot behind the last one that it searches ([Place.at]).
const spareSlots = 2*lineSlots - 1

func allocated(n uint64) uint64 {
	marks := markWords(n) * uint64(unsafe.Sizeof(word.Word{}))
	if n*slotBytes >= mapThreshold {
		if bytes := mappedBytes(n); bytes > 0 {
			return bytes + marks
		}
	}
	return (n+spareSlots)*slotBytes + marks
}

func (m *memory) bytes() uint64 {
	return m.mapped + m.heap + uint64(len(m.marks))*uint64(unsafe.Sizeof(word.Word{}))
}

// touch writes to every page, so that the system provides all pages now.
func touch(slots []slot) {
	const step = 4096 / slotBytes
	for i := 0; i < len(slots); i += step {
		slots[i].key.Store(0)
	}
}

// bytes returns how many bytes a table takes in all.
func (t *Table) bytes() uint64 {
	if t.owner != nil {
		return uint64(unsafe.Sizeof(*t)) + uint64(len(t.shards))*uint64(unsafe.Sizeof(shard{})) + t.memory.mapped
	}
	bytes := uint64(unsafe.Sizeof(*t)+unsafe.Sizeof(common{})) + uint64(len(t.shards))*shardBytes + t.memory.bytes()
	bytes += uint64(len(t.words)) * uint64(unsafe.Sizeof(t.words[0]))
	bytes += uint64(len(t.neighbourhoods)) * uint64(unsafe.Sizeof(neighbourhood{}))
	if t.rings != nil {
		bytes += t.rings.bytes()
	}
	return bytes
}
