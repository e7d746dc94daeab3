package engine

import "time"

// A grant says what a policy grants: the limit that its numbers describe, everything, or nothing.
type grant uint8

const (
	grantsLimit  grant = iota // a limit, by the algorithm and its numbers
	grantsAll                 // Unlimited
	grantsNone                // Blocked
	grantsQuotas              // TokenBuckets: only keys with a quota are granted anything
)

// Unlimited is the policy without a limit: every request is allowed, nothing is counted, and Limit and Remaining are
// 2^64-1. It can be a [Quota], a tier, or the policy of a limiter. [Limiter.SetPolicy] can change a limiter to it and
// back. While the policy is Unlimited, takes do not change the keys' records, but tokens come back with time.
//
// If [New] makes a limiter with this policy, the table is the same as for [TokenBuckets] of a day.
func Unlimited() Policy { return Policy{grant: grantsAll} }

// Blocked is the policy of a ban: every request is refused, nothing is counted, Limit is 0, and RetryAfter is [Never].
// Like [Unlimited] it can be a [Quota], a tier, or the policy of a limiter.
func Blocked() Policy { return Policy{grant: grantsNone} }

// TokenBuckets is the policy of a limiter of token buckets whose limits come with the requests. Every call needs a
// [Quota] that is made of a [TokenBucket]. A bucket must fill within longest. A call without a quota is refused, as
// under [Blocked].
//
// All records of the limiter count in the same tick, so that the limiter can read a record without knowing its quota.
// The tick is the finest with which a bucket that fills within longest fits into a record. The tick grows with longest:
// it is a sixteenth of a nanosecond if longest is up to 39 hours, a nanosecond if longest is 26 days, and 16
// nanoseconds if longest is a year. A token takes a whole number of ticks. So if longest is at most 26 days, rates up
// to a million tokens per second are slower than requested by less than a thousandth. If longest is more than 26 days,
// the clock advances in steps of a tick, and a request may be admitted up to a tick early.
//
// When the quota of a key changes, the tokens that it has taken still count. For that, each record stores what a token
// cost: a slot takes 32 bytes, a key 54 ([MaxKeys]).
//
// The parameter longest is 1ns to 365 days. For such a limiter, [Stats].Forgiven counts seconds instead of tokens: for
// each evicted key, the time after which its bucket would have been full, rounded up.
func TokenBuckets(longest time.Duration) Policy {
	return Policy{algorithm: AlgorithmTokenBucket, grant: grantsQuotas, window: longest}
}

// Longest returns the time within which the buckets of [TokenBuckets] must fill. It is 0 for every other policy.
func (p Policy) Longest() time.Duration {
	if p.grant == grantsQuotas {
		return p.window
	}
	return 0
}

// fixedTable is the argument longest of the table of a limiter that New makes with Unlimited or Blocked.
const fixedTable = 24 * time.Hour

// isFixed reports whether the policy is [Unlimited] or [Blocked], which any limiter can have.
func (p Policy) isFixed() bool { return p.grant == grantsAll || p.grant == grantsNone }

// isTokenBucket reports whether a limiter with the policy has token buckets, whatever their rates.
func (p Policy) isTokenBucket() bool { return p.algorithm == AlgorithmTokenBucket || p.isFixed() }

// follows reports whether a limiter with the policy base can change to p.
func (p Policy) follows(base Policy) bool {
	switch {
	case p.isFixed():
		return true
	case base.isFixed():
		return p.grant == grantsQuotas
	}
	return p.algorithm == base.algorithm && p.aligned == base.aligned && p.grant == base.grant
}
