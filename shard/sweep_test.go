package shard

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestSweepEpoch (I7): if more than half of the slots hold records, SweepEpoch frees exactly the records that were idle
// at the previous sweep. Otherwise it frees those that have been idle for a skew.
func TestSweepEpoch(t *testing.T) {
	for name, c := range map[string]struct {
		keys  uint64
		freed []uint64 // after sweeps 6 s, 8 s, and 6 s + a skew after the requests; buckets are full after 5 s
	}{
		"a table that is three quarters full": {24, []uint64{0, 24, 24}},
		"a table that is a quarter full":      {8, []uint64{0, 0, 8}},
		"a table that is half full":           {16, []uint64{0, 0, 16}},
		"a table that is more than half full": {17, []uint64{0, 17, 17}},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable(t, 1, 32, nil)
			for key := range c.keys {
				assert.Equal(t, Admitted, take(table, 1+key, start, 5))
			}
			assert.True(t, table.SweepEpoch(start, nil))
			assert.Equal(t, c.keys, table.Stats().Live)
			skew := int64(table.Plan().skew)
			for i, at := range []int64{start + 6*second, start + 8*second, start + 6*second + skew} {
				assert.True(t, table.SweepEpoch(at, nil))
				assert.Equal(t, c.freed[i], table.Stats().Reclaimed, "sweep %d", i)
				assert.Zero(t, table.Stats().Live, "an idle record is not counted as live")
			}
			assert.True(t, table.Sweep(start+6*second+skew, nil))
			assert.Equal(t, c.keys, table.Stats().Reclaimed, "a sweep frees all that is idle")
		})
	}
}

// TestSweepEpochFreesWhatHasBeenIdleForASkew (R7): SweepEpoch frees the records that have been idle for a skew, even in
// a full table, if the last complete sweep was more than a skew ago.
func TestSweepEpochFreesWhatHasBeenIdleForASkew(t *testing.T) {
	table := newTable(t, 1, 4, nil)
	for key := range uint64(4) {
		require.Equal(t, Admitted, take(table, 1+key, start, 5))
	}
	require.True(t, table.SweepEpoch(start, nil))
	skew := int64(table.Plan().skew)
	require.True(t, table.SweepEpoch(start+skew+4*second, nil))
	assert.Zero(t, table.Stats().Reclaimed, "not idle a skew ago")
	table.swept.Store(uint64(start)) // as if that sweep had not been complete
	require.True(t, table.SweepEpoch(start+skew+6*second, nil))
	assert.EqualValues(t, 4, table.Stats().Reclaimed)
}

// TestSweepEpochAtTheOriginOfTime: near the origin of time, SweepEpoch does not treat a record as idle before the
// origin.
func TestSweepEpochAtTheOriginOfTime(t *testing.T) {
	sliding, err := atomicbucket.NewSlidingWindow(5, 5, 5*time.Second)
	require.NoError(t, err)
	plan, err := NewPlan(&sliding, 0)
	require.NoError(t, err)
	table := newTable(t, 1, 4, func(c *Config) { c.Plan, c.Start = plan, 0 })
	require.Equal(t, Admitted, take(table, 1, 0, 1))
	require.True(t, table.SweepEpoch(20*second, nil))
	assert.Zero(t, table.Stats().Reclaimed, "it was not idle at 0")
}

// TestARecordMayBeClaimedFromTheMomentOnAtWhichItIsIdle: a record may be claimed when it is idle, and not a nanosecond
// earlier.
func TestARecordMayBeClaimedFromTheMomentOnAtWhichItIsIdle(t *testing.T) {
	for _, raised := range []bool{false, true} {
		table := newTable(t, 1, 1, func(c *Config) { c.Overflow = Refuse })
		require.Equal(t, Admitted, take(table, 1, start, 5))
		if raised {
			table.raise(start + 5*second - 1)
		}
		assert.Equal(t, NoRoom, take(table, 2, start+5*second-1, 1))
		assert.Equal(t, Admitted, take(table, 2, start+5*second, 1))
		assert.GreaterOrEqual(t, table.Watermark(), start+5*second, "R7")
	}
}

