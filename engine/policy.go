package engine

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/atomicbucket"
)

// A Policy is an algorithm with its numbers. [New] checks them. The zero Policy
// is none.
type Policy struct {
	rate     Rate                   // of a token bucket
	limit    uint64                 // or burst
	refill   uint64                 // of a batch
	window   time.Duration          // or interval
	calendar *atomicbucket.Calendar // by which a fixed window begins; nil: by the clock
	// Together, so that they take a word: limits copies policies with each decision.
	algorithm Algorithm
	aligned   bool
	grant     grant
	per       Period // of the calendar
}

// TokenBucket limits each key to the rate in the long run and to burst at once.
// A key's bucket starts full, a request of cost n is admitted if n tokens are in
// it, and takes them; a refused request takes nothing. Over any time t a key gets
// at most burst + rate*t through.
//
// Tokens come back continuously, not in steps, and no timer runs: the bucket is
// computed when it is asked. burst is 1 to 2^32.
//
// The form used is the generic cell rate algorithm (ITU-T I.371): 16 bytes a slot, 27 a key ([MaxKeys]). It
// is exact, to the nanosecond and for ever, for every rate whose tokens are a
// whole number of nanoseconds apart, or of halves, thirds, ... sixteenths of one,
// with a burst up to what comes back in 39 hours at the least: 100/s, 10/m and 60/s
// are such rates, 97/s is not. All others are never early and late by at most two
// nanoseconds, or by one 2^18th of a token where that is longer. They charge an idle key from the end of the present
// nanosecond on, or of that longer time. Until then a part of a token is missing: at 97/s with burst 10 the first
// request sees 8 remaining, one a moment later 8 again, and then 7, and of ten in one nanosecond the last waits.
func TokenBucket(rate Rate, burst uint64) Policy {
	return Policy{algorithm: AlgorithmTokenBucket, rate: rate, limit: burst}
}

// BatchRefill is a token bucket that gets refill tokens at once every interval, at the
// multiples of the interval since 1970, and holds burst. Over any time a key
// gets at most burst + refill * (the refills in it) through. Nothing of an interval
// that has begun is lost, however often a client asks.
//
// refill is 1 to 2^32 and at most a token a nanosecond, burst 1 to 2^32.
func BatchRefill(refill uint64, interval time.Duration, burst uint64) Policy {
	return Policy{algorithm: AlgorithmBatchRefill, refill: refill, window: interval, limit: burst}
}

// FixedWindow limits each key to limit tokens in a window. The window begins with the key's first request. The next one
// begins with the first request after it has ended. Two windows may meet: at worst twice the limit less one is admitted
// in a moment at the edge. It is twice the limit if the windows are aligned, or if the first request of the window was
// given back. 16 bytes a slot, 27 a key ([MaxKeys]).
//
// limit is 1 to 2^32 and window 1µs to 365 days; a limit in the millions needs a window
// of seconds, one in the billions of a minute, and an error says so.
//
// A window is exact to the nanosecond if it is aligned, and else if the limit has d binary digits, up to 15 (32,767),
// and the window is at most 2^(51-d) ns: 4.8 hours for 100, 36 minutes for 1,000. Up to twice that length it ends less
// than 4 ns late, up to four times less than 8 ns, and so on; a higher limit has coarser times, too. It is never
// shorter, and late by less than a hundred-thousandth. [Policy.Precision] tells how much. Of several [Tiers] the
// largest limit counts.
func FixedWindow(limit uint64, window time.Duration) Policy {
	return Policy{algorithm: AlgorithmFixedWindow, limit: limit, window: window}
}

// Aligned makes the windows of [FixedWindow] begin at multiples of their length since 1970,
// for all keys at once: on the minute, on the hour (UTC).
func (p Policy) Aligned() Policy {
	p.aligned = true
	return p
}

// SlidingWindow limits each key to limit tokens in the last window, by two counters. One
// counts what was taken in the present window of the clock, and the other what was taken in
// the previous one. The previous one counts for the share of it that the last window still
// covers:
//
//	floor(previous * share) + current + n <= limit
//
// It is an estimate, because it assumes that the previous window's requests were evenly
// spread. Refused requests do not count. docs/algorithms.md says how far off it can
// be. 16 bytes a slot, 27 a key ([MaxKeys]).
//
// limit is 1 to 2^24-1 and window 1µs to 365 days; a limit above 2^20 needs a window of
// seconds or more, and an error says so.
func SlidingWindow(limit uint64, window time.Duration) Policy {
	return Policy{algorithm: AlgorithmSlidingWindow, limit: limit, window: window}
}

