package engine

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/atomicbucket"
)

// A Policy is an algorithm with its numbers. [New] checks the numbers. The zero Policy is not valid.
type Policy struct {
	rate     Rate                   // only for a token bucket
	limit    uint64                 // or the burst of a bucket
	refill   uint64                 // tokens in a batch
	window   time.Duration          // or the interval of batches
	calendar *atomicbucket.Calendar // for a CalendarWindow, otherwise nil
	// These fields are next to each other, so that they take one word. Package limits copies a policy with each
	// decision.
	algorithm Algorithm
	aligned   bool
	grant     grant
	per       Period // period of the calendar
}

// TokenBucket limits each key to a rate in the long run, and to a number of tokens at once, the burst. A key's bucket
// starts full. A request of cost n is admitted if the bucket has n tokens, and takes them. A refused request takes
// nothing. Over any time t a key gets at most burst + rate*t.
//
// Tokens come back continuously, not in steps. There is no timer: the level of a bucket is computed when a request
// comes. The parameter burst is 1 to 2^32.
//
// The implementation is the generic cell rate algorithm (ITU-T I.371). A slot takes 16 bytes, a key 27 ([MaxKeys]).
//
// A rate is exact, to the nanosecond and forever, if the time between two tokens is a whole number of nanoseconds, or
// of halves, thirds, ... sixteenths of a nanosecond. The burst must also be at most what comes back in 39 hours. 100/s,
// 10/m and 60/s are such rates, 97/s is not. With all other rates, a request is never admitted early. It is late by at
// most two nanoseconds, or by one 2^18th of a token's time if that is longer. In these limiters, tokens that an idle
// key takes start to come back only at the end of the current nanosecond, or of the longer time. Until then a part of a
// token is missing. For example, at 97/s with burst 10, the Remaining of the first request is 8. The next request a
// moment later also gets 8, and the request after it gets 7. If ten requests come in one nanosecond, the last of them
// must wait.
func TokenBucket(rate Rate, burst uint64) Policy {
	return Policy{algorithm: AlgorithmTokenBucket, rate: rate, limit: burst}
}

// BatchRefill is a token bucket that is refilled in batches. The parameter burst is the number of tokens that the
// bucket holds. The parameter refill is the number of tokens that the bucket gets at once every interval, at the
// multiples of the interval since 1970. Over any time a key gets at most burst + refill * (the number of refills in
// that time). No part of an interval is lost, however often a client asks.
//
// The parameter refill is 1 to 2^32, but at most one token for each nanosecond of the interval. The parameter burst is
// 1 to 2^32.
func BatchRefill(refill uint64, interval time.Duration, burst uint64) Policy {
	return Policy{algorithm: AlgorithmBatchRefill, refill: refill, window: interval, limit: burst}
}

// FixedWindow limits how many tokens each key gets in a window. The window begins with the key's first request. The
// next window begins with the first request after the end of this window. When one window ends and the next begins, up
// to 2*limit - 1 tokens may be admitted within a moment. This number is 2*limit if the windows are aligned, or if the
// first request of the window was given back. A slot takes 16 bytes, a key 27 ([MaxKeys]).
//
// The parameter limit is the highest number of tokens, 1 to 2^32, and window is 1µs to 365 days. A limit in the
// millions needs a window of seconds or more, and a limit in the billions needs a window of a minute or more. If the
// window is shorter, New returns an error that says so.
//
// An aligned window is exact to the nanosecond. For other windows, the precision depends on d, the number of binary
// digits of the limit. Such a window is exact to the nanosecond if d is at most 15 (a limit of 32,767), and the window
// is at most 2^(51-d) ns long: 4.8 hours for a limit of 100, 36 minutes for 1,000. If the window is up to twice as
// long, it ends less than 4 ns late. If the window is up to four times as long, it ends less than 8 ns late, and so on.
// If d is above 15, windows also end late. A window never ends early, and ends late by less than a hundred-thousandth
// of its length. [Policy.Precision] returns how late. If there are [Tiers], the largest limit counts.
func FixedWindow(limit uint64, window time.Duration) Policy {
	return Policy{algorithm: AlgorithmFixedWindow, limit: limit, window: window}
}

// Aligned makes the windows of [FixedWindow] begin at multiples of their length since 1970, at the same time for all
// keys: for example on the minute or on the hour (UTC).
func (p Policy) Aligned() Policy {
	p.aligned = true
	return p
}

