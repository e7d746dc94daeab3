package engine

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/atomicbucket"
)

// A Policy is an algorithm with its numbers. [New] checks them. The zero Policy is not valid.
type Policy struct {
	rate     Rate                   // of a token bucket
	limit    uint64                 // or burst
	refill   uint64                 // of a batch
	window   time.Duration          // or interval
	calendar *atomicbucket.Calendar // of a CalendarWindow, else nil
	// Together, so that they take a word: limits copies policies with each decision.
	algorithm Algorithm
	aligned   bool
	grant     grant
	per       Period // of the calendar
}

// TokenBucket limits each key to the rate in the long run and to burst at once. A key's bucket starts full. A request
// of cost n is admitted if the bucket has n tokens, and takes them. A refused request takes nothing. Over any time t a
// key gets at most burst + rate*t.
//
// Tokens come back continuously, not in steps. No timer runs: the level of a bucket is computed when a request comes.
// burst is 1 to 2^32.
//
// The implementation is the generic cell rate algorithm (ITU-T I.371). A slot takes 16 bytes, a key 27 ([MaxKeys]).
//
// A rate is exact, to the nanosecond and forever, if the time between two tokens is a whole number of nanoseconds, or
// of halves, thirds, ... sixteenths of a nanosecond. The burst must be at most what comes back in 39 hours. 100/s, 10/m
// and 60/s are such rates, 97/s is not. With all other rates a request is never admitted early, and is late by at most
// two nanoseconds, or by one 2^18th of a token's time if that is longer. In these limiters the charge of an idle key
// starts at the end of the current nanosecond, or of that longer time. Until then a part of a token is missing. At 97/s
// with burst 10 the first request sees 8 remaining, the next one a moment later 8 again, and then 7. Of ten requests in
// one nanosecond, the last waits.
func TokenBucket(rate Rate, burst uint64) Policy {
	return Policy{algorithm: AlgorithmTokenBucket, rate: rate, limit: burst}
}

// BatchRefill is a token bucket that holds burst tokens, and gets refill tokens at once every interval, at the
// multiples of the interval since 1970. Over any time a key gets at most burst + refill * (the number of refills in
// that time). However often a client asks, no part of an interval that has begun is lost.
//
// refill is 1 to 2^32, at most one token for each nanosecond of interval. burst is 1 to 2^32.
func BatchRefill(refill uint64, interval time.Duration, burst uint64) Policy {
	return Policy{algorithm: AlgorithmBatchRefill, refill: refill, window: interval, limit: burst}
}

// FixedWindow limits each key to limit tokens in a window. The window begins with the key's first request. The next one
// begins with the first request after it has ended. Around the edge of two windows, up to 2*limit - 1 tokens may be
// admitted within a moment. If the windows are aligned, or if the first request of the window was given back, it is up
// to 2*limit. A slot takes 16 bytes, a key 27 ([MaxKeys]).
//
// limit is 1 to 2^32, and window is 1µs to 365 days. A limit in the millions needs a window of seconds or more, and a
// limit in the billions needs a minute or more; otherwise New returns an error that says so.
//
// An aligned window is exact to the nanosecond. So is another window if d, the number of binary digits of the limit, is
// at most 15 (32,767), and the window is at most 2^(51-d) ns: 4.8 hours for 100, 36 minutes for 1,000. A window up to
// twice that long ends less than 4 ns late, up to four times less than 8 ns, and so on. A higher limit also has coarser
// times. A window never ends early, and ends late by less than a hundred-thousandth of its length. [Policy.Precision]
// returns how late. Of several [Tiers] the largest limit counts.
func FixedWindow(limit uint64, window time.Duration) Policy {
	return Policy{algorithm: AlgorithmFixedWindow, limit: limit, window: window}
}

// Aligned makes the windows of [FixedWindow] begin at multiples of their length since 1970,
// for all keys at once: on the minute, on the hour (UTC).
func (p Policy) Aligned() Policy {
	p.aligned = true
	return p
}

