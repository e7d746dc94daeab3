package atomicbucket

import "time"

// A Record is the state of a key and, if the algorithm has one, its [Ring].
type Record struct {
	State State
	Ring  Ring
}

// Record returns a record without a ring. It is for an algorithm that has no rings, or for a key with at most one
// request.
func (s State) Record() Record { return Record{State: s} }

// After returns the record with another payload and the same tag and version.
func (r Record) After(payload uint64) Record {
	return Record{r.State.moved(payload), r.Ring}
}

// An Algorithm is a rate limit algorithm with its numbers. It defines how a take changes the payload of a record. It is
// immutable, holds no key's state, and is safe for concurrent use. The algorithms are [TokenBucket], which can also be
// refilled in batches, [FixedWindow], [SlidingWindow], [SlidingLog], [Concurrency] and [Entries].
//
// A time in nanoseconds (nanos) counts from any fixed origin and is not negative. A time in ticks (now) counts the
// algorithm's own ticks. Payloads hold times modulo a power of two, so two bounds apply. Two times that one call
// compares must be at most MaxSkew apart. A record must be read no earlier than MaxSkew before its last write, and no
// later than 12 MaxSkew after that write.
//
// A result is valid for the state that was read. A caller makes its change with a compare-and-swap from that state, or
// else reads the state again.
type Algorithm interface {
	// Ticks returns the tick of an instant, rounded down.
	Ticks(nanos int64) uint64
	// MaxSkew returns how far apart two instants may be if one call compares them.
	MaxSkew() time.Duration
	// Quota returns what the algorithm grants to a key.
	Quota() Quota
	// RingSize returns how many words the [Ring] of a record has: 0 if it has none.
	RingSize() uint64

	// Take returns the payload of a live record after a take at the tick now. ok reports whether the record admits the
	// take.
	Take(r Record, now uint64, d Demand) (payload uint64, ok bool)
	// Full returns the payload of a record from which nothing was taken. The first take of a key is made from such a
	// record, and is always admitted.
	Full(now uint64) (payload uint64)
	// Flush writes the record's last change to the ring. Until then only the state has this change, so the state must
	// not change before (R10 of shard/doc.go). The parameter word is the state word. Flush returns false if the word
	// holds another state by now.
	Flush(r Record, now uint64, word *Word) bool
	// Receipt returns the receipt of a take, for a refund. The parameter after is the state after the take, and cost is
	// the cost of the take. If a part of the take was given back, after is the result of [State.Less], and cost is the
	// cost of the rest.
	Receipt(after State, nanos int64, cost uint64) Receipt
	// Refund gives the cost of a take back to the record. It gives back less if the record does not show that all of
	// the cost may come back: a refund never makes room for a request that the limit must refuse. The parameter word is
	// the state word. If the word holds another state by now, Refund gives nothing back and returns false.
	Refund(r Record, ret Return, word *Word) (after State, ok bool)

	// Idle reports whether the record may be forgotten: from the tick now on, it means the same as no record.
	Idle(s State, now uint64) bool
	// IdleFor returns how long a record that is idle at the tick now has been idle. The result is less than 2^61, in a
	// unit of the algorithm. Callers only compare it with the results for other records.
	IdleFor(s State, now uint64) uint64
	// UntilIdle returns the ticks until the record is idle, if nothing else is taken.
	UntilIdle(s State, now uint64) uint64
	// Debt returns how much of the limit is used, in units of a Demand's cost.
	Debt(r Record, now uint64) uint64
	// Tokens returns a debt in whole tokens, rounded up.
	Tokens(debt uint64) uint64
	// Shortfall returns the ticks until the record admits d, if nothing else is taken. It returns 0 for a demand for
	// nothing.
	Shortfall(r Record, now uint64, d Demand) uint64
	// Wait returns the time from an instant until a number of ticks have passed. The time is exact: one nanosecond less
	// is not enough.
	Wait(nanos int64, ticks uint64) time.Duration
	// Status returns what a client that asks for d may want to know about the record at an instant.
	Status(r Record, nanos int64, d Demand) Status

	// Following returns the form of this algorithm that can take over the records of a previous algorithm (before), or
	// an error that says why there is none.
	Following(before Algorithm) (Algorithm, error)
	// Convert returns the new payload of a record that followed a previous algorithm (before) until the instant nanos.
	// The number of tokens that the key has taken stays the same, rounded up.
	Convert(before Algorithm, s State, nanos int64, c Change) (payload uint64)
}

// A Receipt identifies a take for the algorithm that admitted it. The zero Receipt identifies no take.
type Receipt struct {
	tick  uint64 // what identifies the take: see the method Receipt of each algorithm
	cost  uint64 // of the tokens that were not given back; only for a token bucket
	nanos int64  // time of the take
	recordInfo
}

// recordInfo is the part of a receipt that describes the record. It is a struct so that receipts are passed in
// registers.
type recordInfo struct {
	version uint8 // of the record after the take
	known   bool  // there was a take
}

// A Return has what a refund needs to know in addition to the record.
type Return struct {
	Now    uint64  // the tick of the refund
	Latest uint64  // at least Now, the tick of every take, and the tick at which the last reservation is due
	Demand Demand  // the cost that is given back
	Of     Receipt // the receipt of the take that is given back; the zero Receipt if that take is not known
}

// IsKnown reports whether the receipt identifies a take.
func (t Receipt) IsKnown() bool { return t.known }

// Less returns the state that identifies a take of which a part was given back. Before that refund, the state s
// identified the take. The parameter after is the record's state after the refund. The parameter ticks is the number of
// ticks by which a token bucket is full sooner; it is 0 for other algorithms.
func (s State) Less(ticks uint64, after State) State {
	version := s.Version()
	if (version+1)&versionMask == after.Version() {
		version++ // no other refund came in between
	}
	return NewState(s.Tag(), version, s.Payload()-ticks)
}

// sameVersion reports whether the state s has the version that the record had after the take.
func (t Receipt) sameVersion(s State) bool { return uint64(t.version) == s.Version() }

// A Quota has a limit and the cost of one token.
type Quota struct {
	Token  uint64 // the cost of a token, in units of the algorithm
	Tokens uint64 // the limit
}

// Demand returns the demand for n tokens. n must not be more than the limit.
func (q Quota) Demand(n uint64) Demand { return Demand{n * q.Token, q.Tokens * q.Token, q.Token} }

// A Demand has a cost and the limit that applies to it, in units of the algorithm.
type Demand struct {
	Cost, Limit uint64
	Token       uint64 // the cost of a token
}

// A Status has what a client may want to know about its bucket.
type Status struct {
	Remaining  uint64        // whole tokens that are left
	RetryAfter time.Duration // until the demand would be admitted; 0 if it would be admitted now
	ResetAfter time.Duration // until the bucket is full, the window is over, or the oldest request has left the window
}
