package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWhatIsAheadIsEntered (R15): if a call is granted ahead of its clock, it records its time for refunds. This is so
// for each kind of call, with or without a record of its key. A reservation that waits records the end of its wait.
func TestWhatIsAheadIsEntered(t *testing.T) {
	for name, call := range map[string]func(table *Table, now, clock int64) Outcome{
		"take": func(table *Table, now, clock int64) Outcome {
			return table.TakeAt(table.Find(1), now, clock, 2, TierQuota(0), nil)
		},
		"charge": func(table *Table, now, clock int64) Outcome {
			o, _ := table.Charge(table.Find(1), now, clock, 2, TierQuota(0), nil)
			return o
		},
		"reserve": func(table *Table, now, clock int64) Outcome {
			return table.ReserveAt(table.Find(1), now, clock, 2, TierQuota(0), time.Minute)
		},
	} {
		for _, before := range []uint64{0, 1, 5} { // tokens that the key has taken
			if name == "take" && before == 5 {
				continue // it would be refused
			}
			for _, ahead := range []int64{0, 1, second} {
				table := newTable(t, 1, 1, nil)
				if before > 0 {
					require.Equal(t, Admitted, take(table, 1, start, before))
				}
				o := call(table, start+ahead, start)
				assert.Equal(t, Admitted, o.Verdict, "%s, %d taken before", name, before)
				assert.Equal(t, start+ahead, o.At)
				entered, promised := int64(0), int64(0)
				if ahead > 0 {
					entered = start + ahead
				}
				if name == "reserve" && before == 5 {
					promised = start + 2*second
				}
				assert.Equal(t, entered, int64(table.leading.Load()), "%s, %d taken before, ahead by %d", name, before, ahead)
				assert.Equal(t, promised, int64(table.neighbourhood(table.Find(1)).promised.Load()), "%s", name)
			}
		}
	}
}

// TestAChargeASkewAhead: a charge that is a skew ahead of the watermark is made at its own time.
func TestAChargeASkewAhead(t *testing.T) {
	table := newTable(t, 1, 1, nil)
	require.Equal(t, Admitted, take(table, 1, start, 1))
	now := start + int64(table.Plan().skew)
	o, charged := table.Charge(table.Find(1), now, now, 7, TierQuota(0), nil)
	assert.Equal(t, Admitted, o.Verdict)
	assert.EqualValues(t, 7, charged)
	assert.Equal(t, start, table.Watermark())
}

// TestAReservationThatWaitsForANanosecond: a reservation that waits for a nanosecond also records the end of its wait.
func TestAReservationThatWaitsForANanosecond(t *testing.T) {
	table := newTable(t, 1, 1, nil)
	require.Equal(t, Admitted, take(table, 1, start, 5))
	o := table.Reserve(table.Find(1), start+second-1, 1, 0, time.Minute)
	assert.EqualValues(t, 1, o.Overdrawn(0))
	assert.Equal(t, start+second, int64(table.neighbourhood(table.Find(1)).promised.Load()))
}
