package engine

import "time"

// A grant says whether a policy is about numbers.
type grant uint8

const (
	grantsLimit  grant = iota // what its algorithm and numbers say
	grantsAll                 // Unlimited
	grantsNone                // Blocked
	grantsQuotas              // TokenBuckets: nothing, but to a key with a quota
)

// Unlimited is the policy without a limit: every request is allowed, nothing is counted, Limit and
// Remaining are 2^64-1. It is a [Quota], a tier, or the policy of a limiter: [Limiter.SetPolicy] changes to it and
// back, and the keys' records are as they were but for the time that has passed.
//
// A limiter that [New] makes of it has a table of [TokenBuckets] of a day.
func Unlimited() Policy { return Policy{grant: grantsAll} }

// Blocked is the policy of a ban: every request is refused, nothing is counted, Limit is 0
// and RetryAfter [Never]. Like [Unlimited] it is a [Quota], a tier, or the policy of a limiter.
func Blocked() Policy { return Policy{grant: grantsNone} }

// TokenBuckets is the policy of a limiter of token buckets whose limits come with the requests: every call has a
// [Quota], made of a [TokenBucket] that fills within longest, and one without is refused, as under [Blocked].
//
// All records of the limiter count in one tick, so that a record can be judged without its quota. The tick is the
// finest with which a bucket that fills within longest fits into a record. It doubles as longest does: it is a
// sixteenth of a nanosecond up to 39 hours, a nanosecond up to 26 days, and 16 nanoseconds up to a year. A token is a
// whole number of ticks. So where longest is up to 26 days, rates up to a million tokens a second are late by less than
// a thousandth.
//
// A key keeps the tokens that it has taken when its quota changes. For that its record says what a token cost: 32 bytes
// a slot, 54 a key ([MaxKeys]).
//
// longest is 1ns to 365 days. [Stats].Forgiven counts the seconds in which the keys that were forgotten would have
// been full, each key's rounded up.
func TokenBuckets(longest time.Duration) Policy {
	return Policy{algorithm: AlgorithmTokenBucket, grant: grantsQuotas, window: longest}
}

// Longest returns the time within which the buckets of [TokenBuckets] fill; 0 for every other policy.
func (p Policy) Longest() time.Duration {
	if p.grant == grantsQuotas {
		return p.window
	}
	return 0
}

// fixedTable is the longest of the table of a limiter that is made Unlimited or Blocked.
const fixedTable = 24 * time.Hour

// isFixed reports whether the policy says all, and leaves the algorithm open.
func (p Policy) isFixed() bool { return p.grant == grantsAll || p.grant == grantsNone }

// isTokenBucket reports whether a limiter of the policy has token buckets of any rate.
func (p Policy) isTokenBucket() bool { return p.algorithm == AlgorithmTokenBucket || p.isFixed() }

// follows reports whether a limiter whose base was another policy can have this one.
func (p Policy) follows(base Policy) bool {
	switch {
	case p.isFixed():
		return true
	case base.isFixed():
		return p.grant == grantsQuotas
	}
	return p.algorithm == base.algorithm && p.aligned == base.aligned && p.grant == base.grant
}
