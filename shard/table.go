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

// A slot holds at most one record. The state word decides which call or key owns the slot: see doc.go.
type slot struct {
	state atomicbucket.Word
	key   word.Word // a label; its fingerprint is written only under CLAIM
}

// An Overflow is the policy for a new key if every slot of its probe window holds the record of a key that is not idle.
type Overflow uint8

const (
	// Evict forgets the record with the least debt in the probe window, and gives its slot to the new key. It counts
	// the eviction, and the tokens that the record owed.
	Evict Overflow = iota
	// Refuse refuses the new key and counts it.
	Refuse
	// Admit admits the new key without a record, and counts it.
	Admit
)

// String returns the name of the policy in flags and files.
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

// Config configures [New].
type Config struct {
	Plan        *Plan
	Slots       uint64   // at least this many slots in all
	Shards      int      // 1 to MaxShards, a power of two
	ProbeWindow int      // slots per probe window; 0 means DefaultProbeWindow
	Overflow    Overflow // the policy for a new key whose probe window is full
	Start       int64    // the time at which the table is made, in nanoseconds
	Prefault    bool     // touch every page now, not at first use
	Entries     uint64   // only for a shared table of limits in flight: how many takes may be in flight at a time
	// Now returns the time of the clock by which calls are made. No call has read a later time. When prices change,
	// debts are counted at this time (R27). If Now is nil, they are counted at the times of the calls.
	Now func() int64
}

// A Table has the shards and the watermark, a time that has certainly been reached: only records that are idle at the
// watermark are forgotten as idle (R7). Its methods are safe for concurrent use.
type Table struct {
	// A take reads the fields up to the plan. All of them, except the plan, are constant after New.
	first       *slot  // of shard 0
	mask        uint64 // number of shards, a power of two, less one
	lines       uint64 // lines in a shard
	homes       uint64 // lines of a shard that are homes: a whole probe window starts at each
	probeWindow uint64 // slots in a probe window
	hitSlots    uint64 // slots that Hit searches: 0 if the records are not token buckets, or have prices
	plan        word.Pointer[Plan]
	*common
	slots uint64 // in all shards

	buckets       bool           // the records are token buckets, under every plan
	hitQuotaSlots uint64         // slots that HitQuota searches: like hitSlots, but not 0 if records have prices
	prices        unsafe.Pointer // of the first slot's record; nil if records have none
	overflow      Overflow
	shards        []shard
	memory        *memory
	rings         *memory // of sliding logs, and prices, else nil
	ringSize      uint64  // entries of a ring
	ringWords     uint64  // words that a ring takes
	dense         chan struct{}
	chunk         int          // how many slots a sweep visits between two calls of pause
	owner         Owner        // of a shared table, else nil
	claimant      uint64       // the number in the claims of this process; 0 if the table is not shared
	clock         func() int64 // the machine's clock, of a shared table, or nil: R23
	sharedPlans
	entries *entries // of a shared table of limits in flight, else nil

	probeBounds
	neighbourhoods []neighbourhood

	_         [lineBytes]byte // the words below are written while the table is used
	pace      word.Word       // in a table of one process: the skew by which the watermark moves; see replacing
	advancing word.Word       // calls that may be about to move the watermark
}

// common has the words that belong neither to a slot nor to a home. In a shared table, they are in the shared memory.
type common struct {
	watermark word.Word
	planned   word.Word            // the number of the current plan of a shared table; 0 in other tables: R21
	_         [lineBytes - 16]byte // Hit reads the words above, so no word that is often written may share their line
	leading   word.Word            // the latest time at which a request ahead of its clock was granted
	lowering  word.Word            // the stage of the sweep that lowers probe bounds
	changes                        // the words by which the plan of a shared table is replaced
	fastest   word.Word            // 2^63-1 minus the lowest price of any conversion; 0 if there was none (R27)
	largest   word.Word            // the largest quota that was made (R28)
	realigned word.Word            // since when the windows of the clock have their length; 0: always (R29)
	_         [lineBytes - 56]byte
	sweeps
	_ [2*lineBytes - unsafe.Sizeof(sweeps{})]byte
}

