package shard

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestASweepCoversEveryOrder (I2, R11): after a sweep has lowered the probe bound, a search still finds each remaining
// key, whatever its order. Otherwise a key whose search starts at a later slot of the line would get a second record.
func TestASweepCoversEveryOrder(t *testing.T) {
	const keys = 2 * lineSlots
	for order := range uint64(lineSlots) {
		for stays := range uint64(keys) {
			// Fixed windows, because for token buckets Hit reads more slots than the bound covers.
			plan, err := NewPlan(algorithmsOfFive(t)["fixed"], 0)
			require.NoError(t, err)
			table := newTable(t, 32, keys, func(c *Config) { c.Plan, c.Overflow = plan, Refuse })
			require.EqualValues(t, 1, table.stride, "the bound is in slots")
			step := ^uint64(0)/(table.homes*lineSlots) + 1
			key := func(i uint64) Place { return table.Find((order*step+step/2)&^(1<<30-1) + i<<25) }
			for i := range uint64(keys) {
				require.Equal(t, order, key(i).order())
				require.Equal(t, Admitted, table.TakeAt(key(i), start, start, 5, TierQuota(0), nil).Verdict)
			}
			for i := range uint64(keys) {
				if i != stays {
					require.True(t, table.Reset(key(i)))
				}
			}
			for range 3 {
				require.True(t, table.Sweep(start, nil))
				if v := table.TakeAt(key(stays), start, start, 1, TierQuota(0), nil).Verdict; v != Refused {
					t.Fatalf("broken: R11: key %d of order %d has lost its record: %v", stays, order, v)
				}
			}
		}
	}
}
