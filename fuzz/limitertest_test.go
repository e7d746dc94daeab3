package fuzz

import (
	"context"
	"math"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testrace"
	"github.com/weir-go/weir/limitertest"
)

// policies lists the promises, each with a policy of package engine that keeps the promise.
var policies = []struct {
	promise limitertest.Promise
	of      func(limitertest.Limit) engine.Policy
}{
	{limitertest.Bucket, func(l limitertest.Limit) engine.Policy {
		return engine.TokenBucket(engine.Per(float64(l.Tokens), l.Per), l.Burst)
	}},
	{limitertest.BatchRefill, func(l limitertest.Limit) engine.Policy { return engine.BatchRefill(l.Tokens, l.Per, l.Burst) }},
	{limitertest.FixedWindow, func(l limitertest.Limit) engine.Policy { return engine.FixedWindow(l.Tokens, l.Per) }},
	{limitertest.AlignedWindow, func(l limitertest.Limit) engine.Policy { return engine.FixedWindow(l.Tokens, l.Per).Aligned() }},
	{limitertest.SlidingEstimate, func(l limitertest.Limit) engine.Policy { return engine.SlidingWindow(l.Tokens, l.Per) }},
	{limitertest.SlidingExact, func(l limitertest.Limit) engine.Policy { return engine.SlidingLog(l.Tokens, l.Per) }},
}

// An engineLimiter adapts a limiter of package engine to limitertest, and drops it at the end of its test. Otherwise
// thousands of tables would not fit into 32-bit address space.
type engineLimiter struct{ *engine.Limiter }

// decision refuses a negative cost, because the engine cannot represent it. For any other cost, it calls the function
// take.
func decision(n int64, take func(uint64) engine.Decision) limitertest.Decision {
	if n < 0 {
		return limitertest.Decision{RetryAfter: -1}
	}
	d := take(uint64(n))
	return limitertest.Decision{Allowed: d.Allowed, RetryAfter: d.RetryAfter}
}

func (l engineLimiter) Take(key string, n int64) limitertest.Decision {
	return decision(n, func(n uint64) engine.Decision { return l.Limiter.Take(key, n) })
}

func (l engineLimiter) TakeAt(key string, n int64, at time.Time) limitertest.Decision {
	return decision(n, func(n uint64) engine.Decision { return l.Limiter.TakeAt(l.Key(key), n, at) })
}

func (l engineLimiter) Refund(key string, n int64) {
	if n > 0 {
		l.Limiter.Refund(l.Limiter.Key(key), uint64(n))
	}
}

func (l engineLimiter) Reserve(key string, n int64) (time.Duration, func(), bool) {
	r, delay, err := l.Limiter.Reserve(l.Limiter.Key(key), uint64(n), math.MaxInt64)
	if err != nil {
		return 0, nil, false
	}
	return delay, func() { r.Release() }, true
}

func (l engineLimiter) Wait(ctx context.Context, key string, n int64) error {
	return l.Limiter.Wait(ctx, key, uint64(n))
}

// A withoutTurns adapts a limiter whose algorithm has no reservations.
type withoutTurns struct{ all *engineLimiter }

func (l withoutTurns) Take(key string, n int64) limitertest.Decision { return l.all.Take(key, n) }
func (l withoutTurns) Refund(key string, n int64)                    { l.all.Refund(key, n) }
func (l withoutTurns) TakeAt(key string, n int64, at time.Time) limitertest.Decision {
	return l.all.TakeAt(key, n, at)
}

// newEngine returns a limiter, or nil if the policy is impossible or needs too much memory.
func newEngine(tb testing.TB, policy engine.Policy, options ...engine.Option) limitertest.Limiter {
	const keys = 1 << 14 // a 32-bit program has addresses for 4 GiB, and several limiters exist at the same time
	if bytes, err := engine.Bytes(policy, engine.MaxKeys(keys)); err != nil || bytes > 1<<26 {
		return nil
	}
	l, err := engine.New(policy, append(options, engine.MaxKeys(keys))...)
	require.NoError(tb, err)
	limiter := &engineLimiter{l}
	tb.Cleanup(func() {
		require.NoError(tb, l.Close())
		limiter.Limiter = nil
	})
	if policy.Algorithm() == engine.AlgorithmTokenBucket {
		return limiter
	}
	return withoutTurns{limiter}
}

