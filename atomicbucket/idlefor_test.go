package atomicbucket_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestIdleForCountsFromTheMomentOfIdleness: IdleFor grows with the time for which a record has been idle, even if the
// ticks in the payload wrap around in between. An insert uses it to claim the slot that has been idle longest.
func TestIdleForCountsFromTheMomentOfIdleness(t *testing.T) {
	bucket, err := atomicbucket.NewTokenBucket(1, time.Second, 10)
	require.NoError(t, err)
	fixed, err := atomicbucket.NewFixedWindow(100, 100, time.Minute, false)
	require.NoError(t, err)
	sliding, err := atomicbucket.NewSlidingWindow(1<<24-1, 1<<24-1, 15*time.Second)
	require.NoError(t, err)
	log, err := atomicbucket.NewSlidingLog(5, 5, time.Minute)
	require.NoError(t, err)
	inFlight, err := atomicbucket.NewConcurrency(5, 5, 15*time.Second)
	require.NoError(t, err)
	const second = int64(time.Second)
	for name, c := range map[string]struct {
		algorithm atomicbucket.Algorithm
		circle    int64 // length of the payload's circle, in nanoseconds
		lasts     int64 // nanoseconds until a record is idle after a take of three tokens at the start of a window
		unit      int64 // nanoseconds per unit of the result
		offset    uint64
	}{
		"token bucket":   {&bucket, 1 << 54, 3 * second, 1, 0},
		"fixed window":   {&fixed, 1 << 47, 60 * second, 1, 0},
		"sliding window": {&sliding, 64 * 15 * second, 30 * second, 15 * second, 2},
		"concurrency":    {&inFlight, 64 * 15 * second, 30 * second, 15 * second, 2},
		"log":            {&log, 1 << 48, 60 * second, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, before := range []int64{0, 30 * second, 120 * second} { // from the take to the circle's end
				at := 3*c.circle - before
				cell := newCell(c.algorithm, at)
				require.True(t, cell.take(at, 3))
				for _, later := range []int64{0, 15 * second, 60 * second, 240 * second} {
					now := c.algorithm.Ticks(at + c.lasts + later)
					require.True(t, c.algorithm.Idle(cell.state, now), later)
					want := c.offset + uint64(later/c.unit)
					assert.Equal(t, want, c.algorithm.IdleFor(cell.state, now), "%d before the end of the circle, idle for %d", before, later)
				}
			}
		})
	}
}
