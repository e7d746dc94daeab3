package atomicbucket

import "time"

// A Record is the state of a key and, if the algorithm has one, its [Ring].
type Record struct {
	State State
	Ring  Ring
}

// Record returns the record of a state without a ring: for an algorithm that has no rings, or for a key with one
// request at most.
func (s State) Record() Record { return Record{State: s} }

// After returns the record with another payload, in the same tenure.
func (r Record) After(payload uint64) Record {
	return Record{r.State.moved(payload), r.Ring}
}

// An Algorithm is a rate limit algorithm with its numbers. It defines how a take changes the payload of a record. It is
// immutable, holds no key's state, and is safe for concurrent use. The algorithms are [TokenBucket], which can also be
// refilled in batches, [FixedWindow], [SlidingWindow], [SlidingLog], [Concurrency] and [Entries].
//
// Instants are in nanoseconds from any fixed origin, not negative, or in the algorithm's own ticks. Two instants that
// one call compares must be at most MaxSkew apart. A record may be judged from MaxSkew before the instant at which it
// was written to 12 MaxSkew after it. Beyond that, differences on the payload's circle would be misread.
//
// Results are valid for the state that was read. A caller that acts on one without a compare-and-swap from that state
// must read the state again.
type Algorithm interface {
	// Ticks returns the tick of an instant, rounded down.
	Ticks(nanos int64) uint64
	// MaxSkew is how far apart two instants may be that one call compares.
	MaxSkew() time.Duration
	// Quota returns what the algorithm grants to a key.
	Quota() Quota
	// RingSize returns how many words the [Ring] of a record has: 0 if it has none.
	RingSize() uint64

	// Take returns the payload of a live record after a take at the tick now, and
	// whether the record admits it.
	Take(r Record, now uint64, d Demand) (payload uint64, ok bool)
	// Full returns the payload of a record from which nothing was taken. The first take of a key takes from such a
	// record, and is always admitted.
	Full(now uint64) (payload uint64)
	// Flush enters the last change, which only the state holds, in the ring, so that the state may be changed (rule R10
	// of shard/doc.go). at is the word with the state. Flush reports false if the word holds another state by now.
	Flush(r Record, now uint64, at *Word) bool
	// Receipt returns the receipt of a take, for a refund. after is the record's state after the take, nanos its time.
	// If a part of the take was given back, after is the state that [State.Less] returns, and cost is the rest.
	Receipt(after State, nanos int64, cost uint64) Receipt
	// Refund gives the cost of a take back to the record in the word at. At most, the record becomes what it would be
	// without the take. If the record does not show how much that is, Refund gives back less. So a refund never admits
	// what the limit would refuse. Refund reports false, and gives nothing back, if the word holds another state by
	// now.
	Refund(r Record, g Return, at *Word) (after State, ok bool)

	// Idle reports whether the record is equivalent to no record, from the tick now on.
	Idle(s State, now uint64) bool
	// IdleFor returns for how long a record that is idle at the tick now has been idle. The result is less than 2^61,
	// in a unit of the algorithm. It is only compared with results for other records.
	IdleFor(s State, now uint64) uint64
	// UntilIdle returns the ticks until the record is idle, if nothing else is taken.
	UntilIdle(s State, now uint64) uint64
	// Debt returns how much of the limit is used, in units of a Demand's cost.
	Debt(r Record, now uint64) uint64
	// Tokens returns a debt in whole tokens, rounded up.
	Tokens(debt uint64) uint64
	// Shortfall returns the ticks until the record admits d, if nothing else is taken: 0 for a demand for nothing.
	Shortfall(r Record, now uint64, d Demand) uint64
	// Wait returns the time from an instant until a number of ticks have passed. It is exact: one nanosecond less is
	// not enough.
	Wait(nanos int64, ticks uint64) time.Duration
	// Status returns what a client that asks for d may want to know about the record at an instant.
	Status(r Record, nanos int64, d Demand) Status

	// Following returns the form of the algorithm that can take over the records of another, or an error that says why
	// it cannot.
	Following(before Algorithm) (Algorithm, error)
	// Convert returns the payload, under this algorithm, of a record of a previous algorithm, at an instant. The key
	// has taken as many tokens as before, rounded up.
	Convert(before Algorithm, s State, nanos int64, c Change) (payload uint64)
}

// A Receipt identifies a take for the algorithm that admitted it. The zero Receipt identifies none.
type Receipt struct {
	tick  uint64 // when the tokens are back, the end or the index of the window, or the time of the request
	cost  uint64 // for a token bucket: the cost of the tokens that were not given back
	nanos int64  // time of the take
	seen
}

// seen is the part of a receipt that describes the record. It is one struct so that receipts are passed in registers.
type seen struct {
	version uint8 // of the record after the take
	known   bool  // there was a take
}

// A Return has the cost that a refund gives back, and what the caller knows in addition to the record.
type Return struct {
	Now    uint64  // the tick of the refund
	Latest uint64  // a tick not before any take of the record or the time of its last reservation; at least Now
	Demand Demand  // the cost that is given back
	Of     Receipt // the take that is given back; the zero Receipt: no particular take
}

// IsKnown reports whether the receipt identifies a take.
func (t Receipt) IsKnown() bool { return t.known }

// Less returns the state that identifies the rest of a take, instead of s, after a part of the take was given back.
// after is the record after that refund. ticks is by how much sooner a token bucket is full without that part; 0 for
// other algorithms.
func (s State) Less(ticks uint64, after State) State {
	version := s.Version()
	if (version+1)&versionMask == after.Version() {
		version++ // no other refund came between
	}
	return NewState(s.Tag(), version, s.Payload()-ticks)
}

// in reports whether the record has the version that it had after the take.
func (t Receipt) in(s State) bool { return uint64(t.version) == s.Version() }

// A Quota is a limit and the cost of a token.
type Quota struct {
	Token  uint64 // the cost of a token, in units of the algorithm
	Tokens uint64 // the limit
}

// Demand returns the demand for n tokens. n must not be more than the limit.
func (q Quota) Demand(n uint64) Demand { return Demand{n * q.Token, q.Tokens * q.Token, q.Token} }

// A Demand is a cost and the limit for it, in units of the algorithm.
type Demand struct {
	Cost, Limit uint64
	Token       uint64 // the cost of a token
}

// A Status has what a client may want to know about its bucket.
type Status struct {
	Remaining  uint64        // whole tokens that are left
	RetryAfter time.Duration // until the demand would be admitted, 0 if it would be now
	ResetAfter time.Duration // until the bucket is full, the window over, the oldest request out of the window
}