// TestTheEngineKeepsItsPromises tests every algorithm with package limitertest, in memory.
func TestTheEngineKeepsItsPromises(t *testing.T) {
	for i, p := range policies {
		t.Run(p.promise.String(), func(t *testing.T) {
			config := engineConfig(t, p.promise, p.of, func(testing.TB) []engine.Option { return nil })
			if testing.Short() {
				config.Limits = short(someLimits)
				if testrace.Enabled {
					config.Skip["Leak"] = "it takes minutes under the race detector"
				} else if i > 0 {
					config.Skip["Leak"] = "it takes longer than all others together, and memory is that of the same table"
				}
			}
			limitertest.Test(t, config)
		})
	}
}

// someLimits has a few limits, for algorithms that another test has tested with all limits.
var someLimits = []limitertest.Limit{
	{Tokens: 10, Per: time.Second, Burst: 20}, {Tokens: 5, Per: 24 * time.Hour, Burst: 5},
	{Tokens: 7, Per: 3 * time.Second, Burst: 5}, {Tokens: 1000, Per: time.Second, Burst: 50},
}

// TestASharedTableKeepsItsPromises tests every algorithm in a table in a file with package limitertest. The log is left
// out, because a file cannot have a log.
func TestASharedTableKeepsItsPromises(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Shared is for Linux")
	}
	for _, p := range short(policies[:len(policies)-1]) {
		t.Run(p.promise.String(), func(t *testing.T) {
			config := engineConfig(t, p.promise, p.of, func(tb testing.TB) []engine.Option {
				// The machine's monotonic clock is outside the synctest bubble, so edges of windows would be off by
				// nanoseconds.
				return []engine.Option{engine.Shared(filepath.Join(tb.TempDir(), "limits")), engine.ClockFunc(time.Now)}
			})
			config.Limits = short(someLimits)
			limitertest.Test(t, config)
		})
	}
}

// short returns only the first element in a short run, because each element's test takes many seconds, and a minute
// under the race detector.
func short[T any](all []T) []T {
	if testing.Short() {
		return all[:1]
	}
	return all
}

func engineConfig(t *testing.T, promise limitertest.Promise, of func(limitertest.Limit) engine.Policy,
	options func(testing.TB) []engine.Option) limitertest.Config {
	late := func(l limitertest.Limit) time.Duration {
		precision, err := of(l).Precision()
		require.NoError(t, err)
		return precision
	}
	return limitertest.Config{
		Promise: promise,
		Keys:    2000,
		LateBy:  late,
		New: func(tb testing.TB, l limitertest.Limit) limitertest.Limiter {
			if of(l).Check() != nil || promise == limitertest.FixedWindow && late(l) > 0 {
				return nil // the windows would be a little longer than promised
			}
			return newEngine(tb, of(l), options(tb)...)
		},
		Skip: map[string]string{
			"Cancel/Order": "Limiter.Reserve: a reservation that others stand behind is lost",
		},
	}
}

// A lined limiter makes its reservations with Queue.
type lined struct{ engineLimiter }

func (l lined) Reserve(key string, n int64) (time.Duration, func(), bool) {
	turn, delay, err := l.Queue(l.Limiter.Key(key), uint64(n), math.MaxInt64)
	if err != nil {
		return 0, nil, false
	}
	return delay, turn.Leave, true
}

// TestThoseBehindMoveUp: if callers in line give up, in any order, the callers behind them lose nothing.
func TestThoseBehindMoveUp(t *testing.T) {
	skip := map[string]string{"Cancel/Reserve": "a turn may come sooner than it was told, which the subtest does not look for"}
	for _, name := range []string{"Burst", "Bound", "Conforming", "Keys", "Forget", "Costs", "Retry", "Clock", "Linear", "Real", "Leak"} {
		skip[name] = "TestTheEngineKeepsItsPromises has it"
	}
	limitertest.Test(t, limitertest.Config{Promise: limitertest.Bucket, Limits: someLimits, Skip: skip,
		New: func(tb testing.TB, l limitertest.Limit) limitertest.Limiter {
			return lined{*newEngine(tb, engine.TokenBucket(engine.Per(float64(l.Tokens), l.Per), l.Burst)).(*engineLimiter)}
		}})
}
