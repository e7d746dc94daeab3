//go:build explore

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestAConversionGoesByTheTier (I2, R24): a key under a tier keeps its tokens when that tier's price changes, and no
// other one does. It was charged there by a take, or by a charge behind a take under another tier.
func TestAConversionGoesByTheTier(t *testing.T) {
	algorithm, err := atomicbucket.NewTicks(480 * time.Hour)
	require.NoError(t, err)
	of := func(token time.Duration) atomicbucket.Quota {
		return atomicbucket.Quota{Token: uint64(token), Tokens: 100}
	}
	planOf := func(second time.Duration) *Plan {
		plan, err := NewPlan(&algorithm, 0, of(time.Second), of(second))
		require.NoError(t, err)
		return plan
	}
	for _, charges := range []bool{false, true} {
		table, err := New(Config{Plan: planOf(10 * time.Millisecond), Slots: 16, Shards: 1, ProbeWindow: 16, Start: start})
		require.NoError(t, err)
		p := table.Find(1)
		if charges {
			require.Equal(t, Admitted, table.TakeAt(p, start, start, 1, TierQuota(1), nil).Verdict)
			_, charged := table.Charge(p, start, start, 99, TierQuota(2), nil)
			require.EqualValues(t, 99, charged)
		} else {
			require.Equal(t, Admitted, table.TakeAt(p, start, start, 100, TierQuota(2), nil).Verdict)
		}
		table.Adopt(planOf(20*time.Millisecond), clockAt(start))
		if table.TakeAt(p, start, start, 1, TierQuota(2), nil).Verdict != Refused {
			t.Errorf("broken: I2: after a change of its price a tier forgave what was taken (charges: %v)", charges)
		}
	}
}
