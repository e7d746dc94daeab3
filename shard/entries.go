package shard

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// In a shared table of limits in flight, entries record which process has which tokens (R26).

// An entry describes what one take has in flight. Only the take's process writes slotTokens and takenAt, while the
// entry is pending.
type entry struct {
	holder     word.Word // holds an atomicbucket.Entry
	slotTokens word.Word // the number of the take's slot and, from bit tokensShift on, the number of tokens
	takenAt    word.Word // the time of the take
}

const (
	entryBytes  = uint64(unsafe.Sizeof(entry{}))
	tokensShift = 48
	slotMask    = 1<<tokensShift - 1
)

// entries are the entries of a table, and the position at which this process next looks for a free one.
type entries struct {
	list []entry
	next atomic.Uint64
}

// An entryRef identifies the entry of a request, from the moment at which the entry is pending. Every request contains
// this struct, so it is small.
type entryRef struct {
	isCounted bool
	number    uint32             // the entry's number plus one; 0 for none
	holder    atomicbucket.Entry // the holder when the entry was taken
}

// newEntries returns the entries of a table, whose words are in list. Each process starts its search for free entries
// at a random position.
func newEntries(list []entry) *entries {
	e := &entries{list: list}
	e.next.Store(rand.Uint64N(uint64(len(list))))
	return e
}

// take takes a free entry for a request. It returns the zero value if no entry is free.
func (e *entries) take(claimant uint64, now int64) (o entryRef) {
	for range e.list {
		number := e.next.Add(1) % uint64(len(e.list))
		entry := &e.list[number]
		h := atomicbucket.Entry(entry.holder.Load())
		if h.What() != atomicbucket.NoEntry {
			continue
		}
		if pending := h.Taken(claimant); entry.holder.CompareAndSwap(uint64(h), uint64(pending)) {
			entry.takenAt.Store(uint64(now))
			return entryRef{number: uint32(number) + 1, holder: pending}
		}
	}
	return entryRef{}
}

// setState changes the state of an entry, if its holder is still old.
func (e *entry) setState(old, state atomicbucket.Entry) bool {
	return e.holder.CompareAndSwap(uint64(old), uint64(old.As(state)))
}

// useNumber returns a number that distinguishes the uses of an entry by one process, for receipts. The generation alone
// wraps around after 256 uses, so bits of the time are added.
func (e *entry) useNumber(h atomicbucket.Entry) uint32 {
	return uint32(e.takenAt.Load())<<8 | h.Generation()
}

// prepareEntry prepares a take of n tokens from the record in slot sl, with state s. It marks the entry of the record's
// last change, writes the request's entry (R26), and returns the payload with the number of that entry. ok is false if
// no entry is free.
func (t *Table) prepareEntry(r *request, sl *slot, s atomicbucket.State, payload, n uint64) (next uint64, ok bool) {
	t.markLastChange(sl, s)
	if r.number == 0 {
		if r.entryRef = t.entries.take(t.claimant, r.now); r.number == 0 {
			return 0, false
		}
	}
	t.entries.list[r.number-1].slotTokens.Store(t.number(sl) | n<<tokensShift)
	return t.current().entries.Entered(payload, uint64(r.number-1)), true
}

// confirmEntry marks the entry of a request whose compare-and-swap has succeeded.
func (t *Table) confirmEntry(r *request) {
	if r.number != 0 {
		t.entries.list[r.number-1].setState(r.holder, atomicbucket.Counted)
		r.isCounted = true
	}
}

// concludeEntry frees the entry of a request that was not admitted. For an admitted request, it sets what the receipt
// needs.
func (t *Table) concludeEntry(r *request, o *Outcome) {
	switch {
	case r.number == 0:
	case r.isCounted:
		o.ended = t.entries.list[r.number-1].useNumber(r.holder)
	default:
		t.entries.list[r.number-1].setState(r.holder, atomicbucket.NoEntry)
	}
}

func (t *Table) noEntryOutcome(p Place, s atomicbucket.State, plan *Plan, at int64) Outcome {
	o := Outcome{State: s, Plan: plan, At: at, Verdict: NoRoom}
	if t.overflow == Admit {
		t.shard(p).unrecorded.Add(1)
		o.Verdict = Unrecorded
	} else {
		t.shard(p).noRoom.Add(1)
	}
	return o
}

