//go:build !explore

package shard

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// fineNumbers returns the numbers of a bucket whose skew is a sixteenth of the skew of a bucket made from
// bucketNumbers.
func fineNumbers(burst uint64) []uint64 { return []uint64{16, 17, burst} }

// twiceAsFast has the numbers of a bucket with a burst of ten and two tokens per second.
var twiceAsFast = []uint64{2, uint64(second), 10}

// announced announces the next plan of a table and does nothing more, like a process that then dies.
func announced(table *Table, numbers []uint64) (n uint64) {
	n = table.planned.Load()
	table.areas.write(n+1, numbers)
	table.change.Store((n+1)<<changeShift | changing)
	return n
}

// TestAChangeIsMadeWhenItIsCompleted (I1): R22. A process announces a plan and dies. Other processes decide by the
// previous plan until one of them completes the change. From then on, tokens come back at the new rate.
func TestAChangeIsMadeWhenItIsCompleted(t *testing.T) {
	const later = start + 5*second
	for name, complete := range map[string]func(table *Table){
		"a sweep":               func(table *Table) { table.Sweep(later, nil) },
		"a sweep of an epoch":   func(table *Table) { table.SweepEpoch(later, nil) },
		"who attaches":          func(table *Table) { table.Complete(clockAt(later)) },
		"the next change":       func(table *Table) { table.Replace(twiceAsFast, clockAt(later)) },
		"who died, if it lives": func(table *Table) { table.completeReplacement(clockAt(later)) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, sweeps := range []bool{false, true} { // whether the call that completes the change sweeps first
				cfg := sharedConfig(planOf(t, perSecond(t, 1, 10)), Refuse)
				cfg.Plan.SetSource(made{kinds[0], bucketNumbers(10)})
				table := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{1, nil})
				require.Equal(t, Admitted, table.Take(table.Find(7), start, 10, 0).Verdict)
				announced(table, twiceAsFast)
				require.Equal(t, Admitted, table.Take(table.Find(7), later, 5, 0).Verdict)
				if sweeps {
					table.swept.Store(uint64(start) - 2*table.Known().skew)
				}
				complete(table)
				require.EqualValues(t, twiceAsFast, table.Plan().source.(made).numbers)
				for _, c := range []struct {
					at   int64
					want uint64
				}{{later, 0}, {later + second, 2}, {later + 20*second, 10}} {
					_, status := table.Peek(table.Find(7), c.at, 1, 0)
					assert.Equal(t, c.want, status.Remaining, "%v after the change, sweeps %v", c.at-later, sweeps)
				}
			}
		})
	}
}

// TestAClaimCompletesAChange (I1): R22. A claim finds the incomplete change of a dead process, and completes it at the
// time of the claim's own call. The earlier time, at which the claimed record became idle, would be wrong.
func TestAClaimCompletesAChange(t *testing.T) {
	const later = start + 9*second
	for _, rates := range [][2]uint64{{1, 2}, {2, 1}} {
		cfg := sharedConfig(planOf(t, perSecond(t, float64(rates[0]), 20)), Refuse)
		cfg.Slots, cfg.ProbeWindow = 4, 4
		cfg.Plan.SetSource(made{kinds[0], []uint64{rates[0], uint64(second), 20}})
		table := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{1, nil})
		for key, n := range map[uint64]uint64{7: 20, 8: 1, 9: 20, 10: 20} {
			require.Equal(t, Admitted, table.Take(table.Find(key), start, n, 0).Verdict)
		}
		announced(table, []uint64{rates[1], uint64(second), 20})
		require.Equal(t, Admitted, table.Take(table.Find(7), later, 9*rates[0], 0).Verdict)
		require.Equal(t, Admitted, table.Take(table.Find(11), later, 1, 0).Verdict)
		require.Zero(t, records(table, 8), "it was claimed")
		require.EqualValues(t, 2, table.Plan().number)
		_, status := table.Peek(table.Find(7), later, 1, 0)
		assert.Zero(t, status.Remaining, "%v", rates)
		assert.EqualValues(t, 20/rates[1], status.ResetAfter.Seconds(), "%v", rates)
	}
}