// SlidingLog limits each key to limit tokens in any window, exactly: it keeps the time of
// every token that it granted in the last window. That costs memory: 16 + 8*limit bytes a
// slot, allocated by [New] as everything is ([MaxKeys]; [Stats] reports how much). Calls that
// return a [Decision] also search the times by halves.
//
// limit is 1 to 4,096, and what the machine's memory can hold for that many keys; window
// 1µs to 365 days; a limit above some hundreds needs a window of a second or more, and an
// error says so.
//
// Its precision depends on d, the number of binary digits of the limit. With d up to 7 (a limit of 127) it is exact to
// the nanosecond in windows up to 2^(50-2d) ns: 4.8 hours for 5, 73 minutes for 10, 68 seconds for 100. In windows up
// to twice that length a request leaves less than 4 ns late, up to four times less than 8 ns, and so on. A higher limit
// has coarser times, too. A request never leaves early, and is late by less than a hundred-thousandth of the window.
// [Policy.Precision] returns how much. Of several [Tiers] the largest limit counts.
//
// [Limiter.SetPolicy] may change the limit to any that is not above the largest at New, of
// all tiers, and the window, if it is not much longer than at New. The requests in the log stay
// what they are.
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

// unknown is what a switch over all algorithms says of one that it has forgotten.
func (p Policy) unknown() string { return fmt.Sprintf("engine: no case for algorithm %d", p.algorithm) }

// Algorithm returns the policy's algorithm; NoAlgorithm of the zero Policy, [Unlimited] and [Blocked].
func (p Policy) Algorithm() Algorithm { return p.algorithm }

// Rate returns how fast the policy gives tokens back: the limit in a window, of those that have windows; the zero Rate
// for the zero Policy, those without numbers, and [Concurrency], which does not give back by time.
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

// Limit returns the most that a key can have: the burst of a bucket, the tokens of a window, what may be in
// flight; 2^64-1 if it is [Unlimited].
func (p Policy) Limit() uint64 {
	if p.grant == grantsAll {
		return math.MaxUint64
	}
	return p.limit
}

// Window returns the time in which a key that has used up its whole limit gets it back: the
// window, or the time that a bucket takes to fill; the lifetime of [Concurrency]. It is 0 for the zero Policy and those
// without numbers, and ends at 292 years, the longest Duration there is.
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

// duration returns so many nanoseconds, rounded to whole ones.
func duration(nanos float64) time.Duration {
	if !(nanos < math.MaxInt64) {
		return math.MaxInt64
	}
	return time.Duration(math.Round(nanos))
}

// Algorithm returns the algorithm of the limiter, which [Limiter.SetPolicy] cannot change: also while its policy is
// [Unlimited] or [Blocked]. It is NoAlgorithm of a limiter that New made with one of these.
func (l *Limiter) Algorithm() Algorithm {
	l.requireMade()
	return l.now().base.algorithm
}

// Policy returns the policy of a tier, 0 for the limiter's own, as it was given to [New] or by the
// latest [Limiter.SetPolicy]; the zero Policy for a tier that the limiter does not have. It is
// lock-free and does not allocate.
func (l *Limiter) Policy(tier int) Policy {
	l.requireMade()
	policies := l.now().all
	if tier < 0 || tier >= len(policies) {
		return Policy{}
	}
	return policies[tier]
}

// build checks the numbers and makes the algorithm that the table needs. It has room for
// limits up to most.
func (p Policy) build(most uint64) (algorithm atomicbucket.Algorithm, err error) {
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
			algorithm, err = boxed(atomicbucket.NewCalendarWindow(p.limit, most, p.calendar))
		case p.per != 0:
			_, err = atomicbucket.NewCalendar(p.per, nil)
		default:
			algorithm, err = boxed(atomicbucket.NewFixedWindow(p.limit, most, p.window, p.aligned))
		}
	case AlgorithmSlidingWindow:
		algorithm, err = boxed(atomicbucket.NewSlidingWindow(p.limit, most, p.window))
	case AlgorithmSlidingLog:
		algorithm, err = boxed(atomicbucket.NewSlidingLog(p.limit, most, p.window))
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

// buildEntries is build of a limit in flight for a table of several processes.
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