// markLastChange marks the entry that a slot's record names: as counted if the record's last change was a take, as free
// if that change gave the entry's tokens back. Only then may the state be changed (R26). markLastChange returns false
// if the slot holds another state by now.
func (t *Table) markLastChange(sl *slot, s atomicbucket.State) bool {
	if t.entries == nil || !s.IsLive() { // a tentative record names no entry
		return true
	}
	number, leaving := t.current().entries.Last(s)
	if number >= uint64(len(t.entries.list)) {
		return true // R20
	}
	e, from, to := &t.entries.list[number], atomicbucket.Pending, atomicbucket.Counted
	if leaving {
		from, to = atomicbucket.Counted, atomicbucket.NoEntry
	}
	for {
		h := atomicbucket.Entry(e.holder.Load())
		if h.What() != from || e.slotTokens.Load()&slotMask != t.number(sl) { // it may belong to another slot by now
			return true
		}
		if sl.state.Load() != s {
			return false
		}
		if e.setState(h, to) {
			return true
		}
	}
}

// leave gives back the tokens of a counted entry, unless the entry has already left. It returns the number of tokens.
func (t *Table) leave(number uint64, h atomicbucket.Entry) (n uint64, after atomicbucket.State) {
	e := &t.entries.list[number]
	for {
		slotTokens := e.slotTokens.Load()
		if slotTokens&slotMask >= t.slots {
			e.setState(h, atomicbucket.NoEntry) // R20
			return 0, 0
		}
		sl := t.slotOf(slotTokens & slotMask)
		s := sl.state.Load()
		if !t.markLastChange(sl, s) {
			continue
		}
		if atomicbucket.Entry(e.holder.Load()) != h { // after the state
			return 0, 0
		}
		if !s.IsLive() { // R20
			e.setState(h, atomicbucket.NoEntry)
			return 0, 0
		}
		n = slotTokens >> tokensShift
		if after, ok := sl.state.Move(s, t.current().entries.Left(s, number, n)); ok {
			e.setState(h, atomicbucket.NoEntry)
			return n, after
		}
	}
}

// markEntry marks a pending entry as counted if its take was made.
func (t *Table) markEntry(e *entry) {
	number := e.slotTokens.Load() & slotMask
	if number >= t.slots {
		return // R20
	}
	for sl := t.slotOf(number); !t.markLastChange(sl, sl.state.Load()); {
	}
}

// releaseDead frees the tokens that an entry of a dead process has in flight (R26), and returns their number.
func (t *Table) releaseDead(number uint64, h atomicbucket.Entry) (n uint64) {
	e := &t.entries.list[number]
	if h.What() == atomicbucket.Pending {
		t.markEntry(e)
		if e.setState(h, atomicbucket.NoEntry) { // nothing was taken: otherwise the state would name the entry
			return 0
		}
		current := atomicbucket.Entry(e.holder.Load())
		if current != h.As(atomicbucket.Counted) {
			return 0
		}
		h = current
	}
	n, _ = t.leave(number, h)
	return n
}

func (t *Table) slotOf(number uint64) *slot {
	return (*slot)(unsafe.Add(unsafe.Pointer(t.first), number*slotBytes))
}

// Reap frees the requests that dead processes have in flight, and requests that have been in flight for longer than the
// plan remembers. A sweep does the same. Only shared tables of limits in flight need it; for others Reap does nothing.
func (t *Table) Reap(now int64) {
	defer runtime.KeepAlive(t)
	t.reap(now, nil)
}

