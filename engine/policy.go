package engine

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/atomicbucket"
)

// A Policy is an algorithm with its numbers, which [New] checks. The zero Policy is not valid.
type Policy struct {
	rate     Rate                   // only for a token bucket
	limit    uint64                 // or the burst of a bucket
	refill   uint64                 // tokens in a batch
	window   time.Duration          // or the interval of batches
	calendar *atomicbucket.Calendar // for a CalendarWindow, otherwise nil
	// These fields share one word, because package limits copies a policy with each decision.
	algorithm Algorithm
	aligned   bool
	grant     grant
	period    Period // period of the calendar
}

// TokenBucket limits each key to a rate, and to a burst of 1 to 2^32 tokens at once. A key's bucket starts full, and
// its tokens come back continuously. A request of cost n is admitted if the bucket has n tokens, and takes them. Over
// any time t a key gets at most burst + rate*t. The implementation is the generic cell rate algorithm (ITU-T I.371).
//
// The bucket is exact to the nanosecond under two conditions. The burst comes back within 39 hours, and the time
// between two tokens is a whole number of nanoseconds, or of halves, thirds, ... sixteenths of a nanosecond. 100/s and
// 10/m are such rates, 97/s is not. With other numbers, no request is early. A request is late by at most two
// nanoseconds, or one 2^18th of a token's time if that is longer. Until then, a part of a token may be missing: at 97/s
// with burst 10, Remaining is 8 after the first request.
func TokenBucket(rate Rate, burst uint64) Policy {
	return Policy{algorithm: AlgorithmTokenBucket, rate: rate, limit: burst}
}

// BatchRefill is a token bucket whose tokens come back in batches, at the multiples of the interval since 1970. The
// size of a batch is refill, and the size of the bucket is burst. Over any time a key gets at most burst + refill *
// (the number of refills in that time). No part of an interval is lost, however often a client asks. refill and burst
// are 1 to 2^32, and refill is at most one token for each nanosecond of the interval.
func BatchRefill(refill uint64, interval time.Duration, burst uint64) Policy {
	return Policy{algorithm: AlgorithmBatchRefill, refill: refill, window: interval, limit: burst}
}

// FixedWindow limits how many tokens each key gets in a window, which begins with the key's first request after the
// previous window. The limit is 1 to 2^32, and the window is 1µs to 365 days. New returns an error if the window is
// too short for the limit: millions need seconds or more, billions a minute or more.
//
// At the end of a window, up to 2*limit - 1 tokens may be admitted within a moment. It may be 2*limit if the windows
// are aligned or the first request of the window was given back. A window never ends early. If it is long and not
// aligned, it ends late by at most a hundred-thousandth of its length. [Policy.Precision] returns this delay;
// docs/algorithms.md has the lengths that are exact.
func FixedWindow(limit uint64, window time.Duration) Policy {
	return Policy{algorithm: AlgorithmFixedWindow, limit: limit, window: window}
}

// Aligned makes the windows of [FixedWindow] begin at multiples of their length since 1970, at the same time for all
// keys: for example on the minute or on the hour (UTC).
func (p Policy) Aligned() Policy {
	p.aligned = true
	return p
}

// SlidingWindow limits how many tokens each key gets in the window that ends now. It estimates this number from the
// tokens taken in the clock's current and previous window. In the formula, share is the part of the previous window
// that is still inside the window that ends now:
//
//	floor(previous * share) + current + n <= limit
//
// The estimate assumes that the previous window's requests were spread evenly; docs/algorithms.md says how far off it
// can be. The limit is 1 to 2^24-1, and the window is 1µs to 365 days. New returns an error if the window is too
// short: a limit above 2^20 needs seconds or more.
func SlidingWindow(limit uint64, window time.Duration) Policy {
	return Policy{algorithm: AlgorithmSlidingWindow, limit: limit, window: window}
}

// SlidingLog limits how many tokens each key gets in any window. It is exact, because it stores the time of every token
// of the last window. So each slot takes 16 + 8*limit bytes ([MaxKeys]). Calls that return a [Decision] also make a
// binary search in these times.
//
// The limit is 1 to 4,096, and the window is 1µs to 365 days. New returns an error if the logs do not fit into the
// machine's memory, or if the window is too short: limits above some hundreds need a second or more.
// [Limiter.SetPolicy] may change the limit up to the highest limit of all tiers at New. It may change the window if the
// new window is not much longer than the window at New.
//
// A request never leaves the window early. If the window is long, a request leaves late by at most a
// hundred-thousandth of it. [Policy.Precision] returns this delay; docs/algorithms.md has the lengths that are exact.
func SlidingLog(limit uint64, window time.Duration) Policy {
	return Policy{algorithm: AlgorithmSlidingLog, limit: limit, window: window}
}

