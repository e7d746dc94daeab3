package limits_test

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
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limitertest/check"
	"github.com/weir-go/weir/limits"
)

// patient is a limit that requests wait for, by the clock of a bubble.
func patient(t testing.TB, name string, p engine.Policy) limits.Limit[int] {
	t.Helper()
	l, err := engine.New(p, engine.MaxKeys(10), engine.ClockFunc(time.Now))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return limits.Limit[int]{Name: name, Limiter: l, Key: limits.Everyone[int], MaxWait: time.Minute,
		Cost: func(n int) uint64 { return uint64(n) }}
}

// TestRequestsThatWaitGoWithinEachLimit: ten requests wait for the same refill of one limit. They go as another limit
// admits them then, whether they found tokens of it when they came or had to wait for those, too.
func TestRequestsThatWaitGoWithinEachLimit(t *testing.T) {
	for name, apart := range map[string]time.Duration{"come together": 0, "come one by one": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				quick := patient(t, "quick", engine.TokenBucket(engine.PerSecond(1), 1))
				refill := patient(t, "refill", engine.BatchRefill(10, 20*time.Second, 10))
				refill.Limiter.ChargeKey(refill.Limiter.KeyUint64(0), 10)
				s, _ := newSet(t, quick, refill)
				begin, went := time.Now(), map[time.Duration]int{}
				var mu sync.Mutex
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						res := s.Decide(t.Context(), 1)
						mu.Lock()
						defer mu.Unlock()
						assert.True(t, res.Allowed())
						went[time.Since(begin)]++
					})
					time.Sleep(apart)
					synctest.Wait()
				}
				all.Wait()
				want := map[time.Duration]int{}
				for i := range 10 {
					want[20*time.Second+time.Duration(i)*time.Second] = 1
				}
				assert.Equal(t, want, went)
				assert.Zero(t, s.Waiting())
			})
		})
	}
}

// TestNoLimitIsExceededWhereRequestsWait: in random courses of requests with other costs, some of which go away, each
// limit admits what it promises by the times at which requests go on.
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

// randomWaits sends a hundred requests to two or three limits, and returns how many were served.
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
	s, _ := newSet(t, list...)
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

// TestAWaitThatAnotherLimitEnds: what admitted the request when it came is used up when its turn has come. It is
// refused, and has taken nothing.
func TestAWaitThatAnotherLimitEnds(t *testing.T) {
	c := testclock.New()
	strict, first := inMemory(t, c, "strict", 1)
	line, second := inMemory(t, c, "line", 1)
	second.MaxWait = time.Minute
	key := line.KeyUint64(0)
	line.TakeKey(key, 1)
	s, err := limits.New([]limits.Limit[int]{first, second}, limits.Options[int]{Pause: func(ctx context.Context, d time.Duration) error {
		assert.Equal(t, uint64(1), strict.PeekKey(key, 1).Remaining, "it takes nothing while it waits")
		strict.TakeKey(key, 1)
		c.Advance(d)
		strict.TakeKey(key, 1)
		return nil
	}})
	require.NoError(t, err)
	res := s.Decide(t.Context(), 0)
	assert.Equal(t, limits.Limited, res.Verdict())
	assert.Equal(t, []limits.Outcome{limits.Refused, limits.NotTaken}, outcomes(&res))
	assert.True(t, line.PeekKey(key, 1).Allowed)
	assert.Zero(t, s.Waiting())
}

// TestAKeyWithoutRoomDoesNotWait: nothing is known that would let it in.
func TestAKeyWithoutRoomDoesNotWait(t *testing.T) {
	for _, p := range []engine.Policy{engine.FixedWindow(1, time.Minute), engine.TokenBucket(engine.PerMinute(1), 1)} {
		synctest.Test(t, func(t *testing.T) {
			l, err := engine.New(p, engine.MaxKeys(1), engine.Overflow(engine.Refuse), engine.ClockFunc(time.Now))
			require.NoError(t, err)
			defer l.Close()
			s, _ := newSet(t, limits.Limit[int]{Name: "full", Limiter: l, MaxWait: time.Hour,
				Key: func(h limits.Hasher, n int) (engine.Key, bool) { return h.KeyUint64(uint64(n)), true }})
			refused := 0
			for i := range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if res := s.Decide(ctx, i); !res.Allowed() {
					refused++
				}
				cancel()
			}
			assert.Positive(t, refused)
			assert.Zero(t, s.Waiting())
		})
	}
}
