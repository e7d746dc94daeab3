package engine

import "time"

type grant uint8

const (
	grantsLimit  grant = iota // a limit, by the algorithm and its numbers
	grantsAll                 // Unlimited
	grantsNone                // Blocked
	grantsQuotas              // TokenBuckets: only keys with a quota are granted anything
)

// Unlimited is the policy without a limit: every request is allowed, nothing is counted, and Limit and Remaining are
// 2^64-1. It can be a [Quota], a tier, or the policy of a limiter. [Limiter.SetPolicy] can change a limiter to it and
// back. While a limiter is Unlimited, takes do not change the keys' records, but tokens come back with time. If [New]
// makes a limiter with this policy, its table is as for [TokenBuckets] of 24 hours.
func Unlimited() Policy { return Policy{grant: grantsAll} }

// Blocked is the policy of a ban: every request is refused, nothing is counted, Limit is 0, and RetryAfter is [Never].
// Like [Unlimited] it can be a [Quota], a tier, or the policy of a limiter.
func Blocked() Policy { return Policy{grant: grantsNone} }

// TokenBuckets is the policy of a limiter whose limits come with the requests. Every call needs a [Quota] of a
// [TokenBucket]; a call without a quota is refused, as under [Blocked]. The argument longest is the longest time in
// which such a bucket may fill, 1ns to 365 days. When the quota of a key changes, the tokens that the key has taken
// still count. For that, each record stores what a token cost, so a key takes 54 bytes ([MaxKeys]).
//
// All records count in one unit of time, the tick, which is as fine as the argument longest allows. The tick is a
// sixteenth of a nanosecond for at most 39 hours, a nanosecond for 26 days, and 16 nanoseconds for a year. A token
// takes a whole number of ticks. Up to 26 days, rates up to a million tokens per second are slower than requested by
// less than a thousandth. Above 26 days, a request may be admitted up to a tick early.
//
// [Stats].Forgiven then counts seconds: how long each evicted bucket would still have taken to fill, rounded up.
func TokenBuckets(longest time.Duration) Policy {
	return Policy{algorithm: AlgorithmTokenBucket, grant: grantsQuotas, window: longest}
}

// Longest returns the time within which the buckets of [TokenBuckets] must fill, and 0 for every other policy.
func (p Policy) Longest() time.Duration {
	if p.grant == grantsQuotas {
		return p.window
	}
	return 0
}

// fixedTable is the longest fill time of buckets in a table that New makes for Unlimited or Blocked.
const fixedTable = 24 * time.Hour

// isFixed reports whether the policy is [Unlimited] or [Blocked], which any limiter can have.
func (p Policy) isFixed() bool { return p.grant == grantsAll || p.grant == grantsNone }

// isTokenBucket reports whether a limiter with the policy has token buckets, of any rates.
func (p Policy) isTokenBucket() bool { return p.algorithm == AlgorithmTokenBucket || p.isFixed() }

// canFollow reports whether a limiter with the policy base can change to p.
func (p Policy) canFollow(base Policy) bool {
	switch {
	case p.isFixed():
		return true
	case base.isFixed():
		return p.grant == grantsQuotas
	}
	return p.algorithm == base.algorithm && p.aligned == base.aligned && p.grant == base.grant
}