// TestAClaimMovesTheWatermarkToWhenItsRecordBecameIdle (R7): a claim moves the watermark no further than to the time at
// which its record became idle, if that is known to the nanosecond. If the claim moved it further, all idle records
// would be idle at the watermark. The next claim would then take the first of them, not the one that has been idle
// longest.
func TestAClaimMovesTheWatermarkToWhenItsRecordBecameIdle(t *testing.T) {
	batch, err := atomicbucket.NewBatchBucket(1, time.Second, 5)
	require.NoError(t, err)
	const now = 60 * second
	for name, c := range map[string]struct {
		bucket atomicbucket.TokenBucket
		want   int64 // how far the watermark moves
	}{
		"a tick is a nanosecond":               {perSecond(t, 1, 5), 5 * second},
		"half of one: 12.5 ns are 25":          {perSecond(t, 0.4e9, 5), 13},
		"batches, whose ticks are a second":    {batch, now},
		"a rate of which no tick is a part of": {perSecond(t, math.Pi, 5), now},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan = planOf(t, c.bucket) })
			require.Equal(t, Admitted, take(table, 1, start, 5))
			s := table.Find(1).home.state.Load()
			require.Equal(t, Admitted, take(table, 2, start+now, 1))
			assert.Equal(t, c.want, table.Watermark()-start)
			other := atomicbucket.NewState(atomicbucket.Second, s.Version(), s.Payload())
			assert.Equal(t, start+now, table.Plan().idleSince(other, start+now), "a record of another plan")
		})
	}
}

// TestWhatAFullProbeWindowTells: a new key meets a full probe window. The policy Refuse returns the record that will be
// idle first. The policy Admit returns the state that the key's record would have. The policy Evict completely forgets
// the record with the least debt.
func TestWhatAFullProbeWindowTells(t *testing.T) {
	for _, order := range [][]uint64{{3, 1, 2}, {1, 2, 3}, {3, 2, 1}, {2, 1, 1}} {
		for _, overflow := range []Overflow{Refuse, Admit, Evict} {
			table := newTable(t, 1, 3, func(c *Config) { c.Overflow = overflow })
			slots := len(table.shards[0].slots) // a line has four slots, and the probe window is three of them
			require.Equal(t, 4, slots)
			least, last := uint64(9), uint64(0)
			for i, n := range order {
				require.Equal(t, Admitted, take(table, uint64(1+i), start, n))
				if n < least {
					least, last = n, uint64(1+i)
				}
			}
			o := table.Take(table.Find(9), start, 4, 0)
			stats := table.Stats()
			switch overflow {
			case Refuse:
				want := table.Find(1).slot(last - 1).state.Load()
				assert.Equal(t, Outcome{State: want, Plan: table.Plan(), At: start, Verdict: NoRoom}, o)
				assert.Equal(t, []uint64{1, 0, 0, 0}, []uint64{stats.NoRoom, stats.Unrecorded, stats.Evictions, stats.Forgiven})
			case Admit:
				assert.Equal(t, Outcome{atomicbucket.NewState(atomicbucket.Live, 0, uint64(start)+uint64(4*second)), table.Plan(), start, Unrecorded, 0}, o)
				assert.Equal(t, []uint64{0, 1, 0, 0}, []uint64{stats.NoRoom, stats.Unrecorded, stats.Evictions, stats.Forgiven})
			case Evict:
				assert.Equal(t, Outcome{atomicbucket.NewState(atomicbucket.Live, 2, uint64(start)+uint64(4*second)), table.Plan(), start, Admitted, 1}, o)
				assert.Equal(t, []uint64{0, 0, 1, least}, []uint64{stats.NoRoom, stats.Unrecorded, stats.Evictions, stats.Forgiven})
				assert.Zero(t, records(table, last))
			}
			assert.Zero(t, stats.Retries)
		}
	}
}

