package shares

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/engine"
)

func TestInterval(t *testing.T) {
	for want, policies := range map[time.Duration][]engine.Policy{
		0:                       {engine.TokenBucket(engine.PerSecond(1), 16), engine.FixedWindow(16, time.Hour), engine.TokenBuckets(time.Hour)},
		6400 * time.Millisecond: {engine.FixedWindow(5, 2*time.Second), engine.SlidingLog(5, 2*time.Second), engine.TokenBucket(engine.Per(5, 2*time.Second), 3)},
	} {
		for _, p := range policies {
			assert.Equal(t, want, Interval(p, 16), "%v", p)
		}
	}
	assert.EqualValues(t, 1<<61, Interval(engine.FixedWindow(1, 365*24*time.Hour), 100_000), "no overflow")
}

// After each loss of the store, a key gets one token per interval, and has at most one at a time.
func TestSlow(t *testing.T) {
	s, yes := NewSlow[string](1), func() bool { return true }
	assert.EqualValues(t, 1, s.Take("k", 100, 109, 10, yes))
	assert.Zero(t, s.Take("k", 100, 110, 10, func() bool { return false }), "there, and not spent")
	assert.Zero(t, s.Take("k", 100, 145, 10, yes))
	assert.EqualValues(t, 10, s.Take("k", 100, 145, 10, yes), "one is all that it keeps")
	assert.EqualValues(t, 3, s.Take("k", 100, 152, 10, yes))
	assert.EqualValues(t, 8, s.Take("k", 150, 152, 10, yes), "another loss")
	assert.EqualValues(t, 10, s.Take("other", 100, 500, 10, yes), "one key too many")
	s.Drop(func(string) bool { return false })
	assert.Positive(t, s.Take("other", 100, 500, 10, yes))
	s.Drop(func(string) bool { return true })
	assert.Zero(t, s.Take("other", 100, 500, 10, yes), "there is room")
	s.DropKey("other")
	assert.Zero(t, s.Take("k", 100, 500, 10, yes))
}

// A token is spent only once, even if many goroutines try to spend it.
func TestSlowIsSpentOnce(t *testing.T) {
	s := NewSlow[int](1)
	var spent atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for now := range int64(10_000) {
				s.Take(0, 0, now, 100, func() bool { spent.Add(1); return true })
			}
		})
	}
	all.Wait()
	assert.LessOrEqual(t, spent.Load(), int64(100))
	assert.Positive(t, spent.Load())
}