// SlidingWindow limits how many tokens each key gets in the window that ends now. It estimates the tokens in this
// window from two counters. One counts the tokens taken in the current window of the clock, and the other counts the
// tokens taken in the previous window of the clock. The previous count is weighted by the share of the previous window
// that is still inside the window that ends now:
//
//	floor(previous * share) + current + n <= limit
//
// This is an estimate, because it assumes that the requests of the previous window were spread evenly. Refused requests
// do not count. docs/algorithms.md says how far off the estimate can be. A slot takes 16 bytes, a key 27 ([MaxKeys]).
//
// The parameter limit is the highest number of tokens, 1 to 2^24-1, and window is 1µs to 365 days. A limit above 2^20
// needs a window of seconds or more. If the window is shorter, New returns an error that says so.
func SlidingWindow(limit uint64, window time.Duration) Policy {
	return Policy{algorithm: AlgorithmSlidingWindow, limit: limit, window: window}
}

// SlidingLog limits how many tokens each key gets in any window. It is exact, because it keeps the time of every token
// that it has granted in the last window. That costs memory: 16 + 8*limit bytes for each slot. [New] allocates this
// memory with the rest ([MaxKeys]), and [Stats] reports how much it is. Calls that return a [Decision] also make a
// binary search in these times.
//
// The parameter limit is the highest number of tokens, 1 to 4,096, and the logs of all keys must fit into the machine's
// memory. The parameter window is 1µs to 365 days. A limit above some hundreds needs a window of a second or more. If
// the window is shorter, New returns an error that says so.
//
// The precision depends on d, the number of binary digits of the limit. If d is at most 7 (a limit of 127), the log is
// exact to the nanosecond in windows up to 2^(50-2d) ns: 4.8 hours for a limit of 5, 73 minutes for 10, 68 seconds for
// 100. If the window is up to twice as long, a request leaves the window less than 4 ns late. If the window is up to
// four times as long, a request leaves it less than 8 ns late, and so on. If d is above 7, requests also leave late. A
// request never leaves early, and leaves late by less than a hundred-thousandth of the window. [Policy.Precision]
// returns how late. If there are [Tiers], the largest limit counts.
//
// [Limiter.SetPolicy] may change the limit to any number up to the highest limit of all tiers at New. It may change the
// window if the new window is not much longer than the window at New. The requests in the log are kept.
func SlidingLog(limit uint64, window time.Duration) Policy {
	return Policy{algorithm: AlgorithmSlidingLog, limit: limit, window: window}
}

// String returns the policy's name and numbers.
func (p Policy) String() string {
	name, aligned := p.algorithm, ""
	if p.aligned {
		aligned = ", aligned"
	}
	if per, zone, ok := p.Calendar(); ok {
		return fmt.Sprintf("%s %d/%v of %s", name, p.limit, per, zone)
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
	panic(p.unknown())
}

// unknown returns the message with which a switch over all algorithms panics if it has no case for the algorithm.
func (p Policy) unknown() string { return fmt.Sprintf("engine: no case for algorithm %d", p.algorithm) }

// Algorithm returns the policy's algorithm. It is NoAlgorithm for the zero Policy, [Unlimited] and [Blocked].
func (p Policy) Algorithm() Algorithm { return p.algorithm }

// Rate returns how fast the policy gives tokens back. For a policy with a window, the rate is the limit per window. It
// is the zero Rate for the zero Policy, for policies without numbers, and for [Concurrency], because tokens in flight
// do not come back with time.
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
	panic(p.unknown())
}

// IsAligned reports whether windows begin at multiples of their length, or with the periods of a calendar: see
// [Policy.Aligned] and [CalendarWindow].
func (p Policy) IsAligned() bool { return p.aligned }

// Limit returns the highest number of tokens that a key can take at once: the burst of a bucket, the limit of a window,
// or the number of tokens that may be in flight. It is 2^64-1 for [Unlimited].
func (p Policy) Limit() uint64 {
	if p.grant == grantsAll {
		return math.MaxUint64
	}
	return p.limit
}

// Window returns the time after which a key that has used up its whole limit has it back. This time is the window, the
// time that a bucket takes to fill, or the lifetime of [Concurrency]. Window returns 0 for the zero Policy and for
// policies without numbers. The result is at most 292 years, the longest Duration.
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
	panic(p.unknown())
}

