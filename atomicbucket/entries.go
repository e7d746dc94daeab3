package atomicbucket

import (
	"fmt"
	"time"
)

// An Entries is the algorithm of a limit in flight in a table of several processes, where each take that was not given
// back has an entry outside its record, which says whose process it is of (rule R26 of shard/doc.go). The payload is
// packed {changes of the record, number of an entry, whether that leaves, tokens in flight}. No time is in it: what is
// never given back is forgotten by its entry.
//
//	 53     43 42        17   16   15      0
//	+---------+------------+------+---------+
//	| changes |   entry    |leaves| tokens  |
//	+---------+------------+------+---------+
//
// The entry is that of the last change, which enters or leaves. Before the record changes again it is marked as such.
// The changes are counted modulo 2^11, so that a record is seldom what it was before, to the bit.
type Entries struct {
	longest time.Duration
	tokens  uint64
}

const (
	tokensBits = 16
	tokensMask = 1<<tokensBits - 1
	entryLeave = 1 << tokensBits
	entryShift = tokensBits + 1
	entrysBits = 26
	entryMask  = 1<<entrysBits - 1
	changeUnit = 1 << (entryShift + entrysBits)

	// MaxEntries is how many entries a table may have.
	MaxEntries = 1 << entrysBits
)

// NewEntries returns the algorithm of limit tokens in flight that are forgotten after a time, with room for counts up
// to most, which is not below the limit. Both are 1 to [MaxInFlight], and the time a microsecond to [MaxWindow].
// Anything else is an error that names the value and the range.
func NewEntries(limit, most uint64, longest time.Duration) (Entries, error) {
	switch {
	case longest < time.Microsecond || longest > MaxWindow:
		return Entries{}, fmt.Errorf("limit of %d tokens in flight, forgotten after %v: want 1µs to %v", limit, longest, MaxWindow)
	case limit < 1 || limit > most || most > MaxInFlight:
		return Entries{}, fmt.Errorf("limit of %d tokens in flight, with room for %d: want 1 to %d tokens", limit, most, MaxInFlight)
	}
	return Entries{longest, limit}, nil
}

// Longest returns after which time an entry is forgotten.
func (e *Entries) Longest() time.Duration { return e.longest }

// Last returns the entry of the last change of a record, and whether that was its leaving.
func (e *Entries) Last(s State) (entry uint64, leaves bool) {
	return uint64(s) >> entryShift & entryMask, s&entryLeave != 0
}

// Entered returns a payload that [Entries.Take] returned, of an entry.
func (e *Entries) Entered(payload, entry uint64) uint64 { return payload | entry<<entryShift }

// Left returns the payload of a record after an entry of so many tokens has left.
func (e *Entries) Left(s State, entry, n uint64) uint64 {
	inside := uint64(s) & tokensMask
	return e.next(s) | entry<<entryShift | entryLeave | inside - min(n, inside)
}

// next counts a change.
func (e *Entries) next(s State) uint64 {
	return (s.Payload()&^(changeUnit-1) + changeUnit) & payloadMask
}

// Ticks returns the nanoseconds themselves.
func (e *Entries) Ticks(nanos int64) uint64 { return uint64(nanos) }

// MaxSkew is long, since no record has a time.
func (e *Entries) MaxSkew() time.Duration { return MaxWindow }

// Quota returns what the algorithm grants.
func (e *Entries) Quota() Quota { return Quota{1, e.tokens} }

// RingSize returns 0: what belongs to a record is in its entries.
func (e *Entries) RingSize() uint64 { return 0 }

// Take returns the payload after a take, of no entry yet, and whether that many more may be in flight.
func (e *Entries) Take(r Record, _ uint64, d Demand) (payload uint64, ok bool) {
	inside := uint64(r.State)&tokensMask + d.Cost
	return e.next(r.State) | inside&tokensMask, inside <= d.Limit
}

// Flush has nothing to do: the table does it, which has the entries.
func (e *Entries) Flush(Record, uint64, *Word) bool { return true }

