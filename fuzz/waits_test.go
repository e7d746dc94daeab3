package fuzz

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limitertest/check"
	"github.com/weir-go/weir/limits"
)

// patient returns a limit for which requests wait. Its clock is the clock of a synctest bubble.
func patient(t testing.TB, name string, p engine.Policy) limits.Limit[int] {
	t.Helper()
	l, err := engine.New(p, engine.MaxKeys(10), engine.ClockFunc(time.Now))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return limits.Limit[int]{Name: name, Limiter: l, Key: limits.Everyone[int], MaxWait: time.Minute,
		Cost: func(n int) uint64 { return uint64(n) }}
}

// TestNoLimitIsExceededWhereRequestsWait: requests with various costs wait for limits, and some give up. No limit may
// admit more than it promises, if a request counts when it continues.
func TestNoLimitIsExceededWhereRequestsWait(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	served := 0
	for seed := range rounds {
		synctest.Test(t, func(t *testing.T) { served += randomWaits(t, uint64(seed)) })
	}
	assert.Greater(t, served, 20*rounds)
}

func randomWaits(t *testing.T, seed uint64) (served int) {
	random := rand.New(rand.NewPCG(seed, 1))
	var list []limits.Limit[int]
	var checkers []*check.Checker
	for i := range 2 + random.IntN(2) {
		per, burst := time.Duration(1+random.IntN(5))*time.Second, 3+random.Uint64N(4)
		policy, limit, promise := engine.TokenBucket(engine.Per(1, per), burst), check.Limit{Tokens: 1, Per: per, Burst: burst}, check.Bucket
		if random.IntN(4) == 0 {
			policy, limit, promise = engine.SlidingLog(burst, time.Duration(burst)*per), check.Limit{Tokens: burst, Per: time.Duration(burst) * per}, check.SlidingExact
		}
		c, err := check.New(limit, promise)
		require.NoError(t, err)
		list, checkers = append(list, patient(t, fmt.Sprint("limit", i), policy)), append(checkers, c)
	}
	s, err := limits.New(list, limits.Options[int]{})
	require.NoError(t, err)
	begin := time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 100 {
		n, ctx, cancel := 1+random.IntN(3), context.Context(nil), context.CancelFunc(nil)
		if ctx, cancel = context.WithCancel(t.Context()); random.IntN(3) == 0 {
			time.AfterFunc(time.Duration(random.Int64N(int64(20*time.Second))), cancel)
		}
		all.Go(func() {
			defer cancel()
			res := s.Decide(ctx, n)
			if !res.Allowed() {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			served++
			for _, c := range checkers {
				c.Add(check.Event{At: time.Since(begin), N: int64(n), Allowed: true})
			}
		})
		time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
	}
	all.Wait()
	for i, c := range checkers {
		require.Zero(t, c.Report().Excess, "seed %d, %s: %+v", seed, list[i].Name, c.Report())
	}
	require.Zero(t, s.Waiting())
	return served
}
