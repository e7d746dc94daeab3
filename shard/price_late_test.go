//go:build !explore

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestALateCallAfterAHigherPrice (R27): when a record gets a higher price, the watermark is at the time at which its
// tokens were counted: what came back at the lower price before is not counted at the higher one.
func TestALateCallAfterAHigherPrice(t *testing.T) {
	algorithm, err := atomicbucket.NewTicks(480 * time.Hour)
	require.NoError(t, err)
	of := func(token time.Duration) atomicbucket.Quota {
		return atomicbucket.Quota{Token: uint64(token), Tokens: 100}
	}
	const fast, slow, later = time.Millisecond, time.Second, int64(50 * time.Millisecond)
	plan, err := NewPlan(&algorithm, 0, of(fast))
	require.NoError(t, err)
	table, err := New(Config{Plan: plan, Slots: 16, Shards: 1, ProbeWindow: 16, Start: start})
	require.NoError(t, err)
	p, under := table.Find(1), func(token time.Duration) Quota { return table.Plan().NewQuota(of(token)) }
	require.Equal(t, Admitted, table.TakeAt(p, start, start, 100, under(fast), nil).Verdict)
	require.Equal(t, Admitted, table.TakeAt(p, start+later, start+later, 1, under(slow), nil).Verdict)
	o := table.TakeAt(p, start, start, 48, under(slow), nil) // a call whose clock is late
	require.Equal(t, Admitted, o.Verdict)
	require.Equal(t, start+later, o.At, "at its own time the key has nothing")
}
