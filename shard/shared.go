package shard

import (
	"fmt"
	"unsafe"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// Shared is the memory of a table that several processes have mapped, and the identity of this process.
type Shared struct {
	Memory []byte // [Config.SharedBytes] bytes, starting at a page
	Owner  Owner
	// Build makes a plan from the numbers that were passed to [Config.Begin] or [Table.Replace]. For any
	// other numbers, it must return a plan or an error (R20). A call that finds a plan of another process calls Build.
	// Several calls may do so at the same time.
	Build func(numbers []uint64) (*Plan, error)
	// Clock returns the time of a clock that all processes share, and that no process can move. The watermark moves
	// only to times that this clock has reached (R23). If Clock is nil, the clocks of all calls are trusted.
	Clock func() int64
	// Now returns the time of the clock by which this process makes calls. A conversion to a faster plan or a lower
	// price counts the owed tokens at this time, so that it gives no tokens back (R24, R27). If Now is nil, records are
	// converted at the watermark.
	Now func() int64
}

// An Owner identifies a process that claims slots of a shared table, and knows which other owners are dead (R17).
type Owner interface {
	// Claimant returns the number of this owner, 1 to 2^54-1. No other owner ever has the same number.
	Claimant() uint64
	// Dead reports whether the owner with a number is dead: none of its goroutines runs or ever will. A number that no
	// owner ever had counts as dead.
	Dead(claimant uint64) bool
}

const (
	partBytes   = 4096 // each part of a shared table starts at a multiple of partBytes
	maxClaimant = 1<<54 - 1
)

// offsets has the offsets at which the parts of a shared table start in its memory, and the end of the last part.
type offsets struct{ common, plans, counters, bounds, neighbourhoods, marks, entries, slots, prices, end uint64 }

func (l layout) offsets() (s offsets) {
	at := uint64(0)
	for _, part := range []struct {
		begin *uint64
		bytes uint64
	}{
		{&s.common, uint64(unsafe.Sizeof(common{}))},
		{&s.plans, uint64(unsafe.Sizeof(areas{}))},
		{&s.counters, l.shards * uint64(unsafe.Sizeof(counters{}))},
		{&s.bounds, l.boundWords() * uint64(unsafe.Sizeof(word.Word{}))},
		{&s.neighbourhoods, l.neighbourhoods() * uint64(unsafe.Sizeof(neighbourhood{}))},
		{&s.marks, markWords(l.slots()) * uint64(unsafe.Sizeof(word.Word{}))},
		{&s.entries, l.entries * entryBytes},
		{&s.slots, l.slots() * slotBytes},
		{&s.prices, l.ringSlots() * slotBytes},
	} {
		*part.begin = at
		at += ceilDiv(part.bytes, partBytes) * partBytes
	}
	s.end = at
	return s
}

// SharedBytes returns how many bytes a shared table of the configuration takes. It returns the error that [Map] would
// return for the configuration.
func (cfg Config) SharedBytes() (uint64, error) {
	l, err := cfg.sharedLayout()
	return l.offsets().end, err
}

// sharedLayout does what layout does, for a shared table. A table of logs cannot be shared, because calls use the
// positions in its rings without a check.
func (cfg Config) sharedLayout() (layout, error) {
	l, err := cfg.layout()
	switch {
	case err != nil:
	case l.ringSize > 0 && !cfg.Plan.isBucket:
		err = fmt.Errorf("shard: a table of logs cannot be shared")
	case cfg.Plan.inFlight != nil:
		err = fmt.Errorf("shard: a shared table of what is in flight has entries: want the algorithm of those")
	case cfg.Plan.entries == nil && cfg.Entries == 0:
	case cfg.Entries < 1 || cfg.Entries > atomicbucket.MaxEntries || l.slots() > slotMask:
		err = fmt.Errorf("shard: %d entries of what is in flight, and %d slots: want 1 to %d, and at most %d",
			cfg.Entries, l.slots(), uint64(atomicbucket.MaxEntries), uint64(slotMask))
	default:
		l.entries = cfg.Entries
	}
	return l, err
}

// Begin makes a table in zeroed memory of [Config.SharedBytes] bytes. The table starts at cfg.Start. Its plan is the
// one that Build makes from numbers, which has at most [MaxNumbers] elements.
func (cfg Config) Begin(memory []byte, numbers []uint64) error {
	l, first, err := cfg.sharedMemory(memory)
	if err != nil {
		return err
	}
	if len(numbers) > MaxNumbers {
		return fmt.Errorf("shard: a plan of %d numbers: want at most %d", len(numbers), MaxNumbers)
	}
	common := l.commonOf(first)
	(&Table{common: common}).begin(cfg.Start)
	l.areasOf(first).write(1, numbers)
	common.planned.Store(1)
	common.change.Store(1 << changeShift)
	return nil
}

// Mark returns the watermark of the table in memory.
func (cfg Config) Mark(memory []byte) (int64, error) {
	l, first, err := cfg.sharedMemory(memory)
	if err != nil {
		return 0, err
	}
	return int64(l.commonOf(first).watermark.Load()), nil
}

// commonOf returns the words of a shared table that belong neither to a slot nor to a home.
func (l layout) commonOf(first unsafe.Pointer) *common {
	return &sliceAt[common](first, l.offsets().common, 1)[0]
}

// sharedMemory returns the layout of a table in memory, and where it starts.
func (cfg Config) sharedMemory(memory []byte) (layout, unsafe.Pointer, error) {
	l, err := cfg.sharedLayout()
	if err != nil {
		return layout{}, nil, err
	}
	first, want := unsafe.Pointer(unsafe.SliceData(memory)), l.offsets().end
	if uint64(len(memory)) != want || uintptr(first)%lineBytes != 0 {
		return layout{}, nil, fmt.Errorf("shard: %d bytes from %p on for a shared table: want %d from the beginning of a line on", len(memory), first, want)
	}
	return l, first, nil
}

// Map returns a table in memory that is shared with other processes. All processes must use the configuration with
// which the table was made ([Config.Begin]). Only cfg.Plan may differ: it may be any plan with the table's algorithm,
// because the table follows the plan in memory. Map writes nothing. The table keeps s.Owner alive, but not the memory,
// which must stay mapped while the table is in use.
func Map(cfg Config, s Shared) (*Table, error) {
	l, first, err := cfg.sharedMemory(s.Memory)
	if err != nil {
		return nil, err
	}
	offsets := l.offsets()
	claimant := s.Owner.Claimant()
	if claimant < 1 || claimant > maxClaimant {
		return nil, fmt.Errorf("shard: claimant %d: want 1 to %d", claimant, uint64(maxClaimant))
	}
	var prices *memory
	if l.ringSize > 0 {
		prices = &memory{slots: sliceAt[slot](first, offsets.prices, l.ringSlots())}
	}
	t := cfg.table(l, parts{
		rings: prices,
		memory: &memory{
			slots:  sliceAt[slot](first, offsets.slots, l.slots()),
			mapped: offsets.end,
			pages:  pages{marks: sliceAt[word.Word](first, offsets.marks, markWords(l.slots()))},
		},
		common:         l.commonOf(first),
		counters:       sliceAt[counters](first, offsets.counters, l.shards),
		bounds:         sliceAt[word.Word](first, offsets.bounds, l.boundWords()),
		neighbourhoods: l.neighbourhoodsOf(first),
	})
	t.clock = s.Clock
	if cfg.Plan.entries != nil {
		t.entries = newEntries(sliceAt[entry](first, offsets.entries, l.entries))
	}
	t.owner, t.claimant, t.sharedPlans = s.Owner, claimant, sharedPlans{l.areasOf(first), s.Build, nil}
	if s.Now != nil {
		t.now = func() int64 { return t.reachedTime(s.Now()) }
	}
	if cfg.Prefault {
		touchRead(t.memory.slots)
	}
	return t, nil
}

func sliceAt[T any](first unsafe.Pointer, offset, n uint64) []T {
	return unsafe.Slice((*T)(unsafe.Add(first, offset)), n)
}

// touchRead reads every page, so that the system provides it now. It does not write, because other processes may be
// writing there.
func touchRead(slots []slot) {
	for i := 0; i < len(slots); i += pageSlots {
		slots[i].key.Load()
	}
}

// isDeserted reports whether the process with this number is dead, so that other processes continue what it has begun
// (R17, R18).
func (t *Table) isDeserted(claimant uint64) bool {
	return t.owner != nil && claimant != t.claimant && t.owner.Dead(claimant)
}

// Settle removes the counts of forced ends that were under way when their processes died (R19), because no sweep can
// recognize them. The function isAlone reports whether no other process has attached to the table. Other processes may
// attach during the call.
func (cfg Config) Settle(memory []byte, isAlone func() bool) error {
	l, first, err := cfg.sharedMemory(memory)
	if err != nil {
		return err
	}
	groups := l.neighbourhoodsOf(first)
	for i := range groups {
		ends := groups[i].ends.Load()
		if ends&endsUnderway == 0 {
			continue
		}
		if !isAlone() { // after the word was read
			return nil
		}
		groups[i].ends.CompareAndSwap(ends, ends&^endsUnderway)
	}
	return nil
}

func (l layout) areasOf(first unsafe.Pointer) *areas {
	return &sliceAt[areas](first, l.offsets().plans, 1)[0]
}

func (l layout) neighbourhoodsOf(first unsafe.Pointer) []neighbourhood {
	return sliceAt[neighbourhood](first, l.offsets().neighbourhoods, l.neighbourhoods())
}

// ensureFindable ensures that searches find the live record of the key at p in slot sl, or frees this record (R20). A
// search may miss the record if a process has written words that no call writes. Without ensureFindable, a call that
// has met such a record would search for it forever.
func (t *Table) ensureFindable(p Place, sl *slot, s atomicbucket.State) {
	if t.owner == nil || !s.IsLive() {
		return
	}
	index := p.index(sl)
	for i := range index {
		if p.slot(i).state.Load() == 0 {
			sl.state.Free(s)
			return
		}
	}
	t.cover(p, index)
}

// IsShared reports whether other processes may have mapped the table.
func (t *Table) IsShared() bool { return t.owner != nil }
