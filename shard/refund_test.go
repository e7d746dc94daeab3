package shard

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARefundThatIsSuspendedAfterItsClock (I1): two tokens are taken and given back, and one is taken a second after
// them, and they would be back another second later. The goroutine that gives them back has read its clock before and
// is suspended. It must not forgive the one.
func TestARefundThatIsSuspendedAfterItsClock(t *testing.T) {
	for _, suspended := range []bool{true, false} {
		table := newTable(t, 8, 8, nil)
		p := table.Find(7)
		first := table.Take(p, start, 2, 0)
		read := 0
		clock := func() int64 {
			read++
			if read == 1 && suspended {
				require.Equal(t, Admitted, take(table, 7, start+second, 1))
				return start
			}
			return start + second
		}
		if !suspended {
			require.Equal(t, Admitted, take(table, 7, start+second, 1))
		}
		require.Equal(t, Admitted, table.RefundBy(p, clock, 2, 0, first.Receipt(2, 0, Ends{})).Verdict)
		_, status := table.Peek(p, start+second, 0, 0)
		require.EqualValues(t, 4, status.Remaining, "one of five was taken this moment")
		require.EqualValues(t, read-1, table.Stats().Retries)
	}
}

// TestARefundByAClockOfNothing: a key without a record is left alone.
func TestARefundByAClockOfNothing(t *testing.T) {
	table := newTable(t, 8, 8, nil)
	o := table.RefundBy(table.Find(7), func() int64 { return start }, 2, 0,
		table.Take(table.Find(8), start, 2, 0).Receipt(2, 0, Ends{}))
	require.Equal(t, Refused, o.Verdict)
	require.Zero(t, records(table, 7))
	require.EqualValues(t, start, o.At)
}
