package shard

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/weir-go/weir/internal/word"
)

// A layout describes the memory of a table: what [New] allocates and [Config.Bytes] counts.
type layout struct {
	shards      uint64
	homes       uint64 // the number of lines of a shard that are homes
	perShard    uint64 // slots in a shard, in whole lines: a whole probe window starts at every home
	probeWindow uint64 // slots in a probe window
	ringSize    uint64 // words of a ring; 0 if records have none
	ringWords   uint64 // words that a ring takes, rounded up to whole slots
	entries     uint64 // entries for takes in flight
}

func (cfg Config) layout() (layout, error) {
	if cfg.ProbeWindow == 0 {
		cfg.ProbeWindow = DefaultProbeWindow
	}
	if cfg.Start < 0 || cfg.Slots < 1 || cfg.Shards < 1 || cfg.Shards > MaxShards || cfg.Shards&(cfg.Shards-1) != 0 ||
		cfg.ProbeWindow < 1 || cfg.Overflow > Admit {
		return layout{}, fmt.Errorf("shard: %d slots in %d shards with probe windows of %d slots and overflow policy %d, started at %d: "+
			"want at least 1 slot, a power of two up to %d shards, a probe window of at least 1, a known policy and a time from 0",
			cfg.Slots, cfg.Shards, cfg.ProbeWindow, cfg.Overflow, cfg.Start, MaxShards)
	}
	if cfg.Slots > maxBytes/slotBytes || cfg.ProbeWindow > maxBytes/slotBytes {
		return layout{}, fmt.Errorf("shard: %d slots of %d bytes with probe windows of %d slots: want at most %d slots",
			cfg.Slots, slotBytes, cfg.ProbeWindow, uint64(maxBytes/slotBytes))
	}
	l := layout{shards: uint64(cfg.Shards), probeWindow: uint64(cfg.ProbeWindow)}
	l.homes = ceilDiv(ceilDiv(cfg.Slots, l.shards), lineSlots)
	// The last home needs a whole probe window; shards start on a line.
	l.perShard = ceilDiv((l.homes-1)*lineSlots+l.probeWindow, lineSlots) * lineSlots
	if hi, total := bits.Mul64(l.perShard, l.shards); hi != 0 || total > maxBytes/slotBytes {
		return layout{}, fmt.Errorf("shard: %d slots of %d bytes: want at most %d slots", cfg.Slots, slotBytes, uint64(maxBytes/slotBytes))
	}
	l.ringSize = cfg.Plan.algorithm.RingSize()
	l.ringWords = ceilDiv(l.ringSize, 2) * 2
	if hi, total := bits.Mul64(l.slots(), l.ringWords/2); hi != 0 || total > maxBytes/slotBytes {
		return layout{}, fmt.Errorf("shard: %d slots with %d times each: more than memory can be", l.slots(), l.ringSize)
	}
	return l, nil
}

func (l layout) slots() uint64 { return l.perShard * l.shards }

// ringSlots returns how much memory all rings take, in slots (a slot is two words).
func (l layout) ringSlots() uint64 { return l.slots() * l.ringWords / 2 }

func (l layout) boundWords() uint64 { return ceilDiv(l.slots()/lineSlots, wordHomes) }

func (l layout) neighbourhoods() uint64 { return ceilDiv(l.slots()/lineSlots, neighbourhoodHomes) }

// Bytes returns the value of [Stats].Bytes for a table of this configuration, without allocating it. The errors are
// those of [New], except for a lack of memory.
func (cfg Config) Bytes() (uint64, error) {
	l, err := cfg.layout()
	if err != nil {
		return 0, err
	}
	bytes := uint64(unsafe.Sizeof(Table{})+unsafe.Sizeof(common{})) + l.shards*shardBytes +
		l.boundWords()*uint64(unsafe.Sizeof(word.Word{})) +
		l.neighbourhoods()*uint64(unsafe.Sizeof(neighbourhood{})) + allocated(l.slots())
	if l.ringSize > 0 {
		bytes += allocated(l.ringSlots())
	}
	return bytes, nil
}
