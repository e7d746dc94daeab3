package atomicbucket

import "time"

// A Record is what is known of a key: its state and, if the algorithm has one, its [Ring].
type Record struct {
	State State
	Ring  Ring
}

// Record returns the record of a state without a ring: of an algorithm that has none, or of a key whose first
// request is its only one.
func (s State) Record() Record { return Record{State: s} }

// After returns the record as it is with another payload in the same tenure.
func (r Record) After(payload uint64) Record {
	return Record{r.State.moved(payload), r.Ring}
}

// An Algorithm is one with its numbers: how a take changes the payload of a record. It is immutable, holds no
// key's state, and may be used from any goroutine. The algorithms are [TokenBucket], which is also the bucket that is
// refilled in batches, [FixedWindow], [SlidingWindow], [SlidingLog] and [Concurrency].
//
// Instants come in nanoseconds from any fixed origin, not negative, or in the algorithm's own
// ticks. Two instants that meet in one call must not be further apart than MaxSkew, and a
// record may be asked about from MaxSkew before the instant that wrote it to 12 MaxSkew
// after: beyond that, differences on the payload's circle mean something else.
//
// What is returned of a record holds for the state that was read. A caller that acts on it without a compare-and-swap
// from that state reads the state again.
type Algorithm interface {
	// Ticks returns the tick of an instant, rounded down.
	Ticks(nanos int64) uint64
	// MaxSkew is how far apart two instants may be that meet in one call.
	MaxSkew() time.Duration
	// Quota returns what the algorithm grants to a key.
	Quota() Quota
	// RingSize returns how many words the [Ring] of a record has: 0 if it has none.
	RingSize() uint64

	// Take returns the payload of a live record after a take at the tick now, and
	// whether the record admits it.
	Take(r Record, now uint64, d Demand) (payload uint64, ok bool)
	// Full returns the payload of a record from which nothing was taken. A take from it
	// is what the first take of a key without a record is, and is always admitted.
	Full(now uint64) (payload uint64)
	// Flush enters in the ring what only the state says, so that the state may be changed (rule R10 of shard/doc.go).
	// at is where the state is. It reports false if that holds another state by now.
	Flush(r Record, now uint64, at *Word) bool
	// Receipt returns what identifies a take, for a refund: of the record's state after it, at an instant, at a cost.
	// Some of it may have been given back: then of the state that [State.Less] returns, and the rest of the cost.
	Receipt(after State, nanos int64, cost uint64) Receipt
	// Refund gives back, to a record that the word at holds, the cost of a take. It gives no more than what leaves the
	// record as if the take had never been, and rather less than that where the record does not tell: a refund never
	// lets through what the limit would refuse. It reports false, and nothing was given, if the word holds another
	// state by now.
	Refund(r Record, g Return, at *Word) (after State, ok bool)

	// Idle reports whether having the record and having none are the same thing, from
	// the tick now on.
	Idle(s State, now uint64) bool
	// IdleFor returns for how long a record that is idle at the tick now has been so: less than 2^61, in a unit that is
	// the algorithm's own, since it is only compared with what the same algorithm says of other records.
	IdleFor(s State, now uint64) uint64
	// UntilIdle returns the ticks until the record is idle, if nothing else is taken.
	UntilIdle(s State, now uint64) uint64
	// Debt returns how much of the limit is used up, in units of a Demand's cost.
	Debt(r Record, now uint64) uint64
	// Tokens returns a debt in whole tokens, rounded up.
	Tokens(debt uint64) uint64
	// Shortfall returns the ticks until the record admits d, if nothing else is taken: 0 for a demand for nothing.
	Shortfall(r Record, now uint64, d Demand) uint64
	// Wait returns the time from an instant until so many ticks have passed: waiting
	// that long is enough, and one nanosecond less is not.
	Wait(nanos int64, ticks uint64) time.Duration
	// Status returns what a client that asks for d may want to know about the record at an instant.
	Status(r Record, nanos int64, d Demand) Status

	// Following returns the algorithm in the form in which it can take over the records of another, or the error that
	// says why it cannot.
	Following(before Algorithm) (Algorithm, error)
	// Convert returns the payload under this algorithm of a record of one that it follows, at an instant: the key has
	// taken as many tokens as before. What is rounded is rounded up.
	Convert(before Algorithm, s State, nanos int64, c Change) (payload uint64)
}

// A Receipt identifies a take, in the terms of the algorithm that admitted it. The zero Receipt identifies none.
type Receipt struct {
	tick  uint64 // when the tokens are back, the end or the index of the window, or the time of the request
	cost  uint64 // of the tokens that were not given back; of a bucket
	nanos int64  // when it was taken
	seen
}

// seen is what a receipt has of the record. With these two in one a receipt is passed in registers.
type seen struct {
	version uint8 // of the record then
	known   bool  // there was a take
}

// A Return is what a refund gives back, and what it knows beside the record.
type Return struct {
	Now    uint64  // the tick of the refund
	Latest uint64  // that of the latest take of the record, at most, or of its last reservation's time: Now at least
	Demand Demand  // the cost that is given back
	Of     Receipt // of the take that it is for; the zero Receipt: of no take in particular
}

// IsKnown reports whether the receipt identifies a take.
func (t Receipt) IsKnown() bool { return t.known }

// Less returns the state that identifies the rest of a take in the place of s when a part of it was given back, which
// left the record in the state after. ticks is by how much sooner a bucket is full without that part; 0 for others.
func (s State) Less(ticks uint64, after State) State {
	version := s.Version()
	if (version+1)&versionMask == after.Version() {
		version++ // no other refund came between
	}
	return NewState(s.Tag(), version, s.Payload()-ticks)
}

// in reports whether the record has the version that it had then.
func (t Receipt) in(s State) bool { return uint64(t.version) == s.Version() }

// A Quota is what a key may have.
type Quota struct {
	Token  uint64 // the cost of a token, in units of the algorithm
	Tokens uint64 // the limit
}

// Demand returns what it takes to get n tokens, which must not be more than the limit.
func (q Quota) Demand(n uint64) Demand { return Demand{n * q.Token, q.Tokens * q.Token, q.Token} }

// A Demand is a cost and the limit that it is held against, in units of the algorithm.
type Demand struct {
	Cost, Limit uint64
	Token       uint64 // the cost of a token
}

// A Status is what a client may want to know about its bucket.
type Status struct {
	Remaining  uint64        // whole tokens that are left
	RetryAfter time.Duration // until the demand would be admitted, 0 if it would be now
	ResetAfter time.Duration // until the bucket is full, the window over, the oldest request out of the window
}
