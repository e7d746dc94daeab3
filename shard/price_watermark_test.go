package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// priced returns a table whose records have prices, the place of a key in it, and a function for quotas of 100 tokens
// with a given price. The parameter usual is the plan's own price.
func priced(t *testing.T, usual time.Duration) (table *Table, p Place, under func(token time.Duration) Quota) {
	algorithm, err := atomicbucket.NewTicks(480 * time.Hour)
	require.NoError(t, err)
	of := func(token time.Duration) atomicbucket.Quota {
		return atomicbucket.Quota{Token: uint64(token), Tokens: 100}
	}
	plan, err := NewPlan(&algorithm, 0, of(usual))
	require.NoError(t, err)
	table, err = New(Config{Plan: plan, Slots: 16, Shards: 1, ProbeWindow: 16, Start: start})
	require.NoError(t, err)
	return table, table.Find(1), func(token time.Duration) Quota { return table.Plan().NewQuota(of(token)) }
}

// TestALateCallAfterAHigherPrice (I1, R27): when a record gets a higher price, the watermark moves to the time at which
// its tokens were counted. Otherwise a late call would count, at the higher price, tokens that came back at the lower
// one.
func TestALateCallAfterAHigherPrice(t *testing.T) {
	const fast, slow, later = time.Millisecond, time.Second, int64(50 * time.Millisecond)
	table, p, under := priced(t, fast)
	require.Equal(t, Admitted, table.TakeAt(p, start, start, 100, under(fast), nil).Verdict)
	require.Equal(t, Admitted, table.TakeAt(p, start+later, start+later, 1, under(slow), nil).Verdict)
	o := table.TakeAt(p, start, start, 48, under(slow), nil) // a call whose clock is late
	if require.Equal(t, Admitted, o.Verdict); o.At != start+later {
		t.Error("broken: I1: at its own time the key has nothing")
	}
}

// TestALateCallAfterAnothersHigherPrice (I1, R27): as TestALateCallAfterAHigherPrice, with a higher price that another
// call has offered.
func TestALateCallAfterAnothersHigherPrice(t *testing.T) {
	const usual, fast, slow, later = time.Millisecond, time.Microsecond, time.Second, int64(50 * time.Millisecond)
	table, p, under := priced(t, usual)
	require.Equal(t, Admitted, table.TakeAt(p, start, start, 100, under(usual), nil).Verdict)
	record, _, sl := table.record(p)
	_, offered := record.Ring.Offer(record.State, uint64(slow), &sl.state)
	require.True(t, offered)
	require.Equal(t, Admitted, table.TakeAt(p, start+later, start+later, 1, under(fast), nil).Verdict)
	price, known := table.LastPrice(p)
	require.True(t, known)
	require.EqualValues(t, slow, price)
	o := table.TakeAt(p, start, start, 40, under(slow), nil) // a call whose clock is late
	if require.Equal(t, Admitted, o.Verdict); o.At != start+later {
		t.Error("broken: I1: at its own time the key has nothing")
	}
}
