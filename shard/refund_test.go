package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestARefundThatIsSuspendedAfterItsClock (I1): a goroutine reads its clock for a refund and is suspended, and another
// take follows. The refund must not forgive that take.
func TestARefundThatIsSuspendedAfterItsClock(t *testing.T) {
	for _, suspended := range []bool{true, false} {
		table := newTable(t, 8, 8, nil)
		p := table.Find(7)
		first := table.Take(p, start, 2, 0)
		require.Equal(t, Admitted, take(table, 7, start, 1))
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
		require.EqualValues(t, 3, status.Remaining, "of the others one was taken this moment, and one is not back yet")
		require.EqualValues(t, read-1, table.Stats().Retries)
	}
}

// TestARefundByAClockOfNothing: a refund to a key without a record changes nothing.
func TestARefundByAClockOfNothing(t *testing.T) {
	table := newTable(t, 8, 8, nil)
	o := table.RefundBy(table.Find(7), func() int64 { return start }, 2, 0,
		table.Take(table.Find(8), start, 2, 0).Receipt(2, 0, Ends{}))
	require.Equal(t, Refused, o.Verdict)
	require.Zero(t, records(table, 7))
	require.EqualValues(t, start, o.At)
}

// TestATakeThatEvictsIsGivenBack: a call's own evictions end before its take. So the take can be given back, however
// many records the call has evicted.
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

		// The receipt gives nothing back in a later tenure of the key.
		require.Equal(t, Admitted, take(table, key, start, 1))
		require.True(t, table.Reset(p))
		require.Equal(t, Admitted, take(table, key, start, 3))
		require.Equal(t, Refused, table.Refund(p, start, 2, 0, receipt).Verdict)
	}
}

