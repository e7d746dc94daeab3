package engine

import (
	"time"

	"github.com/weir-go/weir/atomicbucket"
)

// Precision returns how late a limiter with the policy may be at most, on its own clock. A request that must wait by
// the policy's numbers waits up to that much longer. It never passes early, except by up to a tick of [TokenBuckets] of
// more than 26 days. 0 means exact to the nanosecond, which most policies are: see [TokenBucket], [FixedWindow] and
// [SlidingLog]. tiers are the tiers of the limiter, whose limits matter, too. Numbers that [New] refuses are errors.
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
		if tick > 1 { // whole ticks, and the tick in which the request was made
			return (p.window+tick-1)/tick*tick + tick - p.window, nil
		}
	}
	return 0, nil
}