// String returns the policy's name and numbers.
func (p Policy) String() string {
	name, aligned := p.algorithm, ""
	if p.aligned {
		aligned = ", aligned"
	}
	if period, zone, ok := p.Calendar(); ok {
		return fmt.Sprintf("%s %d/%v of %s", name, p.limit, period, zone)
	}
	switch p.grant {
	case grantsAll:
		return "unlimited"
	case grantsNone:
		return "blocked"
	case grantsQuotas:
		return fmt.Sprintf("token buckets of up to %v%s", p.window, aligned)
	}
	switch p.algorithm {
	case NoAlgorithm:
		return "no policy"
	case AlgorithmTokenBucket:
		return fmt.Sprintf("%s %v burst %d%s", name, p.rate, p.limit, aligned)
	case AlgorithmBatchRefill:
		return fmt.Sprintf("%s %d/%v burst %d%s", name, p.refill, p.window, p.limit, aligned)
	case AlgorithmFixedWindow, AlgorithmSlidingWindow, AlgorithmSlidingLog:
		return fmt.Sprintf("%s %d/%v%s", name, p.limit, p.window, aligned)
	case AlgorithmConcurrency:
		return fmt.Sprintf("%s %d, forgotten after %v%s", name, p.limit, p.window, aligned)
	}
	panic(p.unknownAlgorithm())
}

func (p Policy) unknownAlgorithm() string {
	return fmt.Sprintf("engine: no case for algorithm %d", p.algorithm)
}

// Algorithm returns the policy's algorithm. It is NoAlgorithm for the zero Policy, [Unlimited] and [Blocked].
func (p Policy) Algorithm() Algorithm { return p.algorithm }

// Rate returns how fast the policy gives tokens back: with windows, the limit per window. It is the zero Rate for the
// zero Policy, for policies without numbers, and for [Concurrency], because tokens in flight do not come back with
// time.
func (p Policy) Rate() Rate {
	if p.grant != grantsLimit {
		return Rate{}
	}
	switch p.algorithm {
	case NoAlgorithm, AlgorithmConcurrency:
		return Rate{}
	case AlgorithmTokenBucket:
		return p.rate
	case AlgorithmBatchRefill:
		return Per(float64(p.refill), p.window)
	case AlgorithmFixedWindow, AlgorithmSlidingWindow, AlgorithmSlidingLog:
		return Per(float64(p.limit), p.window)
	}
	panic(p.unknownAlgorithm())
}

// IsAligned reports whether the policy is [Policy.Aligned] or a [CalendarWindow].
func (p Policy) IsAligned() bool { return p.aligned }

// Limit returns the most tokens that a key can take at once: the burst of a bucket, the limit of a window, or the
// tokens that may be in flight. It is 2^64-1 for [Unlimited].
func (p Policy) Limit() uint64 {
	if p.grant == grantsAll {
		return math.MaxUint64
	}
	return p.limit
}

// Window returns the time in which a key gets back a used-up limit: the window, the time in which a bucket fills, or
// the lifetime of [Concurrency]. It is at most 292 years, and 0 for the zero Policy and policies without numbers.
func (p Policy) Window() time.Duration {
	if p.grant != grantsLimit {
		return 0
	}
	switch p.algorithm {
	case NoAlgorithm:
		return 0
	case AlgorithmTokenBucket:
		return duration(float64(p.limit) / p.rate.Tokens * float64(p.rate.Period))
	case AlgorithmBatchRefill:
		if p.refill == 0 {
			return 0
		}
		return duration(float64((p.limit-1)/p.refill+1) * float64(p.window))
	case AlgorithmFixedWindow, AlgorithmSlidingWindow, AlgorithmSlidingLog, AlgorithmConcurrency:
		return p.window
	}
	panic(p.unknownAlgorithm())
}

// duration returns the number of nanoseconds as a Duration, rounded, and at most the longest Duration.
func duration(nanos float64) time.Duration {
	if !(nanos < math.MaxInt64) {
		return math.MaxInt64
	}
	return time.Duration(math.Round(nanos))
}

