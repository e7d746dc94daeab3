package shard

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

const (
	lineBytes = 64
	slotBytes = 16
	lineSlots = lineBytes / slotBytes

	// DefaultProbeWindow is the probe window in slots: eight cache lines.
	DefaultProbeWindow = 32
	// MaxShards bounds Config.Shards.
	MaxShards = 1 << 12
)

// A slot is one record. The state word owns it; see doc.go.
type slot struct {
	state atomicbucket.Word
	key   word.Word // fingerprint; written only under CLAIM
}

// An Overflow says what happens to a new key when its whole probe window is taken by
// keys that are not idle.
type Overflow uint8

const (
	// Evict forgets the record with the least debt in the probe window, counts it
	// and the tokens thereby forgiven, and takes its slot.
	Evict Overflow = iota
	// Refuse refuses the new key and counts it.
	Refuse
	// Admit admits the new key without recording it and counts it.
	Admit
)

// String returns the policy's name as a flag or a file has it.
func (o Overflow) String() string {
	switch o {
	case Evict:
		return "evict"
	case Refuse:
		return "refuse"
	case Admit:
		return "admit"
	}
	return fmt.Sprintf("Overflow(%d)", uint8(o))
}

// Config is what [New] needs to know.
type Config struct {
	Plan        *Plan
	Slots       uint64   // at least this many slots in all
	Shards      int      // 1 to MaxShards, a power of two
	ProbeWindow int      // slots per probe window; 0 means DefaultProbeWindow
	Overflow    Overflow // what to do when a probe window is full
	Start       int64    // the time at which the table is made, in nanoseconds
	Prefault    bool     // touch every page now, not at first use
	Entries     uint64   // of a shared table of what is in flight: how many takes may be so at a time
	// Now returns the time by the clock of the calls, the latest that it has read. By it debts are counted where prices
	// change (R27). Without it they are counted at the times of the calls.
	Now func() int64
}

// A Table is the whole table: its shards, and the watermark that orders forgetting
// and time (rule R7). Its methods may be called from any goroutine at any time.
type Table struct {
	// What a take reads; but for the plan constant since New.
	first       *slot  // of shard 0
	mask        uint64 // number of shards, a power of two, less one
	lines       uint64 // lines in a shard
	homes       uint64 // lines in a shard that are a home: those with a probe window behind them
	probeWindow uint64 // slots in a probe window
	hits        uint64 // slots that Hit searches: none, if the records are not token buckets, or have prices
	plan        word.Pointer[Plan]
	*common
	slots uint64 // in all shards

	buckets   bool           // the records are token buckets, of whatever plan
	near      uint64         // slots that HitQuota searches: as hits, with prices, too
	prices    unsafe.Pointer // of the first slot's record; nil if records have none
	overflow  Overflow
	shards    []shard
	memory    *memory
	rings     *memory // of sliding logs, and prices, else nil
	ringSize  uint64  // entries of a ring
	ringWords uint64  // and the words that it takes
	dense     chan struct{}
	chunk     int          // slots that a sweep visits between two rests
	owner     Owner        // of a shared table, else nil
	claimant  uint64       // what a claim of this table says; 0 of a table that is not shared
	clock     func() int64 // the machine's, of a shared table, or nil: R23
	sharedPlans
	entries *entries // of a shared table of what is in flight, else nil

	probeBounds
	neighbourhoods []neighbourhood

	_         [lineBytes]byte // the words below are written while the table is used
	pace      word.Word       // the skew by which the watermark moves, and whether the plan is replaced; of own tables
	advancing word.Word       // calls that may be about to move the watermark
}

// common is the words that are neither a slot's nor a home's. Those of a shared table are in the memory that is shared.
type common struct {
	watermark word.Word
	planned   word.Word            // the number of a shared table's present plan, 0 of another table: R21
	_         [lineBytes - 16]byte // Hit reads these, and shall not wait for what is written below
	leading   word.Word            // the latest time ahead of its clock at which a request was granted
	lowering  word.Word            // what the sweep is at that lowers probe bounds
	changes                        // of a shared table's plan
	fastest   word.Word            // 2^63-1 less the least price at which records were converted; 0: none was (R27)
	largest   word.Word            // what keys may owe under quotas, by who makes those
	_         [lineBytes - 48]byte
	sweeps
	_ [2*lineBytes - unsafe.Sizeof(sweeps{})]byte
}

// A shard is one open-addressed array of slots with its own counters.
type shard struct {
	slots []slot
	*counters
}

// New returns a table of cfg.Slots slots, rounded up to whole lines per shard.
// All memory it will ever hold is allocated here.
func New(cfg Config) (*Table, error) {
	layout, err := cfg.layout()
	if err == nil && cfg.Plan.entries != nil {
		err = fmt.Errorf("shard: entries of what is in flight are for a shared table")
	}
	if err != nil {
		return nil, err
	}
	p, err := layout.allocate(cfg.Prefault)
	if err != nil {
		return nil, err
	}
	t := cfg.table(layout, p)
	t.now = cfg.Now
	t.begin(cfg.Start)
	return t, nil
}

