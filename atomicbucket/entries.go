package atomicbucket

import (
	"fmt"
	"time"
)

// Entries is the algorithm of a limit in flight in a table that several processes share. Each take that was not given
// back has an entry outside the record. The entry names the process that made the take (R26 of shard/doc_shared.go).
// Entries, not the payload, determine when tokens that are never given back are forgotten. The payload:
//
//	 53     43 42        17    16    15      0
//	+---------+------------+---------+---------+
//	| changes |   entry    | leaving | tokens  |
//	+---------+------------+---------+---------+
//
// entry is the number of an entry. The record's last change added this entry or, if leaving is set, removed it. Before
// the record changes again, the entry's own word is marked as counted or free. changes counts the changes modulo 2^11,
// so a record rarely has the same bits as in an earlier state. tokens is the number of tokens in flight.
type Entries struct {
	lifetime time.Duration
	tokens   uint64
}

const (
	tokensBits = 16
	tokensMask = 1<<tokensBits - 1
	leavingBit = 1 << tokensBits
	entryShift = tokensBits + 1
	entryBits  = 26
	entryMask  = 1<<entryBits - 1
	changeUnit = 1 << (entryShift + entryBits)

	// MaxEntries is how many entries a table may have.
	MaxEntries = 1 << entryBits
)

// NewEntries returns the algorithm that allows limit tokens in flight. Records have room for counts up to maxLimit.
// Tokens are forgotten after the time lifetime. The ranges are 1 <= limit <= maxLimit <= [MaxInFlight], and a
// microsecond to [MaxWindow] for lifetime. For numbers out of range, the error names the value and the range.
func NewEntries(limit, maxLimit uint64, lifetime time.Duration) (Entries, error) {
	switch {
	case lifetime < time.Microsecond || lifetime > MaxWindow:
		return Entries{}, fmt.Errorf("limit of %d tokens in flight, forgotten after %v: want 1µs to %v", limit, lifetime, MaxWindow)
	case limit < 1 || limit > maxLimit || maxLimit > MaxInFlight:
		return Entries{}, fmt.Errorf("limit of %d tokens in flight, with room for %d: want 1 to %d tokens", limit, maxLimit, MaxInFlight)
	}
	return Entries{lifetime, limit}, nil
}

// Longest returns the time after which an entry is forgotten.
func (e *Entries) Longest() time.Duration { return e.lifetime }

// Last returns the entry that the last change of a record added or removed, and whether it was removed.
func (e *Entries) Last(s State) (entry uint64, leaving bool) {
	return uint64(s) >> entryShift & entryMask, s&leavingBit != 0
}

// Entered adds the number of an entry to a payload that [Entries.Take] returned.
func (e *Entries) Entered(payload, entry uint64) uint64 { return payload | entry<<entryShift }

// Left returns the payload of a record after an entry with n tokens has left.
func (e *Entries) Left(s State, entry, n uint64) uint64 {
	inFlight := uint64(s) & tokensMask
	return e.next(s) | entry<<entryShift | leavingBit | inFlight - min(n, inFlight)
}

// next returns the number of the record's next change, as payload bits.
func (e *Entries) next(s State) uint64 {
	return (s.Payload()&^(changeUnit-1) + changeUnit) & payloadMask
}

// Ticks returns the nanoseconds themselves.
func (e *Entries) Ticks(nanos int64) uint64 { return uint64(nanos) }

// MaxSkew returns a long time, because records hold no times.
func (e *Entries) MaxSkew() time.Duration { return MaxWindow }

// Quota implements [Algorithm].
func (e *Entries) Quota() Quota { return Quota{1, e.tokens} }

// RingSize returns 0: a record is one word, and its entries are elsewhere.
func (e *Entries) RingSize() uint64 { return 0 }

// Take returns the payload after a take, and whether that many more tokens may be in flight. The caller must then add
// the entry of the take to this payload ([Entries.Entered]).
func (e *Entries) Take(r Record, _ uint64, d Demand) (payload uint64, ok bool) {
	inFlight := uint64(r.State)&tokensMask + d.Cost
	return e.next(r.State) | inFlight&tokensMask, inFlight <= d.Limit
}

// Flush has nothing to do: the table owns the entries and marks them.
func (e *Entries) Flush(Record, uint64, *Word) bool { return true }

