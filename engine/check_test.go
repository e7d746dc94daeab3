package engine_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

var checked = [][]engine.Policy{
	{engine.TokenBucket(engine.PerSecond(100), 200)},
	{engine.TokenBucket(engine.PerSecond(100), 200), engine.TokenBucket(engine.PerSecond(1000), 5)},
	{engine.TokenBucket(engine.PerSecond(97), 10), engine.TokenBucket(engine.PerSecond(1e9), 1<<32)},
	{engine.TokenBucket(engine.PerSecond(100), 0)},
	{engine.TokenBucket(engine.PerSecond(2e9), 5)},
	{engine.BatchRefill(10, time.Second, 100), engine.BatchRefill(10, time.Second, 7)},
	{engine.BatchRefill(10, time.Second, 100), engine.BatchRefill(11, time.Second, 7)},
	{engine.FixedWindow(10, time.Minute), engine.FixedWindow(1000, time.Minute)},
	{engine.FixedWindow(10, time.Minute), engine.FixedWindow(1000, time.Hour)},
	{engine.FixedWindow(1<<32, time.Microsecond)},
	{engine.SlidingWindow(10, time.Minute)},
	{engine.SlidingWindow(10, time.Minute).Aligned()},
	{engine.SlidingLog(10, time.Minute), engine.SlidingLog(100, time.Minute)},
	{engine.SlidingLog(4097, time.Minute)},
	{engine.Policy{}},
	append([]engine.Policy{engine.FixedWindow(10, time.Minute)}, make([]engine.Policy, 15)...),
}

// TestCheckIsWhatNewSays: Check and New return the same errors.
func TestCheckIsWhatNewSays(t *testing.T) {
	for _, p := range checked {
		l, err := engine.New(p[0], engine.MaxKeys(1), engine.Tiers(p[1:]...))
		if err == nil {
			l.Close()
		}
		assert.Equal(t, err, p[0].Check(p[1:]...), p)
	}
}

// TestBytesIsWhatNewHolds: Bytes is exact for small tables on the heap and for mapped ones.
func TestBytesIsWhatNewHolds(t *testing.T) {
	for _, p := range checked {
		for _, keys := range []int{1, 7, 1000, 157_284, 300_001} {
			bytes, err := engine.Bytes(p[0], engine.MaxKeys(keys), engine.Tiers(p[1:]...))
			if p[0].Check(p[1:]...) != nil {
				assert.Error(t, err)
				continue
			}
			require.NoError(t, err)
			if math.MaxInt == math.MaxInt32 && bytes > 1<<27 {
				continue // other tests may have used so many addresses that no gap is large enough
			}
			l, err := engine.New(p[0], engine.MaxKeys(keys), engine.Tiers(p[1:]...))
			require.NoError(t, err)
			assert.Equal(t, l.Stats().Bytes, bytes, "%v for %d keys", p, keys)
			l.Close()
		}
	}
	_, err := engine.Bytes(engine.FixedWindow(10, time.Minute), engine.MaxKeys(0))
	assert.ErrorContains(t, err, "MaxKeys(0)")
	_, err = engine.Bytes(engine.SlidingLog(4096, time.Minute), engine.MaxKeys(int(min(uint64(math.MaxInt), 1<<50))))
	assert.ErrorContains(t, err, "engine: MaxKeys(") // more memory than a machine can have
}

// TestCheckChangeIsWhatSetPolicySays: CheckChange and SetPolicy agree for every pair of policies.
func TestCheckChangeIsWhatSetPolicySays(t *testing.T) {
	for _, from := range checked {
		if from[0].Check(from[1:]...) != nil {
			assert.Error(t, engine.CheckChange(from, from))
			continue
		}
		for _, to := range append(checked, []engine.Policy{engine.SlidingLog(100, time.Hour),
			engine.SlidingLog(1, time.Hour)}) {
			l, err := engine.New(from[0], engine.MaxKeys(1), engine.Tiers(from[1:]...))
			require.NoError(t, err)
			assert.Equal(t, l.SetPolicy(to[0], to[1:]...), engine.CheckChange(from, to), "%v to %v", from, to)
			l.Close()
		}
	}
	assert.Error(t, engine.CheckChange(nil, nil))
}