// reap does the work of Reap for a sweep. It calls pause from time to time, and reports whether the sweep should
// continue.
func (t *Table) reap(now int64, pause func() bool) bool {
	if t.entries == nil {
		return true
	}
	lifetime, dead, forgotten := int64(t.current().entries.Longest()), map[uint64]bool{}, uint64(0)
	defer func() { t.shards[0].forgotten.Add(forgotten) }()
	for number := range t.entries.list {
		if number%t.chunk == t.chunk-1 && pause != nil && !pause() {
			return false
		}
		e := &t.entries.list[number]
		h := atomicbucket.Entry(e.holder.Load())
		if h.What() == atomicbucket.NoEntry {
			continue
		}
		isDead, ok := dead[h.Claimant()]
		if !ok {
			isDead = t.isDeserted(h.Claimant())
			dead[h.Claimant()] = isDead
		}
		if isDead {
			forgotten += t.releaseDead(uint64(number), h)
			continue
		}
		if h.What() == atomicbucket.Pending { // its process may have stopped after the take was made
			t.markEntry(e)
			h = atomicbucket.Entry(e.holder.Load())
		}
		if h.What() == atomicbucket.Counted && now-int64(e.takenAt.Load()) >= lifetime {
			n, _ := t.leave(uint64(number), h)
			forgotten += n
		}
	}
	return true
}

// Boot is for a table whose memory has outlived a boot of the machine, and so all processes of the table. It forgets
// what is in flight. The system may have written only a part of the memory to disk, so records and entries may disagree
// (R26). No process may use the table during the call. The call may be repeated.
func (cfg Config) Boot(memory []byte) error {
	l, first, err := cfg.sharedMemory(memory)
	if err != nil || l.entries == 0 {
		return err
	}
	offsets := l.offsets()
	for i, slots := 0, sliceAt[slot](first, offsets.slots, l.slots()); i < len(slots); i++ {
		if s := slots[i].state.Load(); s.IsLive() {
			slots[i].state.Free(s)
		}
	}
	for i, list := 0, sliceAt[entry](first, offsets.entries, l.entries); i < len(list); i++ {
		list[i].setState(atomicbucket.Entry(list[i].holder.Load()), atomicbucket.NoEntry)
	}
	return nil
}

// dismiss makes counted entries of a key's record leave, whichever process has them, up to maxTokens tokens in all. The
// record was read in the state s.
func (t *Table) dismiss(p Place, sl *slot, s atomicbucket.State, maxTokens uint64) {
	t.markLastChange(sl, s)
	for number := range t.entries.list {
		e := &t.entries.list[number]
		h := atomicbucket.Entry(e.holder.Load())
		slotTokens := e.slotTokens.Load()
		if h.What() != atomicbucket.Counted || slotTokens&slotMask != t.number(sl) || slotTokens>>tokensShift > maxTokens {
			continue
		}
		if sl.key.Load()&^tierMask == p.fingerprint { // after the holder: the slot may belong to another key by now
			n, _ := t.leave(uint64(number), h)
			maxTokens -= n
		}
	}
}

// resetInFlight does what Reset does, for a table of limits in flight. A record may have tokens without an entry, after
// a loss of power or because of words that no call writes. So resetInFlight forgets a record to which no entry belongs,
// unless the record has changed meanwhile.
func (t *Table) resetInFlight(p Place) (found bool) {
	for range 2 {
		record, plan, sl := t.record(p)
		if sl == nil || found && plan.idle(record.State, 0) {
			return found
		}
		found = true
		t.dismiss(p, sl, record.State, slotMask)
		if sl.state.Free(record.State) {
			return found
		}
	}
	return found
}

// refundInFlight gives back n tokens in flight. With a receipt, it frees the receipt's entry once all tokens of the
// receipt have been given back, so a refund in parts takes effect with its last part. Without a receipt, it frees
// entries of the key.
func (t *Table) refundInFlight(p Place, n uint64, receipt *Receipt) (s atomicbucket.State, plan *Plan, v Verdict) {
	record, plan, sl := t.record(p)
	switch {
	case !receipt.IsKnown():
		if sl != nil {
			t.dismiss(p, sl, record.State, n)
		}
		return record.State, plan, Admitted
	case n < receipt.n:
		return record.State, plan, Refused
	}
	number, _ := plan.entries.Last(receipt.after)
	if number < uint64(len(t.entries.list)) {
		e := &t.entries.list[number]
		h := atomicbucket.Entry(e.holder.Load())
		if h.What() == atomicbucket.Counted && h.Claimant() == t.claimant && e.useNumber(h) == receipt.ends {
			if n, after := t.leave(number, h); n > 0 {
				return after, plan, Admitted
			}
		}
	}
	return record.State, plan, Refused
}
