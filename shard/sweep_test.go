package shard

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSweepEpoch (I7): in a table of which half holds records, a sweep of an epoch frees those that were idle at the
// one before, and no others; in an emptier one those that have been idle for a skew.
func TestSweepEpoch(t *testing.T) {
	for name, c := range map[string]struct {
		keys  uint64
		freed []uint64 // by sweeps that come 6 s, 8 s and a skew after the requests; each key is full again after 5 s
	}{
		"a table that is three quarters full": {24, []uint64{0, 24, 24}},
		"a table that is a quarter full":      {8, []uint64{0, 0, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable(t, 1, 32, nil)
			for key := range c.keys {
				assert.Equal(t, Admitted, take(table, 1+key, start, 5))
			}
			assert.True(t, table.SweepEpoch(start, nil))
			assert.Equal(t, c.keys, table.Stats().Live)
			skew := int64(table.Plan().skew)
			for i, at := range []int64{start + 6*second, start + 8*second, start + 6*second + skew} {
				assert.True(t, table.SweepEpoch(at, nil))
				assert.Equal(t, c.freed[i], table.Stats().Reclaimed, "sweep %d", i)
				assert.Zero(t, table.Stats().Live, "an idle record is not counted as live")
			}
			assert.True(t, table.Sweep(start+6*second+skew, nil))
			assert.Equal(t, c.keys, table.Stats().Reclaimed, "a sweep frees all that is idle")
		})
	}
}
