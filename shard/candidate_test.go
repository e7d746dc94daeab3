package shard

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWhichSlotIsClaimed: an insert claims the best slot of the first two lines, or the first slot beyond them that may
// be claimed. A bucket from which n tokens were taken is full again after n seconds.
func TestWhichSlotIsClaimed(t *testing.T) {
	const swept, now = start + 10*second, start + 20*second
	indebted := func(slot int) int64 { return now - 1 } // the time of a request whose tokens have not come back yet
	for _, c := range []struct {
		name      string
		requests  func(slot int) int64 // when the key in each of nine slots took its tokens; 0 for a free slot
		want      int                  // the slot that is claimed
		watermark int64                // the watermark; 0 means swept
	}{
		{"the longest idle at the watermark, of the first line", func(slot int) int64 {
			return []int64{start + 3*second, start + second, start + 2*second, start + 4*second, start, start, start, start, start}[slot]
		}, 1, 0},
		{"one of the first line that is idle at the watermark, before a free one in the second", func(slot int) int64 {
			return []int64{now - 1, now - 1, start + 2*second, now - 1, 0, 0, 0, 0, 0}[slot]
		}, 2, 0},
		{"a free one in the first line, before one that is idle at the watermark", func(slot int) int64 {
			return []int64{start, start, 0, start, start, start, start, start, start}[slot]
		}, 2, 0},
		{"a free one in the second line, before one that became idle after the watermark", func(slot int) int64 {
			return []int64{swept + second, swept + second, swept + second, swept + second, now - 1, 0, now - 1, now - 1, 0}[slot]
		}, 5, 0},
		{"the longest idle of both lines, where none was idle at the watermark", func(slot int) int64 {
			return swept + []int64{4, 5, 6, 7, 8, 2, 3, 4, 0}[slot]*second
		}, 5, 0},
		{"one of the first line that is idle just now, before a free one in the second", func(slot int) int64 {
			return []int64{now - 1, now - 1, now - second, now - 1, 0, 0, 0, 0, 0}[slot]
		}, 2, now},
		{"one beyond the second line, where no other may be claimed", func(slot int) int64 {
			if slot == 8 {
				return start
			}
			return indebted(slot)
		}, 8, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := newTable(t, 1, 9, nil)
			for slot := range 9 { // each key is given its slot while the slots before it are indebted
				assert.Equal(t, Admitted, take(table, uint64(100+slot), start, 5))
			}
			for slot := range 9 {
				table.Reset(table.Find(uint64(100 + slot)))
			}
			place := table.Find(100)
			for slot := range 9 {
				at := c.requests(slot)
				if at == 0 {
					continue
				}
				sl := place.slot(uint64(slot))
				claimed, ok := sl.state.Claim(sl.state.Load(), 0)
				assert.True(t, ok)
				sl.key.Store(uint64(100 + slot))
				bucket := bucketOf(table)
				payload, _ := bucket.Take(claimed.Record(), bucket.Ticks(at), table.Plan().Quota(0).Demand(1))
				_, ok = sl.state.Commit(sl.state.Publish(claimed), table.Plan().Live(), payload)
				assert.True(t, ok)
			}
			table.watermark.Store(uint64(cmp.Or(c.watermark, swept)))
			assert.Equal(t, Admitted, take(table, 1, now, 1))
			assert.EqualValues(t, 1, place.slot(uint64(c.want)).key.Load(), "slot %d", c.want)
		})
	}
}

// TestALateClockDoesNotMakeIdle (R7): the watermark passes the time of a call during the call. By then a record may owe
// tokens for a time far ahead of the call's clock, so that it looks idle by that clock. The record must not be claimed.
func TestALateClockDoesNotMakeIdle(t *testing.T) {
	table := newTable(t, 1, 1, func(c *Config) { c.Overflow = Refuse; c.Plan.SetCharges(1<<32, Nothing) })
	skew, now := int64(table.Plan().skew), start+2*second
	table.raise(now)
	o, _ := table.Charge(table.Find(1), now+skew, now, 1<<40, Quota{}, nil)
	require.Equal(t, Admitted, o.Verdict)
	late := request{now: start + skew, clock: start, n: 1}
	table.insert(table.Find(2), &late)
	assert.Equal(t, 1, records(table, 1))
}

// TestTheLongestIdleIsClaimed: the slot that has been idle longest is claimed, for records of every algorithm, even if
// the payload's circle wrapped around in between.
func TestTheLongestIdleIsClaimed(t *testing.T) {
	for kind, algorithm := range algorithmsOfFive(t) {
		t.Run(kind, func(t *testing.T) {
			plan, err := NewPlan(algorithm, 0)
			require.NoError(t, err)
			begin := start
			if plan.skew < 1<<59 {
				begin = circleSkews*int64(plan.skew) - 7*second
			}
			table := newTable(t, 4, 4, func(c *Config) { c.Plan, c.Start = plan, begin })
			for slot, at := range []int64{0, 9, 9, 9} {
				require.Equal(t, Admitted, take(table, uint64(100+slot), begin+at*second, 5))
			}
			require.Equal(t, Admitted, take(table, 1, begin+30*second, 1))
			assert.EqualValues(t, 1, table.Find(100).home.key.Load())
		})
	}
}