// table returns a table that is made of parts. Their words are what they are.
func (cfg Config) table(layout layout, p parts) *Table {
	t := &Table{
		first:       &p.memory.slots[0],
		mask:        layout.shards - 1,
		lines:       layout.perShard / lineSlots,
		homes:       layout.homes,
		slots:       layout.slots(),
		probeWindow: layout.probeWindow,
		overflow:    cfg.Overflow,
		shards:      make([]shard, layout.shards),
		memory:      p.memory,
		rings:       p.rings,
		ringSize:    layout.ringSize,
		ringWords:   layout.ringWords,
		dense:       make(chan struct{}, 1),
		chunk:       sweepChunk,
		common:      p.common,
		probeBounds: probeBounds{p.bounds, ceilDiv(layout.probeWindow, boundSteps)},

		neighbourhoods: p.neighbourhoods,
	}
	for i := range t.shards {
		slots := p.memory.slots[uint64(i)*layout.perShard:][:layout.perShard:layout.perShard]
		t.shards[i] = shard{slots, &p.counters[i]}
	}
	if t.buckets = cfg.Plan.isBucket; t.buckets {
		t.near = min(t.probeWindow, hitLines*lineSlots)
	}
	if t.prices = pricesOf(cfg.Plan, p.rings); t.prices == nil {
		t.hits = t.near
	}
	t.plan.Store(cfg.Plan)
	t.pace.Store(cfg.Plan.skew)
	return t
}

// begin makes a time the one at which the table is made. All other words are 0.
func (t *Table) begin(start int64) {
	t.watermark.Store(uint64(start))
	t.swept.Store(uint64(start))
}

// A Place is where a key's record is, if it has one: the probe window, which begins with its home slot. It is worth
// nothing to any other table.
type Place struct {
	fingerprint uint64 // without the bits of a tier
	home        *slot
}

// Find returns the place of a key. The fingerprint is a 64-bit hash of the key,
// uniform in all its bits: the low ones choose the shard, the high ones the home
// slot, and all of them but those of a tier ([tierMask]) are the record's label.
func (t *Table) Find(fingerprint uint64) Place {
	fingerprint &^= tierMask
	home, _ := bits.Mul64(fingerprint, t.homes*lineSlots)
	first := (fingerprint&t.mask)*(t.lines*lineSlots) + home
	return Place{fingerprint, (*slot)(unsafe.Add(unsafe.Pointer(t.first), first*slotBytes))}
}

// Touch starts the home line on its way from memory and does not wait for it, so
// that the caller can read its clock meanwhile.
func (p Place) Touch() { p.home.state.Load() }

// at returns slot i of the probe window, which has t.probeWindow slots: the slots of the home line in the order of the
// key, then those of the next line in the same order. New laid the shards out so that every home has a whole probe
// window behind it, so nothing is checked.
func (p Place) at(i uint64) *slot {
	return (*slot)(unsafe.Add(p.line(), (i^p.order())*slotBytes))
}

// order returns which slot of its line the home slot is. Slot i of the probe window is slot i^order from the home line
// on. Keys of one home line have four orders, so most records are in the slot that a search reads first, and the
// processor predicts that: 0.70 of them in a table that is 0.6 full, and not 0.37, as if all keys had the first slot.
func (p Place) order() uint64 { return uint64(uintptr(unsafe.Pointer(p.home)) / slotBytes % lineSlots) }

// line returns the first slot of the home line.
func (p Place) line() unsafe.Pointer {
	return unsafe.Pointer(uintptr(unsafe.Pointer(p.home)) &^ (lineBytes - 1))
}

// index returns which slot of the probe window sl is.
func (p Place) index(sl *slot) uint64 {
	return uint64(uintptr(unsafe.Pointer(sl))-uintptr(p.line()))/slotBytes ^ p.order()
}

// line returns which of all lines the home of p is.
func (t *Table) line(p Place) uint64 {
	return uint64(uintptr(unsafe.Pointer(p.home))-uintptr(unsafe.Pointer(t.first))) / lineBytes
}

// number returns which of all slots sl is.
func (t *Table) number(sl *slot) uint64 {
	return uint64(uintptr(unsafe.Pointer(sl))-uintptr(unsafe.Pointer(t.first))) / slotBytes
}

// ring returns the ring of a slot, or nil if the records have none.
func (t *Table) ring(sl *slot) atomicbucket.Ring {
	if t.rings == nil {
		return nil
	}
	first := unsafe.Add(unsafe.Pointer(&t.rings.slots[0]), t.number(sl)*t.ringWords*8)
	return unsafe.Slice((*word.Word)(first), t.ringSize)
}

// shard returns the shard that p is in.
func (t *Table) shard(p Place) *shard { return &t.shards[p.fingerprint&t.mask] }

// Plan returns the present plan.
func (t *Table) Plan() *Plan { return t.current() }

func ceilDiv(a, b uint64) uint64 { return a/b + min(a%b, 1) }