// duration returns the Duration of the given number of nanoseconds, rounded to a whole number.
func duration(nanos float64) time.Duration {
	if !(nanos < math.MaxInt64) {
		return math.MaxInt64
	}
	return time.Duration(math.Round(nanos))
}

// Algorithm returns the algorithm of the limiter, which [Limiter.SetPolicy] cannot change. It stays the same while the
// limiter's policy is [Unlimited] or [Blocked]. It is NoAlgorithm if New made the limiter with one of these policies.
func (l *Limiter) Algorithm() Algorithm {
	l.requireMade()
	return l.now().base.algorithm
}

// Policy returns the policy of a tier, as [New] or the latest [Limiter.SetPolicy] has set it. Tier 0 is the limiter's
// own policy. If the limiter does not have the tier, Policy returns the zero Policy. It is lock-free and does not
// allocate.
func (l *Limiter) Policy(tier int) Policy {
	l.requireMade()
	policies := l.now().all
	if tier < 0 || tier >= len(policies) {
		return Policy{}
	}
	return policies[tier]
}

// hasWindows reports whether the policy counts in windows whose length [Limiter.SetPolicy] can change.
func (p Policy) hasWindows() bool {
	return p.algorithm == AlgorithmFixedWindow || p.algorithm == AlgorithmSlidingWindow || p.algorithm == AlgorithmSlidingLog
}

// build checks the numbers and returns the algorithm that the table needs, with room for limits up to most.
func (p Policy) build(most uint64) (atomicbucket.Algorithm, error) {
	return p.buildRoomy(most, p.window)
}

// buildRoomy does what build does, but its records also have room for windows of earlier limits. The parameter room is
// how long such a window may last after a change.
func (p Policy) buildRoomy(most uint64, room time.Duration) (algorithm atomicbucket.Algorithm, err error) {
	if p.aligned && p.algorithm != AlgorithmFixedWindow {
		return nil, fmt.Errorf("engine: %v: only a fixed window can be aligned", p)
	}
	switch {
	case p.isFixed():
		algorithm, err = boxed(atomicbucket.NewTicks(fixedTable))
		return algorithm, err
	case p.grant == grantsQuotas:
		if algorithm, err = boxed(atomicbucket.NewTicks(p.window)); err != nil {
			err = fmt.Errorf("engine: %v: %w", p, err)
		}
		return algorithm, err
	}
	switch p.algorithm {
	case NoAlgorithm:
		return nil, errors.New("engine: the zero Policy limits nothing: " +
			"want engine.TokenBucket(rate, burst) or one of its siblings")
	case AlgorithmTokenBucket:
		algorithm, err = boxed(atomicbucket.NewRoomyBucket(p.rate.Tokens, p.rate.Period, p.limit, most))
	case AlgorithmBatchRefill:
		algorithm, err = boxed(atomicbucket.NewBatchBucket(p.refill, p.window, p.limit))
	case AlgorithmFixedWindow:
		switch {
		case p.calendar != nil:
			algorithm, err = boxed(atomicbucket.NewCalendarWindow(p.limit, most, p.calendar, room))
		case p.per != 0:
			_, err = atomicbucket.NewCalendar(p.per, nil)
		default:
			algorithm, err = boxed(atomicbucket.NewRoomyWindow(p.limit, most, p.window, room, p.aligned))
		}
	case AlgorithmSlidingWindow:
		algorithm, err = boxed(atomicbucket.NewRoomySliding(p.limit, most, p.window, room))
	case AlgorithmSlidingLog:
		var log atomicbucket.SlidingLog
		log, err = atomicbucket.NewSlidingLog(p.limit, most, p.window)
		algorithm = log.Staying(room)
	case AlgorithmConcurrency:
		algorithm, err = boxed(atomicbucket.NewConcurrency(p.limit, most, p.window))
	default:
		panic(p.unknown())
	}
	if err != nil {
		return nil, fmt.Errorf("engine: %v: %w", p, err)
	}
	return algorithm, nil
}

// buildEntries does what build does, for a [Concurrency] policy in a table that several processes share.
func (p Policy) buildEntries(most uint64) (atomicbucket.Algorithm, error) {
	algorithm, err := boxed(atomicbucket.NewEntries(p.limit, most, p.window))
	if err != nil {
		return nil, fmt.Errorf("engine: %v: %w", p, err)
	}
	return algorithm, nil
}

func boxed[T any, P interface {
	*T
	atomicbucket.Algorithm
}](algorithm T, err error) (atomicbucket.Algorithm, error) {
	return P(&algorithm), err
}
