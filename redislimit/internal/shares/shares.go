// Package shares defines a node's share of a limit: the tokens that the node may admit while it cannot reach the store.
package shares

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// maxLongest is the longest time that engine.TokenBuckets accepts.
const maxLongest = 365 * 24 * time.Hour

// OfQuota is [Of] for a quota of n tokens under p. The argument token is the time in which one token comes back. It is
// used only if p is [engine.TokenBuckets].
func OfQuota(p engine.Policy, n uint64, token time.Duration, divisor float64) (engine.Policy, error) {
	period := p.Rate().Period
	switch calendarPeriod, _, isCalendar := p.Calendar(); {
	case p.Longest() > 0:
		return Of(engine.TokenBucket(engine.Per(1, token), n), divisor)
	case isCalendar:
		zone, err := script.ZoneOf(p)
		if err != nil {
			return engine.Policy{}, err
		}
		return Of(engine.CalendarWindow(n, calendarPeriod, zone), divisor)
	case p.Algorithm() == engine.AlgorithmTokenBucket:
		return Of(engine.TokenBucket(p.Rate(), n), divisor)
	case p.IsAligned():
		return Of(engine.FixedWindow(n, period).Aligned(), divisor)
	case p.Algorithm() == engine.AlgorithmFixedWindow:
		return Of(engine.FixedWindow(n, period), divisor)
	}
	return Of(engine.SlidingWindow(n, period), divisor)
}

// Of returns a node's share of the policy p. The share is the same policy, with the rate and the limit divided by
// divisor, which is at least 1. It has at least one token.
func Of(p engine.Policy, divisor float64) (engine.Policy, error) {
	if longest := p.Longest(); longest > 0 { // a share of one token or more may fill more slowly, by the factor divisor
		return engine.TokenBuckets(time.Duration(min(float64(longest)*divisor, float64(maxLongest)))), nil
	}
	limit := max(uint64(float64(p.Limit())/divisor), 1)
	rate := p.Rate()
	switch p.Algorithm() {
	case engine.AlgorithmTokenBucket:
		return engine.TokenBucket(engine.Per(rate.Tokens/divisor, rate.Period), limit), nil
	case engine.AlgorithmFixedWindow:
		if calendarPeriod, _, ok := p.Calendar(); ok {
			zone, err := script.ZoneOf(p)
			return engine.CalendarWindow(limit, calendarPeriod, zone), err
		}
		share := engine.FixedWindow(limit, rate.Period)
		if p.IsAligned() {
			share = share.Aligned()
		}
		return share, nil
	case engine.AlgorithmSlidingWindow, engine.AlgorithmSlidingLog:
		// The share of a log is a sliding window, which stores only counts. So the loss of a store does not cost
		// memory, too.
		return engine.SlidingWindow(limit, rate.Period), nil
	}
	return engine.Policy{}, fmt.Errorf("%v cannot be shared", p)
}
