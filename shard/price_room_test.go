//go:build !explore

package shard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestAnOfferForWhichThereIsNoRoom (I5, R27): a call that meets an offer of another, at which a record has no room for
// what it owes, makes it an offer for another state, and ends.
func TestAnOfferForWhichThereIsNoRoom(t *testing.T) {
	algorithm, err := atomicbucket.NewTicks(1 << 51)
	require.NoError(t, err)
	quick, slow := atomicbucket.Quota{Token: 1000, Tokens: 200}, atomicbucket.Quota{Token: 1 << 44, Tokens: 1 << 7}
	other := atomicbucket.Quota{Token: 2000, Tokens: 400}
	plan, err := NewPlan(&algorithm, 0, quick, slow, other)
	require.NoError(t, err)
	table, err := New(Config{Plan: plan, Slots: 16, Shards: 1, ProbeWindow: 16, Start: start})
	require.NoError(t, err)
	p := table.Find(1)
	require.Equal(t, Admitted, table.TakeAt(p, start, start, 200, TierQuota(1), nil).Verdict)
	record, _, sl := table.record(p)
	_, offered := record.Ring.Offer(record.State, slow.Token, &sl.state)
	require.True(t, offered)
	require.Equal(t, Admitted, table.TakeAt(p, start, start, 1, TierQuota(3), nil).Verdict)
	price, known := table.LastPrice(p)
	require.True(t, known)
	require.Equal(t, other.Token, price)
}