// Full returns the payload of a key that has nothing in flight.
func (e *Entries) Full(uint64) (payload uint64) { return 0 }

// Receipt returns the zero Receipt: the record's state identifies a take.
func (e *Entries) Receipt(State, int64, uint64) Receipt { return Receipt{} }

// Refund gives nothing back. A take is given back when its entry leaves ([Entries.Left]).
func (e *Entries) Refund(r Record, _ Return, word *Word) (after State, ok bool) {
	return r.State, word.Load() == r.State
}

// Idle reports whether nothing is in flight.
func (e *Entries) Idle(s State, _ uint64) bool { return s&tokensMask == 0 }

// IdleFor returns 0: a record does not show when it became idle.
func (e *Entries) IdleFor(State, uint64) uint64 { return 0 }

// UntilIdle returns how long it takes until everything in flight is forgotten, if all of it was taken now.
func (e *Entries) UntilIdle(s State, _ uint64) uint64 {
	if s&tokensMask == 0 {
		return 0
	}
	return uint64(e.lifetime)
}

// Debt returns how many tokens are in flight.
func (e *Entries) Debt(r Record, _ uint64) uint64 { return uint64(r.State) & tokensMask }

// Tokens implements [Algorithm].
func (e *Entries) Tokens(debt uint64) uint64 { return debt }

// Wait returns the ticks, which are nanoseconds.
func (e *Entries) Wait(_ int64, ticks uint64) time.Duration { return time.Duration(ticks) }

// Shortfall returns how long it takes until d is admitted, if nothing is given back.
func (e *Entries) Shortfall(r Record, now uint64, d Demand) uint64 {
	if d.Cost == 0 || e.Debt(r, now)+d.Cost <= d.Limit {
		return 0
	}
	return uint64(e.lifetime)
}

// Status implements [Algorithm].
func (e *Entries) Status(r Record, nanos int64, d Demand) Status {
	return Status{
		Remaining:  d.Limit - min(e.Debt(r, 0), d.Limit),
		RetryAfter: e.Wait(nanos, e.Shortfall(r, 0, d)),
		ResetAfter: e.Wait(nanos, e.UntilIdle(r.State, 0)),
	}
}

// Following returns the algorithm itself. The previous algorithm (before) must forget tokens after the same time.
func (e *Entries) Following(before Algorithm) (Algorithm, error) {
	if _, err := following(e, before); err != nil {
		return nil, err
	}
	if previous := before.(*Entries); e.lifetime != previous.lifetime {
		return nil, fmt.Errorf("what is in flight is forgotten after %v: want %v, as at New", e.lifetime, previous.lifetime)
	}
	return e, nil
}

// Convert returns the payload unchanged: the tokens in flight stay.
func (e *Entries) Convert(_ Algorithm, s State, _ int64, _ Change) uint64 { return s.Payload() }

// An Entry is the holder word of an entry: its state, how often it was taken (generation), and the number of the
// process to which it belongs (claimant).
//
//	 63   62 61        54 53                 0
//	+-------+------------+--------------------+
//	| state | generation |     claimant       |
//	+-------+------------+--------------------+
type Entry uint64

// The states of an entry.
const (
	NoEntry Entry = iota << entryStateShift // free
	Pending                                 // its take may have been made
	Counted                                 // its take has been made
)

const (
	entryStateShift = 62
	entryStateMask  = 3 << entryStateShift
	generationUnit  = 1 << PayloadBits
)

// What returns the state of the entry: [NoEntry], [Pending] or [Counted]. It returns another value only if no call of
// this package wrote the word.
func (e Entry) What() Entry { return e & entryStateMask }

// Claimant returns the number of the process to which the entry belongs.
func (e Entry) Claimant() uint64 { return uint64(e) & payloadMask }

// Generation returns how often processes have taken the entry, modulo 2^8.
func (e Entry) Generation() uint32 { return uint32(e &^ entryStateMask >> PayloadBits) }

// As returns the entry with another state.
func (e Entry) As(state Entry) Entry { return e&^entryStateMask | state }

// Taken returns the holder word of a free entry after a claimant has taken it.
func (e Entry) Taken(claimant uint64) Entry {
	return (e&^entryStateMask+generationUnit)&^entryStateMask&^payloadMask | Pending | Entry(claimant&payloadMask)
}
