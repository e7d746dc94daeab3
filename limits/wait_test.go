package limits_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
)

// patient returns a limit with a MaxWait.
func patient(t testing.TB, name string, p engine.Policy) limits.Limit[int] {
	t.Helper()
	l, err := engine.New(p, engine.MaxKeys(10), engine.ClockFunc(time.Now))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return limits.Limit[int]{Name: name, Limiter: l, Key: limits.Everyone[int], MaxWait: time.Minute,
		Cost: func(n int) uint64 { return uint64(n) }}
}

// TestRequestsThatWaitGoWithinEachLimit: requests that waited for one limit continue only as fast as another limit
// admits them.
func TestRequestsThatWaitGoWithinEachLimit(t *testing.T) {
	for name, apart := range map[string]time.Duration{"come together": 0, "come one by one": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				quick := patient(t, "quick", engine.TokenBucket(engine.PerSecond(1), 1))
				refill := patient(t, "refill", engine.BatchRefill(10, 20*time.Second, 10))
				refill.Limiter.Charge(refill.Limiter.KeyUint64(0), 10)
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

// TestAWaitThatAnotherLimitEnds: if another limit has no tokens when a request's turn comes, the request takes nothing.
func TestAWaitThatAnotherLimitEnds(t *testing.T) {
	c := testclock.New()
	strict, first := inMemory(t, c, "strict", 1)
	line, second := inMemory(t, c, "line", 1)
	second.MaxWait = time.Minute
	key := line.KeyUint64(0)
	line.TakeKey(key, 1)
	s, err := limits.New([]limits.Limit[int]{first, second}, limits.Options[int]{Pause: func(ctx context.Context, d time.Duration) error {
		assert.Equal(t, uint64(1), strict.Peek(key, 1).Remaining, "it takes nothing while it waits")
		strict.TakeKey(key, 1)
		c.Advance(d)
		strict.TakeKey(key, 1)
		return nil
	}})
	require.NoError(t, err)
	res := s.Decide(t.Context(), 0)
	assert.Equal(t, limits.Limited, res.Verdict())
	assert.Equal(t, []limits.Outcome{limits.Refused, limits.NotTaken}, outcomes(&res))
	assert.True(t, line.Peek(key, 1).Allowed)
	assert.Zero(t, s.Waiting())
}

// TestATurnWithoutAWaitThatAnotherLimitEnds: if another limit refuses a request that does not have to wait in line, the
// request takes nothing.
func TestATurnWithoutAWaitThatAnotherLimitEnds(t *testing.T) {
	c := testclock.New()
	strict, first := inMemory(t, c, "strict", 1)
	reads := -100
	line, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(10), engine.ClockFunc(func() time.Time {
		if reads++; reads == 2 { // the limit has refused the request, which takes its place in line now
			c.Advance(time.Second)
			strict.TakeKey(strict.KeyUint64(0), 1)
		}
		return c.Now()
	}))
	require.NoError(t, err)
	defer line.Close()
	second := limits.Limit[int]{Name: "line", Limiter: line, Key: limits.Everyone[int], MaxWait: time.Minute}
	line.TakeKey(line.KeyUint64(0), 1)
	reads = 0
	s, _ := newSet(t, first, second)
	res := s.Decide(t.Context(), 0)
	assert.Equal(t, limits.Limited, res.Verdict())
	assert.True(t, line.Peek(line.KeyUint64(0), 1).Allowed)
	assert.Zero(t, s.Waiting())
}

// TestAKeyWithoutRoomDoesNotWait: a request for whose key the table has no room does not wait.
func TestAKeyWithoutRoomDoesNotWait(t *testing.T) {
	for _, p := range []engine.Policy{engine.FixedWindow(1, time.Minute), engine.TokenBucket(engine.Per(1, time.Minute), 1)} {
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