// Algorithm returns the limiter's algorithm, which [Limiter.SetPolicy] cannot change. It stays the same while the
// policy is [Unlimited] or [Blocked], and is NoAlgorithm if New made the limiter with one of these policies.
func (l *Limiter) Algorithm() Algorithm {
	l.requireMade()
	return l.policies().base.algorithm
}

// Policy returns the policy of a tier, as [New] or the latest [Limiter.SetPolicy] has set it. Tier 0 is the limiter's
// own policy. For a tier that the limiter does not have, Policy returns the zero Policy. It is lock-free and does not
// allocate.
func (l *Limiter) Policy(tier int) Policy {
	l.requireMade()
	policies := l.policies().byTier
	if tier < 0 || tier >= len(policies) {
		return Policy{}
	}
	return policies[tier]
}

// hasWindows reports whether the policy has windows whose length [Limiter.SetPolicy] can change.
func (p Policy) hasWindows() bool {
	return p.algorithm == AlgorithmFixedWindow || p.algorithm == AlgorithmSlidingWindow || p.algorithm == AlgorithmSlidingLog
}

// build returns the algorithm of the policy, with room for maxTokens tokens in a record.
func (p Policy) build(maxTokens uint64) (atomicbucket.Algorithm, error) {
	return p.buildRoomy(maxTokens, p.window)
}

// buildRoomy is build with room for windows of up to maxWindow, which may be longer than the policy's window.
func (p Policy) buildRoomy(maxTokens uint64, maxWindow time.Duration) (algorithm atomicbucket.Algorithm, err error) {
	if p.aligned && p.algorithm != AlgorithmFixedWindow {
		return nil, fmt.Errorf("engine: %v: only a fixed window can be aligned", p)
	}
	switch {
	case p.isFixed():
		algorithm, err = asAlgorithm(atomicbucket.NewTicks(fixedTable))
		return algorithm, err
	case p.grant == grantsQuotas:
		if algorithm, err = asAlgorithm(atomicbucket.NewTicks(p.window)); err != nil {
			err = fmt.Errorf("engine: %v: %w", p, err)
		}
		return algorithm, err
	}
	switch p.algorithm {
	case NoAlgorithm:
		return nil, errors.New("engine: the zero Policy limits nothing: " +
			"want engine.TokenBucket(rate, burst) or one of its siblings")
	case AlgorithmTokenBucket:
		algorithm, err = asAlgorithm(atomicbucket.NewRoomyBucket(p.rate.Tokens, p.rate.Period, p.limit, maxTokens))
	case AlgorithmBatchRefill:
		algorithm, err = asAlgorithm(atomicbucket.NewBatchBucket(p.refill, p.window, p.limit))
	case AlgorithmFixedWindow:
		switch {
		case p.calendar != nil:
			algorithm, err = asAlgorithm(atomicbucket.NewCalendarWindow(p.limit, maxTokens, p.calendar, maxWindow))
		case p.period != 0:
			_, err = atomicbucket.NewCalendar(p.period, nil)
		default:
			algorithm, err = asAlgorithm(atomicbucket.NewRoomyWindow(p.limit, maxTokens, p.window, maxWindow, p.aligned))
		}
	case AlgorithmSlidingWindow:
		algorithm, err = asAlgorithm(atomicbucket.NewRoomySliding(p.limit, maxTokens, p.window, maxWindow))
	case AlgorithmSlidingLog:
		var log atomicbucket.SlidingLog
		log, err = atomicbucket.NewSlidingLog(p.limit, maxTokens, p.window)
		algorithm = log.Staying(maxWindow)
	case AlgorithmConcurrency:
		algorithm, err = asAlgorithm(atomicbucket.NewConcurrency(p.limit, maxTokens, p.window))
	default:
		panic(p.unknownAlgorithm())
	}
	if err != nil {
		return nil, fmt.Errorf("engine: %v: %w", p, err)
	}
	return algorithm, nil
}

// buildEntries is build for a [Concurrency] policy in a table that several processes share.
func (p Policy) buildEntries(maxTokens uint64) (atomicbucket.Algorithm, error) {
	algorithm, err := asAlgorithm(atomicbucket.NewEntries(p.limit, maxTokens, p.window))
	if err != nil {
		return nil, fmt.Errorf("engine: %v: %w", p, err)
	}
	return algorithm, nil
}

// asAlgorithm returns a pointer to an algorithm whose methods have pointer receivers.
func asAlgorithm[T any, P interface {
	*T
	atomicbucket.Algorithm
}](algorithm T, err error) (atomicbucket.Algorithm, error) {
	return P(&algorithm), err
}
