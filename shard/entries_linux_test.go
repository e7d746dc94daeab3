//go:build !explore

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestASweepRestsAmongEntries as it does among slots, and gives up there when it is told to.
func TestASweepRestsAmongEntries(t *testing.T) {
	algorithm, err := atomicbucket.NewEntries(5, 5, time.Minute)
	require.NoError(t, err)
	plan, err := NewPlan(&algorithm, 0)
	require.NoError(t, err)
	cfg := Config{Plan: plan, Slots: 24, Shards: 1, ProbeWindow: 8, Start: start, Entries: 40}
	bytes, err := cfg.SharedBytes()
	require.NoError(t, err)
	memory := make([]byte, bytes)
	require.NoError(t, cfg.Begin(memory, nil))
	table, err := Map(cfg, Shared{Memory: memory, Owner: ownerOf{1, nil}, Build: func([]uint64) (*Plan, error) { return plan, nil }})
	require.NoError(t, err)
	require.Equal(t, Admitted, table.Take(table.Find(1), start, 2, 0).Verdict)
	table.chunk = 8
	rests := 0
	assert.True(t, table.Sweep(start, func() bool { rests++; return true }))
	assert.Equal(t, 40/8+1, rests, "and one among slots")
	assert.False(t, table.Sweep(start+int64(time.Minute), func() bool { return false }))
	assert.Zero(t, table.Stats().Forgotten)
	assert.True(t, table.Sweep(start+int64(time.Minute), nil))
	assert.EqualValues(t, 2, table.Stats().Forgotten)
	assert.Zero(t, table.Occupancy().Live)
}
