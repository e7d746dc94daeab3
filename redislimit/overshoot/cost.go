package overshoot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
)

// A Cost compares a decision of package redislimit that spends tokens in hand with a decision of package engine.
type Cost struct {
	Lease  float64 `json:"lease_ns"`  // median of the rounds, ns per redislimit.Limiter.Allow
	Engine float64 `json:"engine_ns"` // the same for engine.Limiter.Allow
	Ratio  float64 `json:"ratio"`     // median of the rounds' ratios
	Least  float64 `json:"least"`     // lowest ratio of all rounds
	Most   float64 `json:"most"`
	Rounds int     `json:"rounds"`
}

const batch = 10_000

// MeasureCost measures both limiters alternately, each for the given number of rounds, in this goroutine. Every
// decision must be an admission.
func MeasureCost(ctx context.Context, store *redislimit.Client, rounds int) (c Cost, err error) {
	if rounds < 1 {
		return c, fmt.Errorf("overshoot: %d rounds: want 1 at least", rounds)
	}
	const key = "192.0.2.1"
	policy := engine.TokenBucket(engine.PerSecond(1e6), 1_000_000)
	leased, err := redislimit.New(store, fmt.Sprintf("cost-%d", time.Now().UnixNano()), policy, redislimit.InMode(redislimit.Leased))
	if err != nil {
		return c, err
	}
	defer leased.Close()
	local, err := engine.New(policy)
	if err != nil {
		return c, err
	}
	defer local.Close()
	for deadline := time.Now().Add(5 * time.Second); leased.Stats().Held == 0; {
		leased.Allow(key)
		if time.Now().After(deadline) {
			return c, errors.New("overshoot: no lease within 5s")
		}
		time.Sleep(time.Millisecond)
	}
	var leases, locals, ratios []float64
	for range rounds {
		const batches = 20
		var leaseTime, engineTime time.Duration
		for range batches {
			elapsed, err := timedInHand(ctx, leased, key)
			if err != nil {
				return c, err
			}
			leaseTime += elapsed
			local.Reset(local.Key(key))
			elapsed, admitted := timed(local.Allow, key)
			if admitted != batch {
				return c, fmt.Errorf("overshoot: %d of %d of a full bucket", admitted, batch)
			}
			engineTime += elapsed
		}
		leases = append(leases, float64(leaseTime)/(batches*batch))
		locals = append(locals, float64(engineTime)/(batches*batch))
		ratios = append(ratios, float64(leaseTime)/float64(engineTime))
	}
	return Cost{median(leases), median(locals), median(ratios), slices.Min(ratios), slices.Max(ratios), rounds}, nil
}

// timedInHand measures the time of a batch of decisions that spend tokens in hand.
func timedInHand(ctx context.Context, leased *redislimit.Limiter, key string) (elapsed time.Duration, err error) {
	var admitted int
	for range 1000 {
		if err := leased.Refund(ctx, key, batch); err != nil { // into the tokens in hand
			return 0, err
		}
		if elapsed, admitted = timed(leased.Allow, key); admitted == batch {
			return elapsed, nil
		}
	}
	return 0, fmt.Errorf("overshoot: %d of %d with tokens in hand", admitted, batch)
}

func timed(allow func(string) bool, key string) (elapsed time.Duration, admitted int) {
	begin := time.Now()
	for range batch {
		if allow(key) {
			admitted++
		}
	}
	return time.Since(begin), admitted
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}