// A shard is one open-addressed array of slots with its own counters.
type shard struct {
	slots []slot
	*counters
}

// New returns a table with at least cfg.Slots slots: each shard is rounded up to whole lines. New allocates all memory
// that the table ever uses.
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

// table returns a table that consists of the parts p. It leaves the words of these parts unchanged.
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
		t.hitQuotaSlots = min(t.probeWindow, hitLines*lineSlots)
	}
	if t.prices = pricesOf(cfg.Plan, p.rings); t.prices == nil {
		t.hitSlots = t.hitQuotaSlots
	}
	t.plan.Store(cfg.Plan)
	t.pace.Store(cfg.Plan.skew)
	return t
}

func (t *Table) begin(start int64) {
	t.watermark.Store(uint64(start))
	t.swept.Store(uint64(start))
}

// A Place locates the probe window of a key, which starts at the key's home slot. It is valid for one table only.
type Place struct {
	fingerprint uint64 // without the bits of a tier
	home        *slot
}

// Find returns the place of a key. The fingerprint is a 64-bit hash of the key, uniform in all its bits. Its low bits
// choose the shard, and its high bits the home slot. All bits except those of the tier ([tierMask]) are part of the
// record's label.
func (t *Table) Find(fingerprint uint64) Place {
	fingerprint &^= tierMask
	home, _ := bits.Mul64(fingerprint, t.homes*lineSlots)
	first := (fingerprint&t.mask)*(t.lines*lineSlots) + home
	return Place{fingerprint, (*slot)(unsafe.Add(unsafe.Pointer(t.first), first*slotBytes))}
}

// Touch starts to load the home line and does not wait for it, so that the caller can read its clock meanwhile.
func (p Place) Touch() { p.home.state.Load() }

// slot returns slot i of the probe window: first the slots of the home line, in the order of the key, then those of
// each further line in the same order. It checks nothing, because New gives every home a whole probe window.
func (p Place) slot(i uint64) *slot {
	return (*slot)(unsafe.Add(p.line(), (i^p.order())*slotBytes))
}

// order returns the position of the home slot in its line. Slot i of the probe window is slot i^order from the start of
// that line. So the keys of one home start their searches at four different slots. In a table that is 0.6 full, a share
// of 0.70 of the records is in the slot that a search reads first, and the processor predicts the branch. With one
// common start, the share would be only 0.37.
func (p Place) order() uint64 { return uint64(uintptr(unsafe.Pointer(p.home)) / slotBytes % lineSlots) }

func (p Place) line() unsafe.Pointer {
	return unsafe.Pointer(uintptr(unsafe.Pointer(p.home)) &^ (lineBytes - 1))
}

// index returns the number of sl in the probe window.
func (p Place) index(sl *slot) uint64 {
	return uint64(uintptr(unsafe.Pointer(sl))-uintptr(p.line()))/slotBytes ^ p.order()
}

// line returns the number of p's home line in the table.
func (t *Table) line(p Place) uint64 {
	return uint64(uintptr(unsafe.Pointer(p.home))-uintptr(unsafe.Pointer(t.first))) / lineBytes
}

// number returns the number of sl in the table.
func (t *Table) number(sl *slot) uint64 {
	return uint64(uintptr(unsafe.Pointer(sl))-uintptr(unsafe.Pointer(t.first))) / slotBytes
}

// ring returns the ring of a slot, or nil if the records have no rings.
func (t *Table) ring(sl *slot) atomicbucket.Ring {
	if t.rings == nil {
		return nil
	}
	first := unsafe.Add(unsafe.Pointer(&t.rings.slots[0]), t.number(sl)*t.ringWords*8)
	return unsafe.Slice((*word.Word)(first), t.ringSize)
}

func (t *Table) shard(p Place) *shard { return &t.shards[p.fingerprint&t.mask] }

// Plan returns the current plan.
func (t *Table) Plan() *Plan { return t.current() }

func ceilDiv(a, b uint64) uint64 { return a/b + min(a%b, 1) }
