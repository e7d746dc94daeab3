package engine

import (
	"time"

	"github.com/weir-go/weir/atomicbucket"
)

// Precision returns the largest delay that rounding adds to the wait of a request, by the limiter's own clock. It is 0
// for a policy that is exact to the nanosecond, as most are: see [TokenBucket], [FixedWindow] and [SlidingLog]. No
// request is admitted early, except up to a tick by [TokenBuckets] of more than 26 days. Pass the limiter's tiers, too,
// because the delay depends on their limits. For numbers that [New] refuses, Precision returns an error.
func (p Policy) Precision(tiers ...Policy) (time.Duration, error) {
	if err := checkTiers(tiers); err != nil {
		return 0, err
	}
	plan, err := newPolicySet(p, tiers).plan(nil, terms{})
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
