package shard

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// largestProbeBound returns the largest probe bound of any home, in slots: never less than a stride.
func largestProbeBound(t *Table) (most uint64) {
	for i := range t.words {
		for at := uint64(0); at < 64; at += 2 * boundBits {
			most = max(most, t.slotsOf(t.words[i].Load()>>at))
		}
	}
	return most
}

// fill takes one token from each of a number of keys.
func fill(t *Table, keys uint64, now int64) {
	for key := range keys {
		take(t, key*0x9e3779b97f4a7c15+1, now, 1)
	}
}

func TestASweepLowersProbeBounds(t *testing.T) {
	table := newTable(t, 4096, 0, nil)
	assert.EqualValues(t, lineSlots, largestProbeBound(table), "nothing was ever there")
	fill(table, 20_000, start)
	assert.EqualValues(t, DefaultProbeWindow, largestProbeBound(table), "a table that is too full")
	require.True(t, table.Sweep(start, nil))
	assert.EqualValues(t, DefaultProbeWindow, largestProbeBound(table), "and still is")
	require.True(t, table.Sweep(start+10*second, nil))
	assert.EqualValues(t, lineSlots, largestProbeBound(table), "everything was idle")
	fill(table, 1000, start+10*second)
	assert.LessOrEqual(t, largestProbeBound(table), uint64(3*lineSlots), "a quarter full, whatever it was before")
	for range 3 {
		require.True(t, table.Sweep(start+10*second, nil))
	}
	for key := range uint64(1000) {
		require.Equal(t, 1, records(table, key*0x9e3779b97f4a7c15+1))
		o, _ := table.Peek(table.Find(key*0x9e3779b97f4a7c15+1), start+10*second, 0, 0)
		require.EqualValues(t, second, bucketOf(table).Debt(o.State.Record(), bucketOf(table).Ticks(start+10*second)), "beyond the probe bound")
	}
}

// TestASweepThatGivesUpLowersNothing: a sweep that stops early clears no probe bound, because it has not visited every
// record. The next two complete sweeps clear all of them.
func TestASweepThatGivesUpLowersNothing(t *testing.T) {
	table := newTable(t, 4*4096, 0, func(c *Config) { c.Shards = 4 })
	fill(table, 12_000, start)
	before := largestProbeBound(table)
	for range 5 {
		require.False(t, table.Sweep(start, func() bool { return false }))
		assert.Equal(t, before, largestProbeBound(table))
		for key := range uint64(12_000) {
			at := key*0x9e3779b97f4a7c15 + 1
			_, _, sl := table.record(table.Find(at))
			require.NotNil(t, sl, "beyond the probe bound")
		}
	}
	for range 2 { // the first sweep still has the target of the sweeps that stopped early
		require.True(t, table.Sweep(start+10*second, nil))
	}
	assert.EqualValues(t, lineSlots, largestProbeBound(table))
}

// TestProbeBoundsFallBesideSweepsThatGiveUp: a sweep that stops early does not switch the target for the next one.
// Otherwise nothing would ever be cleared.
func TestProbeBoundsFallBesideSweepsThatGiveUp(t *testing.T) {
	table := newTable(t, 4*4096, 0, func(c *Config) { c.Shards = 4 })
	fill(table, 12_000, start)
	require.Greater(t, largestProbeBound(table), uint64(lineSlots))
	for range 6 {
		require.False(t, table.Sweep(start+10*second, func() bool { return false }))
		require.True(t, table.Sweep(start+10*second, nil))
	}
	assert.EqualValues(t, lineSlots, largestProbeBound(table))
}

// TestProbeBoundsOfOddProbeWindows: a probe window is searched to its end even if its length is not a multiple of a
// stride, or if it has fewer slots than a window has strides.
func TestProbeBoundsOfOddProbeWindows(t *testing.T) {
	for _, probeWindow := range []int{1, 2, 3, 7, 9, 30, 33, 100} {
		table := newTable(t, 1, probeWindow, nil)
		for key := range uint64(1000) { // all with one home slot
			take(table, key+1, start, 1)
		}
		assert.GreaterOrEqual(t, largestProbeBound(table), uint64(probeWindow))
		require.True(t, table.Sweep(start+10*second, nil))
		assert.Equal(t, table.stride, largestProbeBound(table), probeWindow)
	}
}

// TestWhereProbeBoundsAre: two adjacent homes share a byte. Strides are an eighth of the probe window.
func TestWhereProbeBoundsAre(t *testing.T) {
	table := newTable(t, 40*lineSlots, 36, nil)
	assert.EqualValues(t, 5, table.stride)
	for line := range uint64(40) {
		w, at := table.probeBoundOf(Place{0, &table.shards[0].slots[line*lineSlots]})
		assert.Same(t, &table.words[line/16], w, line)
		assert.Equal(t, line%16/2*8, at, line)
	}
}
