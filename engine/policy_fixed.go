package engine

import "time"

// A grant says whether a policy has numbers.
type grant uint8

const (
	grantsLimit  grant = iota // what its algorithm and numbers say
	grantsAll                 // Unlimited
	grantsNone                // Blocked
	grantsQuotas              // TokenBuckets: nothing, but to a key with a quota
)

// Unlimited is the policy without a limit: every request is allowed, nothing is counted, and Limit and Remaining are
// 2^64-1. It can be a [Quota], a tier, or the policy of a limiter. [Limiter.SetPolicy] changes to it and back. The
// keys' records do not change meanwhile, except for the time that has passed.
//
// If [New] makes a limiter of it, the table is the same as for [TokenBuckets] of a day.
func Unlimited() Policy { return Policy{grant: grantsAll} }

// Blocked is the policy of a ban: every request is refused, nothing is counted, Limit is 0, and RetryAfter is [Never].
// Like [Unlimited] it can be a [Quota], a tier, or the policy of a limiter.
func Blocked() Policy { return Policy{grant: grantsNone} }

// TokenBuckets is the policy of a limiter of token buckets whose limits come with the requests. Every call needs a
// [Quota], made of a [TokenBucket] that fills within longest. A call without a quota is refused, as under [Blocked].
//
// All records of the limiter count in the same tick, so that a record can be judged without its quota. The tick is
// the finest with which a bucket that fills within longest fits into a record. When longest doubles, the tick does:
// it is a sixteenth of a nanosecond up to 39 hours, a nanosecond up to 26 days, and 16 nanoseconds up to a year. A
// token is a whole number of ticks. So if longest is at most 26 days, rates up to a million tokens a second are
// slower than asked for by less than a thousandth. If longest is more than 26 days, the clock goes in steps of a
// tick, and a request may pass up to a tick early.
//
// When the quota of a key changes, the tokens that it has taken still count. For that its record says what a token
// cost: a slot takes 32 bytes, a key 54 ([MaxKeys]).
//
// longest is 1ns to 365 days. [Stats].Forgiven counts seconds instead of tokens: the time after which each evicted key
// would have been full, rounded up for each key.
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

// isFixed reports whether the policy is [Unlimited] or [Blocked], which go with any algorithm.
func (p Policy) isFixed() bool { return p.grant == grantsAll || p.grant == grantsNone }

// isTokenBucket reports whether a limiter with the policy has token buckets, whatever their rates.
func (p Policy) isTokenBucket() bool { return p.algorithm == AlgorithmTokenBucket || p.isFixed() }

// follows reports whether a limiter whose base is another policy can change to p.
func (p Policy) follows(base Policy) bool {
	switch {
	case p.isFixed():
		return true
	case base.isFixed():
		return p.grant == grantsQuotas
	}
	return p.algorithm == base.algorithm && p.aligned == base.aligned && p.grant == base.grant
}