// TestAReplacementReadsItsClockAgain (I1): R22. A process that replaces the plan reads its clock again after the
// announcement. At the time that it read before, other calls could still take tokens by the previous plan.
func TestAReplacementReadsItsClockAgain(t *testing.T) {
	const later = start + 5*second
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 10)), Refuse)
	cfg.Plan.SetSource(made{kinds[0], bucketNumbers(10)})
	table := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{1, nil})
	require.Equal(t, Admitted, table.Take(table.Find(7), start, 10, 0).Verdict)
	reads := 0
	require.True(t, table.Replace(twiceAsFast, func() int64 {
		if reads++; reads == 1 {
			return start
		}
		if n, change := table.planned.Load(), table.change.Load(); assert.Equal(t, (n+1)<<changeShift|changing, change, "it is announced") && reads == 2 {
			require.Equal(t, Admitted, table.Take(table.Find(7), later, 5, 0).Verdict)
		}
		return later
	}))
	assert.GreaterOrEqual(t, reads, 2)
	_, status := table.Peek(table.Find(7), later+second, 1, 0)
	assert.EqualValues(t, 2, status.Remaining)
}

// TestAReplacementAfterALeap (R7, R22): before a replacement announces its plan, it moves the watermark to its clock,
// however far that is ahead.
func TestAReplacementAfterALeap(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 5)), Refuse)
	table := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{1, nil})
	now := start + 50*int64(table.Plan().skew)
	require.True(t, table.Replace(bucketNumbers(9), clockAt(now)))
	assert.Equal(t, now+1, table.Watermark())
}

// TestAStepTowardsTheNextPlan (R7, R22): a call that completes a replacement moves the watermark to the call's time, by
// at least a nanosecond and by at most four times the smaller skew of the two plans. The call sweeps first if the
// watermark is more than a skew ahead of the last sweep. If the replacement has been completed meanwhile, the watermark
// does not move.
func TestAStepTowardsTheNextPlan(t *testing.T) {
	small, err := atomicbucket.NewTokenBucket(16, 17, 8)
	require.NoError(t, err)
	skew := int64(small.MaxSkew())
	for name, plans := range map[string][2][]uint64{
		"to a smaller skew": {bucketNumbers(8), fineNumbers(8)},
		"to a larger one":   {fineNumbers(8), bucketNumbers(8)},
		"to the same":       {fineNumbers(8), fineNumbers(9)},
		"to no plan":        {fineNumbers(8), nil},
	} {
		for _, c := range []struct{ now, mark, swept, step, sweeps int64 }{
			{0, 0, 0, 1, 0},
			{-1, 0, 0, 1, 0},
			{1, 0, 0, 1, 0},
			{2, 0, 0, 2, 0},
			{second, 0, 0, second, 0},
			{4 * skew, 0, 0, 4 * skew, 0},
			{4*skew + 1, 0, 0, 4 * skew, 0},
			{9 * skew, 0, skew, 4 * skew, 0},
			{9 * skew, skew, 0, 4 * skew, 0},
			{skew + 2, skew + 1, 0, 1, 1},
			{9 * skew, skew + 1, 0, 4 * skew, 1},
			{0, 9 * skew, 0, 1, 0},
		} {
			first, err := kinds[0].build(plans[0])
			require.NoError(t, err)
			cfg := sharedConfig(first, Refuse)
			table := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{1, nil})
			n := announced(table, plans[1])
			table.watermark.Store(uint64(start + c.mark))
			table.swept.Store(uint64(start + c.swept))
			for range c.sweeps {
				assert.False(t, table.approach(uint64(start+c.now), n), "%s: %+v", name, c)
				assert.Equal(t, start+c.mark, table.Watermark(), "%s: %+v", name, c)
				assert.Equal(t, start+c.mark, int64(table.swept.Load()), "%s: %+v", name, c)
			}
			assert.True(t, table.approach(uint64(start+c.now), n), "%s: %+v", name, c)
			assert.Equal(t, c.step, table.Watermark()-start-c.mark, "%s: %+v", name, c)
			assert.EqualValues(t, c.sweeps, table.Stats().Epoch, "%s: %+v", name, c)
			mark := table.Watermark()
			table.planned.Store(n + 1)
			assert.False(t, table.approach(uint64(mark+second), n), "%s: %+v", name, c)
			assert.Equal(t, mark, table.Watermark())
		}
	}
}