// TestATakeThatEvictsFarKeys: if a call evicts a key of another neighbourhood, so that the forced end is counted in
// another word, the call's receipt stays valid.
func TestATakeThatEvictsFarKeys(t *testing.T) {
	table := newTable(t, 2*neighbourhoodHomes*lineSlots, 4*lineSlots, nil)
	at := func(line uint64) (keys []uint64) { // keys whose home is that line
		for key := uint64(1); len(keys) < 8*lineSlots; key++ {
			if hash := key * 0x9e37_79b9_7f4a_7c15; table.line(table.Find(hash)) == line {
				keys = append(keys, hash)
			}
		}
		return keys
	}
	// The probe window of the last home of a neighbourhood is full: its first line has keys of this home, which owe
	// more, and the other lines have keys of the next neighbourhood.
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

// TestARefundToABucketThatIsUntouched (I2): a refund of the last take reads no clock, and leaves the bucket as if the
// take had taken less, even long after. The refund reads a clock in three cases: other calls have taken since, more is
// given back than was taken, or the watermark is more than a skew later than the take.
func TestARefundToABucketThatIsUntouched(t *testing.T) {
	for name, c := range map[string]struct {
		before func(table *Table) // between the take of 3 and the refund
		n      uint64
		read   int
		want   time.Duration // the time from the take until the bucket is full
	}{
		"a part of it":  {func(*Table) {}, 2, 0, time.Second},
		"all of it":     {func(*Table) {}, 3, 0, 0},
		"a minute late": {func(table *Table) { table.raise(start + 60*second) }, 1, 0, 2 * time.Second},
		"others took, and it was given back": {func(table *Table) {
			o := table.Take(table.Find(7), start+second, 2, 0)
			table.Refund(table.Find(7), start+second, 2, 0, o.Receipt(2, 0, Ends{}))
		}, 2, 0, time.Second},
		"others took":         {func(table *Table) { take(table, 7, start, 1) }, 2, 1, 2 * time.Second},
		"more than was taken": {func(*Table) {}, 4, 1, 0},
		"a skew late": {func(table *Table) {
			table.watermark.Store(uint64(start) + table.Plan().skew)
			table.swept.Store(table.watermark.Load())
		}, 1, 0, 2 * time.Second},
		"more than a skew late": {func(table *Table) {
			table.watermark.Store(uint64(start) + table.Plan().skew + 1)
			table.swept.Store(table.watermark.Load())
		}, 1, 1, -1},
	} {
		table := newTable(t, 8, 8, nil)
		p := table.Find(7)
		o := table.Take(p, start, 3, 0)
		c.before(table)
		read := 0
		clock := func() int64 {
			read++
			return max(start, table.Watermark())
		}
		back := table.RefundBy(p, clock, c.n, 0, o.Receipt(3, 0, Ends{}))
		require.Equal(t, Admitted, back.Verdict, name)
		require.Equal(t, c.read, read, name)
		if c.want >= 0 {
			tick := table.Plan().bucket.Ticks(start) + uint64(c.want)
			require.Equal(t, atomicbucket.NewState(atomicbucket.Live, 0, tick).Payload(), back.State.Payload(), name)
		}
		if c.read == 0 {
			require.Equal(t, start, back.At, name)
			require.Equal(t, o.State.Version(), back.State.Version(), name)
		}
	}
}

// TestARefundOfALogAheadOfItsClock: a refund that is ahead of its clock is made at the clock's time. At that time, the
// older of the two requests is still in the window. A refund before its clock's time is made at its own time.
func TestARefundOfALogAheadOfItsClock(t *testing.T) {
	table := newTable(t, 1, 1, func(c *Config) { c.Plan = logOf(t, 5) })
	p := table.Find(1)
	require.Equal(t, Admitted, take(table, 1, start, 1))
	require.Equal(t, Admitted, take(table, 1, start+30*second, 1))
	clock := start + 31*second
	o := table.RefundAt(p, start+61*second, clock, 1, TierQuota(0), Receipt{})
	require.Equal(t, Admitted, o.Verdict)
	require.Equal(t, clock, o.At)
	_, status := table.Peek(p, clock, 0, 0)
	require.EqualValues(t, 4, status.Remaining)
	require.Equal(t, clock-second, table.RefundAt(p, clock-second, clock, 1, TierQuota(0), Receipt{}).At)
}

// TestARefundWhileAReservationWaits (I1): a refund of a charge does not give back what comes back with time before a
// reservation is due. So no other take is admitted for the time at which the reservation is due.
func TestARefundWhileAReservationWaits(t *testing.T) {
	for at, want := range map[int64]int64{start: 4 * second, start + 3*second: second, start + 4*second: second} {
		table := newTable(t, 8, 8, nil)
		p, other := table.Find(1), table.Find(2)
		require.Same(t, table.neighbourhood(p), table.neighbourhood(other))
		o, charged := table.Charge(p, start, start, 20, TierQuota(0), nil)
		require.EqualValues(t, 20, charged)
		_, charged = table.Charge(p, start, start, 1, TierQuota(0), nil)
		require.EqualValues(t, 1, charged)
		require.Equal(t, Admitted, take(table, 2, start, 5))
		require.Equal(t, 3*time.Second, table.Reserve(other, start, 3, 0, time.Minute).Overdrawn(0))
		back := table.Refund(p, at, 20, 0, o.Receipt(20, 0, Ends{}))
		require.Equal(t, Admitted, back.Verdict)
		require.EqualValues(t, want, bucketOf(table).Debt(back.State.Record(), uint64(at)))
	}
}

// TestARefundOfMoreThanAWordHolds: a refund whose cost does not fit into a word gives back everything that was taken.
func TestARefundOfMoreThanAWordHolds(t *testing.T) {
	table := newTable(t, 1, 1, nil)
	require.Equal(t, Admitted, take(table, 1, start, 3))
	require.Equal(t, Admitted, table.Refund(table.Find(1), start, 1<<60, 0, Receipt{}).Verdict)
	_, status := table.Peek(table.Find(1), start, 0, 0)
	require.EqualValues(t, 5, status.Remaining)
}
