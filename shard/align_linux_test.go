//go:build !explore

package shard

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

func alignedNumbers(limit uint64, window time.Duration) []uint64 {
	return []uint64{0, uint64(window), limit}
}

// realignedTable returns a shared table of aligned windows of 61s, which were windows of 60s at the start.
func realignedTable(t *testing.T) *Table {
	t.Helper()
	plan, err := kinds[2].build(alignedNumbers(5, time.Minute))
	require.NoError(t, err)
	cfg := sharedConfig(plan, Refuse)
	table := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{1, nil})
	require.True(t, table.Replace(alignedNumbers(5, 61*time.Second), clockAt(start)))
	return table
}

// windowOf begins a window of a key now, and returns the time until this window ends.
func windowOf(t *testing.T, table *Table, key uint64, now int64) time.Duration {
	t.Helper()
	var status atomicbucket.Status
	require.Equal(t, Admitted, table.Decide(table.Find(key), now, 5, 0, &status).Verdict)
	require.Equal(t, Refused, table.Decide(table.Find(key), now, 1, 0, &status).Verdict)
	return status.ResetAfter
}

// TestAnAnnouncedPlanMakesNoWindowLonger: R29. A process announces a plan with another limit and dies. Windows that
// begin under the current plan do not become longer.
func TestAnAnnouncedPlanMakesNoWindowLonger(t *testing.T) {
	const later = start + 600*second
	table := realignedTable(t)
	table.Sweep(later, nil)
	announced(table, alignedNumbers(4, 61*time.Second))
	assert.LessOrEqual(t, windowOf(t, table, 1, later), 61*time.Second)
	table.Complete(clockAt(later))
	_, status := table.Peek(table.Find(1), later, 1, 0)
	assert.LessOrEqual(t, status.ResetAfter, 61*time.Second)
}

// TestTimesOfRealignedThatNobodyWrote (R20): whatever the word realigned contains, a window counts. It ends at most two
// lengths of a window after the call that begins it.
func TestTimesOfRealignedThatNobodyWrote(t *testing.T) {
	for _, word := range []uint64{0, 1, uint64(start), uint64(start) + 1<<40, 1 << 60, 1<<63 - 1, 1 << 63, math.MaxUint64} {
		table := realignedTable(t)
		table.realigned.Store(word)
		ends := windowOf(t, table, 1, start+second)
		assert.LessOrEqual(t, ends, 2*61*time.Second, "%#x", word)
		assert.Equal(t, Admitted, table.Take(table.Find(1), start+second+int64(ends), 1, 0).Verdict, "%#x", word)
	}
}

// TestACopyOfAHalfMadeChange (I1): R29. A process dies while it converts records to another length of the windows. In a
// copy of the table, the windows have their current length from the watermark on.
func TestACopyOfAHalfMadeChange(t *testing.T) {
	table, to := realignedTable(t), realignedTable(t)
	table.realigned.Store(0)
	to.realigned.Store(0)
	table.change.Store(table.planned.Load()<<changeShift | changing)
	to.AlignAs(table)
	assert.EqualValues(t, table.Watermark(), to.realigned.Load())
}

// TestTheTimeOfAChangeOfWindowsNeverFalls (I1): R29. A process that completes a change late does not replace the
// recorded time by an earlier one. Otherwise a first window could end too early.
func TestTheTimeOfAChangeOfWindowsNeverFalls(t *testing.T) {
	table := realignedTable(t)
	since := table.realigned.Load()
	raiseWord(&table.realigned, start-second)
	require.Equal(t, since, table.realigned.Load(), "broken: (b)")
}