// SlidingWindow limits each key to limit tokens in the last window, by two counters. One counts the tokens taken in the
// current window of the clock, and the other those taken in the previous window. The previous count is weighted by the
// share of the previous window that the last window still covers:
//
//	floor(previous * share) + current + n <= limit
//
// It is an estimate, because it assumes that the previous window's requests were evenly spread. Refused requests do not
// count. docs/algorithms.md says how far off the estimate can be. A slot takes 16 bytes, a key 27 ([MaxKeys]).
//
// limit is 1 to 2^24-1, and window is 1µs to 365 days. A limit above 2^20 needs a window of seconds or more; otherwise
// New returns an error that says so.
func SlidingWindow(limit uint64, window time.Duration) Policy {
	return Policy{algorithm: AlgorithmSlidingWindow, limit: limit, window: window}
}

// SlidingLog limits each key to limit tokens in any window, exactly: it keeps the time of every token that it granted
// in the last window. That costs memory: 16 + 8*limit bytes for each slot, allocated by [New] like all memory
// ([MaxKeys]; [Stats] reports how much). Calls that return a [Decision] also do a binary search of the times.
//
// limit is 1 to 4,096, and must fit into the machine's memory for that many keys. window is 1µs to 365 days. A limit
// above some hundreds needs a window of a second or more; otherwise New returns an error that says so.
//
// Its precision depends on d, the number of binary digits of the limit. With d up to 7 (a limit of 127) it is exact to
// the nanosecond in windows up to 2^(50-2d) ns: 4.8 hours for 5, 73 minutes for 10, 68 seconds for 100. In windows up
// to twice that length a request leaves less than 4 ns late, up to four times less than 8 ns, and so on. A higher limit
// also has coarser times. A request never leaves early, and leaves late by less than a hundred-thousandth of the
// window. [Policy.Precision] returns how late. Of several [Tiers] the largest limit counts.
//
// [Limiter.SetPolicy] may change the limit to any number up to the largest limit at New, of all tiers. It may change
// the window if the new one is not much longer than the window at New. The requests in the log are kept.
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

// unknown is the message of a switch over all algorithms that lacks a case.
func (p Policy) unknown() string { return fmt.Sprintf("engine: no case for algorithm %d", p.algorithm) }

// Algorithm returns the policy's algorithm; NoAlgorithm for the zero Policy, [Unlimited] and [Blocked].
func (p Policy) Algorithm() Algorithm { return p.algorithm }

// Rate returns how fast the policy gives tokens back. For a policy with a window it is the limit in a window. It is the
// zero Rate for the zero Policy, for policies without numbers, and for [Concurrency], whose tokens do not come back by
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
	panic(p.unknown())
}

// IsAligned reports whether the windows are those of the clock: see [Policy.Aligned].
func (p Policy) IsAligned() bool { return p.aligned }

// Limit returns the most tokens that a key can have: the burst of a bucket, the tokens of a window, or the tokens that
// may be in flight. It is 2^64-1 for [Unlimited].
func (p Policy) Limit() uint64 {
	if p.grant == grantsAll {
		return math.MaxUint64
	}
	return p.limit
}

// Window returns the time in which a key that has used up its whole limit gets it back. It is the window, the time that
// a bucket takes to fill, or the lifetime of [Concurrency]. It is 0 for the zero Policy and for policies without
// numbers, and at most 292 years, the longest Duration.
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

// duration returns that many nanoseconds, rounded to whole ones.
func duration(nanos float64) time.Duration {
	if !(nanos < math.MaxInt64) {
		return math.MaxInt64
	}
	return time.Duration(math.Round(nanos))
}

// Algorithm returns the algorithm of the limiter, which [Limiter.SetPolicy] cannot change. It stays the same while the
// limiter's policy is [Unlimited] or [Blocked]. It is NoAlgorithm if New made the limiter with one of these.
func (l *Limiter) Algorithm() Algorithm {
	l.requireMade()
	return l.now().base.algorithm
}

// Policy returns the policy of a tier, as it was given to [New] or to the latest [Limiter.SetPolicy]. Tier 0 is the
// limiter's own policy. For a tier that the limiter does not have, it returns the zero Policy. It is lock-free and does
// not allocate.
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

// build checks the numbers and makes the algorithm that the table needs, with room for limits up to most.
func (p Policy) build(most uint64) (atomicbucket.Algorithm, error) {
	return p.buildRoomy(most, p.window)
}

// buildRoomy is build with room for windows of earlier limits that last for a time after a change.
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

// buildEntries is build for a [Concurrency] policy in a table of several processes.
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
