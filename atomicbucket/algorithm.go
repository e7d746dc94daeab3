package atomicbucket

import "time"

// An Algorithm is an algorithm with its numbers: how a take changes the payload of a record.
// It is immutable and holds no key's state. The rules are [TokenBucket],
// [FixedWindow] and [SlidingWindow].
//
// Instants come in nanoseconds from any fixed origin, not negative, or in the algorithm's own
// ticks. Two instants that meet in one call must not be further apart than MaxSkew, and a
// record may be asked about from MaxSkew before the instant that wrote it to 12 MaxSkew
// after: beyond that, differences on the payload's circle mean something else.
type Algorithm interface {
	// Ticks returns the tick of an instant, rounded down.
	Ticks(nanos int64) uint64
	// MaxSkew is how far apart two instants may be that meet in one call.
	MaxSkew() time.Duration
	// Quota returns what the algorithm grants to a key.
	Quota() Quota

	// Take returns the payload of a live record after a take at the tick now, and
	// whether the record admits it.
	Take(s State, now uint64, d Demand) (payload uint64, ok bool)
	// Full returns the payload of a record from which nothing was taken. A take from it
	// is what the first take of a key without a record is, and is always admitted.
	Full(now uint64) (payload uint64)
	// Refund returns the payload after giving a cost back. What was not taken
	// is not given.
	Refund(s State, now, cost uint64) (payload uint64)

	// Idle reports whether having the record and having none are the same thing, from
	// the tick now on.
	Idle(s State, now uint64) bool
	// IdleFor returns for how long a record that is idle at the tick now has been so, in any unit below 2^61: it is
	// compared with what the same algorithm says of other records.
	IdleFor(s State, now uint64) uint64
	// UntilIdle returns the ticks until the record is idle, if nothing else is taken.
	UntilIdle(s State, now uint64) uint64
	// Debt returns how much of the limit is used up, in units of a Demand's cost.
	Debt(s State, now uint64) uint64
	// Tokens returns a debt in whole tokens, rounded up.
	Tokens(debt uint64) uint64
	// Shortfall returns the ticks until the record admits d, if nothing else is taken. Nothing is
	// lacking to a demand for nothing.
	Shortfall(s State, now uint64, d Demand) uint64
	// Wait returns the time from an instant until so many ticks have passed: waiting
	// that long is enough, and one nanosecond less is not.
	Wait(nanos int64, ticks uint64) time.Duration

	// Status returns what there is to say about a record at an instant, to somebody who
	// asks for d.
	Status(s State, nanos int64, d Demand) Status
}

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