// Full returns the payload of a key of which nothing is in flight.
func (e *Entries) Full(uint64) (payload uint64) { return 0 }

// Receipt returns nothing: the record's state identifies a take.
func (e *Entries) Receipt(State, int64, uint64) Receipt { return Receipt{} }

// Refund gives nothing back: an entry leaves by [Entries.Left].
func (e *Entries) Refund(r Record, _ Return, at *Word) (after State, ok bool) {
	return r.State, at.Load() == r.State
}

// Idle reports whether nothing is in flight.
func (e *Entries) Idle(s State, _ uint64) bool { return s&tokensMask == 0 }

// IdleFor returns 0: a record does not say when it became idle.
func (e *Entries) IdleFor(State, uint64) uint64 { return 0 }

// UntilIdle returns how long it takes until all that is in flight is forgotten, if that has entered now.
func (e *Entries) UntilIdle(s State, _ uint64) uint64 {
	if s&tokensMask == 0 {
		return 0
	}
	return uint64(e.longest)
}

// Debt returns how many tokens are in flight.
func (e *Entries) Debt(r Record, _ uint64) uint64 { return uint64(r.State) & tokensMask }

// Tokens returns a debt in tokens.
func (e *Entries) Tokens(debt uint64) uint64 { return debt }

// Wait returns so many nanoseconds.
func (e *Entries) Wait(_ int64, ticks uint64) time.Duration { return time.Duration(ticks) }

// Shortfall returns how long it takes until d is admitted, if nothing is given back.
func (e *Entries) Shortfall(r Record, now uint64, d Demand) uint64 {
	if d.Cost == 0 || e.Debt(r, now)+d.Cost <= d.Limit {
		return 0
	}
	return uint64(e.longest)
}

// Status returns what a client that asks for d may want to know.
func (e *Entries) Status(r Record, nanos int64, d Demand) Status {
	return Status{
		Remaining:  d.Limit - min(e.Debt(r, 0), d.Limit),
		RetryAfter: e.Wait(nanos, e.Shortfall(r, 0, d)),
		ResetAfter: e.Wait(nanos, e.UntilIdle(r.State, 0)),
	}
}

// Following returns the algorithm itself: it can take over the records of another limit, which must forget after the
// same time.
func (e *Entries) Following(before Algorithm) (Algorithm, error) {
	if _, err := following(e, before); err != nil {
		return nil, err
	}
	if from := before.(*Entries); e.longest != from.longest {
		return nil, fmt.Errorf("what is in flight is forgotten after %v: want %v, as at New", e.longest, from.longest)
	}
	return e, nil
}

// Convert returns the payload as it is: what is in flight stays what it is.
func (e *Entries) Convert(_ Algorithm, s State, _ int64, _ Change) uint64 { return s.Payload() }

// An Entry is the word by which an entry says what it is, and which process has it.
//
//	 63   62 61        54 53                 0
//	+-------+------------+--------------------+
//	| what  | generation |     claimant       |
//	+-------+------------+--------------------+
type Entry uint64

// What an entry is.
const (
	NoEntry Entry = iota << entryWhat // free
	Pending                           // its take may be made
	Counted                           // its take was made
)

const (
	entryWhat  = 62
	whatMask   = 3 << entryWhat
	generation = 1 << PayloadBits
)

// What returns [NoEntry], [Pending] or [Counted]; or another value, of a word that nobody wrote.
func (e Entry) What() Entry { return e & whatMask }

// Claimant returns whose it is.
func (e Entry) Claimant() uint64 { return uint64(e) & payloadMask }

// Generation returns how often the entry was taken, modulo 2^8.
func (e Entry) Generation() uint32 { return uint32(e &^ whatMask >> PayloadBits) }

// As returns the entry as something else.
func (e Entry) As(what Entry) Entry { return e&^whatMask | what }

// Taken returns the free entry taken by a claimant.
func (e Entry) Taken(claimant uint64) Entry {
	return (e&^whatMask+generation)&^whatMask&^payloadMask | Pending | Entry(claimant&payloadMask)
}
