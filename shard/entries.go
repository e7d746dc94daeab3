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

// An entry describes what one take has in flight. Only the take's process writes what and since, while the entry is
// pending.
type entry struct {
	holder word.Word // holds an atomicbucket.Entry
	what   word.Word // the number of the take's slot and, from bit tokensShift on, the number of tokens
	since  word.Word // the time of the take
}

const (
	entryBytes  = uint64(unsafe.Sizeof(entry{}))
	tokensShift = 48
	slotMask    = 1<<tokensShift - 1
)

// entries are the entries of a table, and the position at which this process next looks for a free one.
type entries struct {
	all  []entry
	next atomic.Uint64
}

// own identifies the entry of a request, from the moment at which the entry is pending. Every request contains this
// struct, so it is small.
type own struct {
	isCounted bool
	number    uint32             // the entry's number plus one; 0 for none
	holder    atomicbucket.Entry // the holder when the entry was taken
}

// newEntries returns the entries whose words are in the memory all. Each process starts its search for free entries at
// a random position.
func newEntries(all []entry) *entries {
	e := &entries{all: all}
	e.next.Store(rand.Uint64N(uint64(len(all))))
	return e
}

// take takes a free entry for a request. It returns the zero value if no entry is free.
func (e *entries) take(claimant uint64, now int64) (o own) {
	for range e.all {
		number := e.next.Add(1) % uint64(len(e.all))
		free := &e.all[number]
		h := atomicbucket.Entry(free.holder.Load())
		if h.What() != atomicbucket.NoEntry {
			continue
		}
		if taken := h.Taken(claimant); free.holder.CompareAndSwap(uint64(h), uint64(taken)) {
			free.since.Store(uint64(now))
			return own{number: uint32(number) + 1, holder: taken}
		}
	}
	return own{}
}

// become changes the state of an entry, if its holder is unchanged.
func (e *entry) become(was, what atomicbucket.Entry) bool {
	return e.holder.CompareAndSwap(uint64(was), uint64(was.As(what)))
}

// use returns a number that distinguishes the uses of an entry by one process, for receipts. The generation alone wraps
// around after 256 uses, so bits of the time are added.
func (e *entry) use(h atomicbucket.Entry) uint32 { return uint32(e.since.Load())<<8 | h.Generation() }

// enter prepares a take of n tokens from the record in slot sl, with state s. It marks the entry of the record's last
// change, writes the request's entry (R26), and returns the payload with the number of that entry. ok is false if no
// entry is free.
func (t *Table) enter(r *request, sl *slot, s atomicbucket.State, payload, n uint64) (entered uint64, ok bool) {
	t.flushed(sl, s)
	if r.number == 0 {
		if r.own = t.entries.take(t.claimant, r.now); r.number == 0 {
			return 0, false
		}
	}
	t.entries.all[r.number-1].what.Store(t.number(sl) | n<<tokensShift)
	return t.current().entries.Entered(payload, uint64(r.number-1)), true
}

// entered marks the entry of a request whose compare-and-swap has succeeded.
func (t *Table) entered(r *request) {
	if r.number != 0 {
		t.entries.all[r.number-1].become(r.holder, atomicbucket.Counted)
		r.isCounted = true
	}
}

// concludes frees the entry of a request that was not admitted. For an admitted request, it sets what the receipt
// needs.
func (t *Table) concludes(r *request, o *Outcome) {
	switch {
	case r.number == 0:
	case r.isCounted:
		o.ended = t.entries.all[r.number-1].use(r.holder)
	default:
		t.entries.all[r.number-1].become(r.holder, atomicbucket.NoEntry)
	}
}

func (t *Table) noEntry(p Place, s atomicbucket.State, plan *Plan, at int64) Outcome {
	o := Outcome{State: s, Plan: plan, At: at, Verdict: NoRoom}
	if t.overflow == Admit {
		t.shard(p).unrecorded.Add(1)
		o.Verdict = Unrecorded
	} else {
		t.shard(p).noRoom.Add(1)
	}
	return o
}

// flushed marks the entry that a slot's record names: as counted if the record's last change was a take, as free if
// that change gave the entry's tokens back. Only then may the state be changed (R26). flushed returns false if the slot
// holds another state by now.
func (t *Table) flushed(sl *slot, s atomicbucket.State) bool {
	if t.entries == nil || !s.IsLive() { // a tentative record names no entry
		return true
	}
	number, leaves := t.current().entries.Last(s)
	if number >= uint64(len(t.entries.all)) {
		return true // R20
	}
	e, from, to := &t.entries.all[number], atomicbucket.Pending, atomicbucket.Counted
	if leaves {
		from, to = atomicbucket.Counted, atomicbucket.NoEntry
	}
	for {
		h := atomicbucket.Entry(e.holder.Load())
		if h.What() != from || e.what.Load()&slotMask != t.number(sl) { // the entry may belong to another slot by now
			return true
		}
		if sl.state.Load() != s {
			return false
		}
		if e.become(h, to) {
			return true
		}
	}
}

