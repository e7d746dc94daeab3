package engine

import (
	"time"

	"github.com/weir-go/weir/atomicbucket"
)

// Precision returns the largest delay of a limiter with the policy, by the limiter's own clock. If a request must wait
// according to the policy's numbers, it may have to wait longer by this delay. No request is admitted early, with one
// exception: with [TokenBuckets] of more than 26 days, a request may be admitted up to a tick early. The result 0 means
// that the policy is exact to the nanosecond. Most policies are exact: see [TokenBucket], [FixedWindow] and
// [SlidingLog]. The parameter tiers lists the tiers of the limiter, because their limits matter, too. For numbers that
// [New] refuses, Precision returns an error.
func (p Policy) Precision(tiers ...Policy) (time.Duration, error) {
	if err := checkTiers(tiers); err != nil {
		return 0, err
	}
	plan, err := policiesOf(p, tiers).plan(nil, terms{})
	if err != nil {
		return 0, err
	}
	tick := plan.Algorithm().Wait(0, 1)
	switch bucket, _ := plan.Algorithm().(*atomicbucket.TokenBucket); {
	case p.algorithm == AlgorithmTokenBucket && !bucket.Exact():
		return bucket.Wait(0, 2), nil
	case p.algorithm == AlgorithmSlidingLog, p.algorithm == AlgorithmFixedWindow && !p.aligned:
		if tick > 1 { // the rounding to whole ticks, and the tick of the request
			return (p.window+tick-1)/tick*tick + tick - p.window, nil
		}
	}
	return 0, nil
}
