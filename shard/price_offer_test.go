//go:build !explore

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestALateCallAfterAnothersHigherPrice (R27): the same where the price is one that another call has offered.
func TestALateCallAfterAnothersHigherPrice(t *testing.T) {
	algorithm, err := atomicbucket.NewTicks(480 * time.Hour)
	require.NoError(t, err)
	of := func(token time.Duration) atomicbucket.Quota {
		return atomicbucket.Quota{Token: uint64(token), Tokens: 100}
	}
	const usual, fast, slow, later = time.Millisecond, time.Microsecond, time.Second, int64(50 * time.Millisecond)
	plan, err := NewPlan(&algorithm, 0, of(usual))
	require.NoError(t, err)
	table, err := New(Config{Plan: plan, Slots: 16, Shards: 1, ProbeWindow: 16, Start: start})
	require.NoError(t, err)
	p, under := table.Find(1), func(token time.Duration) Quota { return table.Plan().NewQuota(of(token)) }
	require.Equal(t, Admitted, table.TakeAt(p, start, start, 100, under(usual), nil).Verdict)
	record, _, sl := table.record(p)
	_, offered := record.Ring.Offer(record.State, uint64(slow), &sl.state)
	require.True(t, offered)
	require.Equal(t, Admitted, table.TakeAt(p, start+later, start+later, 1, under(fast), nil).Verdict)
	price, known := table.LastPrice(p)
	require.True(t, known)
	require.EqualValues(t, slow, price)
	o := table.TakeAt(p, start, start, 40, under(slow), nil) // a call whose clock is late
	require.Equal(t, Admitted, o.Verdict)
	require.Equal(t, start+later, o.At)
}