// leave gives back the tokens of a counted entry, unless the entry has already left. It returns the number of tokens.
func (t *Table) leave(number uint64, h atomicbucket.Entry) (n uint64, after atomicbucket.State) {
	e := &t.entries.all[number]
	for {
		what := e.what.Load()
		if what&slotMask >= t.slots {
			e.become(h, atomicbucket.NoEntry) // R20
			return 0, 0
		}
		sl := t.slotOf(what & slotMask)
		s := sl.state.Load()
		if !t.flushed(sl, s) {
			continue
		}
		if atomicbucket.Entry(e.holder.Load()) != h { // after the state
			return 0, 0
		}
		if !s.IsLive() { // R20
			e.become(h, atomicbucket.NoEntry)
			return 0, 0
		}
		n = what >> tokensShift
		if after, ok := sl.state.Move(s, t.current().entries.Left(s, number, n)); ok {
			e.become(h, atomicbucket.NoEntry)
			return n, after
		}
	}
}

// mark marks a pending entry as counted if its take was made.
func (t *Table) mark(e *entry) {
	at := e.what.Load() & slotMask
	if at >= t.slots {
		return // R20
	}
	for sl := t.slotOf(at); !t.flushed(sl, sl.state.Load()); {
	}
}

// forsaken frees the tokens that an entry of a dead process has in flight (R26).
func (t *Table) forsaken(number uint64, h atomicbucket.Entry) (n uint64) {
	e := &t.entries.all[number]
	if h.What() == atomicbucket.Pending {
		t.mark(e)
		if e.become(h, atomicbucket.NoEntry) { // nothing was taken: otherwise the state would name the entry
			return 0
		}
		now := atomicbucket.Entry(e.holder.Load())
		if now != h.As(atomicbucket.Counted) {
			return 0
		}
		h = now
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

// reap does the work of Reap for a sweep. It calls rest from time to time, and reports whether the sweep should
// continue.
func (t *Table) reap(now int64, rest func() bool) bool {
	if t.entries == nil {
		return true
	}
	longest, dead, forgotten := int64(t.current().entries.Longest()), map[uint64]bool{}, uint64(0)
	defer func() { t.shards[0].forgotten.Add(forgotten) }()
	for number := range t.entries.all {
		if number%t.chunk == t.chunk-1 && rest != nil && !rest() {
			return false
		}
		e := &t.entries.all[number]
		h := atomicbucket.Entry(e.holder.Load())
		if h.What() == atomicbucket.NoEntry {
			continue
		}
		gone, known := dead[h.Claimant()]
		if !known {
			gone = t.deserted(h.Claimant())
			dead[h.Claimant()] = gone
		}
		if gone {
			forgotten += t.forsaken(uint64(number), h)
			continue
		}
		if h.What() == atomicbucket.Pending { // its process may have stopped after the take was made
			t.mark(e)
			h = atomicbucket.Entry(e.holder.Load())
		}
		if h.What() == atomicbucket.Counted && now-int64(e.since.Load()) >= longest {
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
	at := l.stretches()
	for i, slots := 0, stretch[slot](first, at.slots, l.slots()); i < len(slots); i++ {
		if s := slots[i].state.Load(); s.IsLive() {
			slots[i].state.Free(s)
		}
	}
	for i, all := 0, stretch[entry](first, at.entries, l.entries); i < len(all); i++ {
		all[i].become(atomicbucket.Entry(all[i].holder.Load()), atomicbucket.NoEntry)
	}
	return nil
}

// dismiss makes counted entries of a key's record leave, whichever process has them, up to a number of tokens in all
// (most). The record was read in the state s.
func (t *Table) dismiss(p Place, sl *slot, s atomicbucket.State, most uint64) {
	t.flushed(sl, s)
	for number := range t.entries.all {
		e := &t.entries.all[number]
		h := atomicbucket.Entry(e.holder.Load())
		what := e.what.Load()
		if h.What() != atomicbucket.Counted || what&slotMask != t.number(sl) || what>>tokensShift > most {
			continue
		}
		if sl.key.Load()&^tierMask == p.fingerprint { // after the holder: the slot may belong to another key by now
			n, _ := t.leave(uint64(number), h)
			most -= n
		}
	}
}

// emptied does what Reset does, for a table of limits in flight. A record may have tokens without an entry, after a
// loss of power or because of words that no call writes. So emptied forgets a record to which no entry belongs, unless
// the record has changed meanwhile.
func (t *Table) emptied(p Place) (found bool) {
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

// returned gives back n tokens in flight. With a receipt, it frees the receipt's entry once all tokens of the receipt
// have been given back, so a refund in parts takes effect with its last part. Without a receipt, it frees entries of
// the key.
func (t *Table) returned(p Place, n uint64, of *Receipt) (s atomicbucket.State, plan *Plan, v Verdict) {
	record, plan, sl := t.record(p)
	switch {
	case !of.IsKnown():
		if sl != nil {
			t.dismiss(p, sl, record.State, n)
		}
		return record.State, plan, Admitted
	case n < of.n:
		return record.State, plan, Refused
	}
	number, _ := plan.entries.Last(of.after)
	if number < uint64(len(t.entries.all)) {
		e := &t.entries.all[number]
		h := atomicbucket.Entry(e.holder.Load())
		if h.What() == atomicbucket.Counted && h.Claimant() == t.claimant && e.use(h) == of.ends {
			if n, after := t.leave(number, h); n > 0 {
				return after, plan, Admitted
			}
		}
	}
	return record.State, plan, Refused
}