// TestAProbeWindowFullOfInserts: if calls under way have claimed every slot of a probe window, a call finds no room.
// Waiting for them would not be lock-free.
func TestAProbeWindowFullOfInserts(t *testing.T) {
	for _, overflow := range []Overflow{Refuse, Evict} {
		table := newTable(t, 1, 2, func(c *Config) { c.Overflow = overflow })
		claimed, _ := table.Find(1).slot(0).state.Claim(0, 0)
		_, _ = table.Find(1).slot(1).state.Claim(0, 0)
		table.Find(1).slot(0).key.Store(5)
		table.Find(1).slot(0).state.Publish(claimed)
		o := table.Take(table.Find(9), start, 1, 0)
		assert.Equal(t, Outcome{State: table.Plan().fullRecord(start).State, Plan: table.Plan(), At: start, Verdict: NoRoom}, o)
		assert.EqualValues(t, 1, table.Stats().NoRoom)
		assert.Zero(t, table.Stats().Evictions)
	}
}

// TestTheRecordThatIsIdleFirstAndTheOneThatOwesLeast: these two records may differ, because a window in which many
// tokens were taken may end soon.
func TestTheRecordThatIsIdleFirstAndTheOneThatOwesLeast(t *testing.T) {
	fixed, err := atomicbucket.NewFixedWindow(5, 5, 5*time.Second, false)
	require.NoError(t, err)
	plan, err := NewPlan(&fixed, 0)
	require.NoError(t, err)
	for overflow, chosen := range map[Overflow]uint64{Refuse: 1, Evict: 2} {
		table := newTable(t, 1, 2, func(c *Config) { c.Plan, c.Overflow = plan, overflow })
		require.Equal(t, Admitted, take(table, 1, start, 3))
		require.Equal(t, Admitted, take(table, 2, start+second, 1))
		state := table.Find(1).slot(chosen - 1).state.Load()
		o := table.Take(table.Find(3), start+second, 1, 0)
		if overflow == Refuse {
			assert.Equal(t, Outcome{State: state, Plan: plan, At: start + second, Verdict: NoRoom}, o)
		} else {
			assert.Zero(t, records(table, chosen))
			assert.EqualValues(t, 1, table.Stats().Forgiven)
		}
	}
}

// TestAFreeSlotIsNoVictim: a slot is freed while an insert looks for a record to evict. The insert does not treat it as
// a record, even at a time at which the slot's zero payload would look indebted.
func TestAFreeSlotIsNoVictim(t *testing.T) {
	const now = 64<<54 - second
	table := newTable(t, 1, 1, func(c *Config) { c.Start = now })
	_, ok := table.findVictim(table.Find(2), now)
	assert.False(t, ok, "never used")
	require.Equal(t, Admitted, take(table, 1, now, 5))
	_, ok = table.findVictim(table.Find(2), now)
	assert.True(t, ok)
	_, ok = table.findVictim(table.Find(1), now)
	assert.False(t, ok, "the key's own")
	require.True(t, table.Reset(table.Find(1)))
	_, ok = table.findVictim(table.Find(2), now)
	assert.False(t, ok, "free")
}

// TestWhenASweepRests: a sweep rests after every 8,192 slots of marked pages.
func TestWhenASweepRests(t *testing.T) {
	table := newTable(t, 100*pageSlots, 0, nil)
	for page := range uint64(96) {
		table.memory.mark(page * pageSlots)
	}
	rests := 0
	require.True(t, table.Sweep(start, func() bool { rests++; return true }))
	assert.Equal(t, 96*pageSlots/sweepChunk, rests)
	assert.Equal(t, 8192, sweepChunk)
}

// TestSweepEpochLeavesNothingThatHasBeenIdleForASkew: SweepEpoch leaves no record that has been idle for a skew, even
// in a full table whose last sweep was more than a skew ago.
func TestSweepEpochLeavesNothingThatHasBeenIdleForASkew(t *testing.T) {
	for since, reclaimed := range map[int64]uint64{2: 1, 8: 0} { // tenths of a skew from the last sweep to the take
		table := newTable(t, 4, 4, nil)
		skew := int64(table.Plan().skew)
		require.True(t, table.Sweep(start, nil))
		require.Equal(t, Admitted, take(table, 1, start+since*skew/10, 5))
		table.occupied.Store(table.slots)
		require.True(t, table.SweepEpoch(start+15*skew/10, nil))
		assert.Equal(t, reclaimed, table.Stats().Reclaimed)
	}
}
