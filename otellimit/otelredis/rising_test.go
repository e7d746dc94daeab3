package otelredis

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/redislimit"
)

// TestFailuresNeverFall: no reported counter falls, although a call that times out counts as a timeout a moment before
// it counts as a failure. If a counter falls, monitoring systems assume a restart from zero, and add the counter's
// complete value again.
func TestFailuresNeverFall(t *testing.T) {
	readings := store()
	of := func(failures, timeouts int64) (counts []uint64) {
		for _, r := range readings {
			if r.Name == "weir.store.failures" {
				counts = append(counts, r.Count(redislimit.Health{Failures: failures, Timeouts: timeouts}))
			}
		}
		return counts
	}
	assert.Equal(t, []uint64{1, 0}, of(0, 1), "before the first failure is counted")
	assert.Equal(t, []uint64{2, 3}, of(5, 2))
	assert.Equal(t, []uint64{3, 3}, of(5, 3), "the third timeout is no failure yet")
	assert.Equal(t, []uint64{3, 3}, of(6, 3))
	assert.Equal(t, []uint64{3, 4}, of(7, 3))

	assert.Equal(t, uint64(0), store()[2].Count(redislimit.Health{}), "another client counts for itself")
}
