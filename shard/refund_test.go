package shard

import (
	"testing"
	"time"

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

// TestATakeThatEvictsIsGivenBack: the eviction that makes room for a take's own record is over before the take, so what
// the take took is given back, whatever other takes of the call had to evict before.
func TestATakeThatEvictsIsGivenBack(t *testing.T) {
	table := newTable(t, 4, 4, nil)
	for key := range uint64(4) {
		require.Equal(t, Admitted, take(table, 10+key, start, 1))
	}
	for _, verb := range []string{"take", "reserve"} {
		key := uint64(len(verb))
		p := table.Find(key)
		ends, before := table.Ends(p), table.Stats().Evictions
		o := table.Take(p, start, 2, 0)
		if verb == "reserve" {
			table.Reset(p)
			require.Equal(t, Admitted, take(table, 20, start, 1), "in its place")
			ends, before = table.Ends(p), table.Stats().Evictions
			o = table.Reserve(p, start, 2, 0, time.Second)
		}
		require.Equal(t, Admitted, o.Verdict)
		require.Equal(t, before+1, table.Stats().Evictions)
		receipt := o.Receipt(2, 0, ends)
		require.Equal(t, Admitted, table.Refund(p, start, 2, 0, receipt).Verdict, verb)
		_, status := table.Peek(p, start, 0, 0)
		require.EqualValues(t, 5, status.Remaining)

		// But not in a tenure after it.
		require.Equal(t, Admitted, take(table, key, start, 1))
		require.True(t, table.Reset(p))
		require.Equal(t, Admitted, take(table, key, start, 3))
		require.Equal(t, Refused, table.Refund(p, start, 2, 0, receipt).Verdict)
	}
}

// TestATakeThatEvictsFarKeys: an eviction of a key whose ends are counted elsewhere is none that a receipt would have
// to know of.
func TestATakeThatEvictsFarKeys(t *testing.T) {
	table := newTable(t, 2*neighbourhoodHomes*lineSlots, 4*lineSlots, nil)
	at := func(line uint64) (keys []uint64) { // with that home
		for key := uint64(1); len(keys) < 8*lineSlots; key++ {
			if hash := key * 0x9e37_79b9_7f4a_7c15; table.line(table.Find(hash)) == line {
				keys = append(keys, hash)
			}
		}
		return keys
	}
	// The window of the last home of a neighbourhood is full: its own line with keys of its own, which owe more, and
	// the lines after it with keys of the next neighbourhood.
	own, next := at(neighbourhoodHomes-1), at(neighbourhoodHomes)
	for _, key := range own[:lineSlots] {
		require.Equal(t, Admitted, take(table, key, start, 5))
	}
	for _, key := range next[:3*lineSlots] {
		require.Equal(t, Admitted, take(table, key, start, 1))
	}
	p := table.Find(own[lineSlots])
	require.NotSame(t, table.neighbourhood(p), table.neighbourhood(table.Find(next[0])))
	ends := table.Ends(p)
	o := table.Take(p, start, 2, 0)
	require.Equal(t, Admitted, o.Verdict)
	require.EqualValues(t, 1, table.Stats().Evictions)
	require.Equal(t, ends, table.Ends(p))
	require.Equal(t, Admitted, table.Refund(p, start, 2, 0, o.Receipt(2, 0, ends)).Verdict)
}
