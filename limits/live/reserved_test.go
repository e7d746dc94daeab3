package live_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits/live"
)

// TestALowerLimitWhileSomebodyWaits: while a reservation waits, only the part of a debt without room in the next
// limiter stays.
func TestALowerLimitWhileSomebodyWaits(t *testing.T) {
	const many = 100
	clock := testclock.New()
	limiter := live.New(newLimiter(t, clock, hourly(many), engine.MaxKeys(1)))
	for range many {
		require.True(t, take(limiter, "a", 0))
	}
	_, _, err := limiter.Reserve(limiter.Key("a"), 1, time.Hour)
	require.NoError(t, err)
	for i, n := range []uint64{3, many} {
		next := replace(t, limiter, newLimiter(t, clock, hourly(n), engine.MaxKeys(500)))
		limiter.Release()
		limiter = next
		require.False(t, take(limiter, "a", 0), i)
	}
}
