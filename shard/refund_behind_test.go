package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestARefundByAClockIsOneAtItsTime (I1): R15. [Table.RefundBy] has the same result as [Table.Refund] at the time of
// the clock. That is true if other calls have taken since, and also where the shorter path of RefundBy does not apply.
func TestARefundByAClockIsOneAtItsTime(t *testing.T) {
	for name, c := range map[string]struct {
		scene func(t *testing.T, table *Table) (receipt Receipt, at int64)
		want  int64 // what the bucket owes afterwards
	}{
		// The five tokens are back at 5 s. Another take was granted at 3 s, when three of them were back, so a refund
		// gives back the other two.
		"a take ahead of the clock came behind": {func(t *testing.T, table *Table) (Receipt, int64) {
			p := table.Find(1)
			o := table.Take(p, start, 5, 0)
			require.Equal(t, Admitted, table.TakeAt(p, start+3*second, start, 1, TierQuota(0), nil).Verdict)
			return o.Receipt(5, 0, Ends{}), start + second
		}, 3 * second},
		// A part of the debt may belong to a reservation that waits until 3 s.
		"a reservation may wait": {func(t *testing.T, table *Table) (Receipt, int64) {
			p, other := table.Find(1), table.Find(2)
			o, charged := table.Charge(p, start, start, 20, TierQuota(0), nil)
			require.EqualValues(t, 20, charged)
			_, charged = table.Charge(p, start, start, 1, TierQuota(0), nil)
			require.EqualValues(t, 1, charged)
			require.Equal(t, Admitted, take(table, 2, start, 5))
			require.Equal(t, 3*time.Second, table.Reserve(other, start, 3, 0, time.Minute).Overdrawn(0))
			return o.Receipt(20, 0, Ends{}), start + second
		}, 3 * second},
		// The two tokens that the bucket owed before the take of three have been given back since. Of the three, one
		// has come back with time.
		"others gave back": {func(t *testing.T, table *Table) (Receipt, int64) {
			p := table.Find(1)
			require.Equal(t, Admitted, take(table, 1, start, 2))
			o := table.Take(p, start, 3, 0)
			require.Equal(t, Admitted, table.Refund(p, start, 2, 0, Receipt{}).Verdict)
			require.Equal(t, Admitted, take(table, 1, start, 2))
			return o.Receipt(3, 0, Ends{}), start + second
		}, 2 * second},
		// On the circle of payloads, the take seems to have been made at this moment.
		"a turn of the circle later": {func(t *testing.T, table *Table) (Receipt, int64) {
			o := table.Take(table.Find(1), start, 5, 0)
			now, skew := start, table.Plan().skew
			for range circleSkews { // each step is too short to need a sweep
				now += int64(skew)
				table.watermark.Store(uint64(now))
				table.swept.Store(uint64(now))
				require.Equal(t, Admitted, take(table, 1, now, 2))
			}
			require.Equal(t, o.State.Version(), table.Find(1).slot(0).state.Load().Version())
			require.Positive(t, bucketOf(table).Debt(o.State.Record(), uint64(now)))
			return o.Receipt(5, 0, Ends{}), now
		}, 2 * second},
	} {
		t.Run(name, func(t *testing.T) {
			for verb, refund := range map[string]func(*Table, Place, int64, Receipt) Outcome{
				"by a clock": func(table *Table, p Place, at int64, r Receipt) Outcome {
					return table.RefundBy(p, func() int64 { return at }, r.Tokens(), 0, r)
				},
				"at the time": func(table *Table, p Place, at int64, r Receipt) Outcome {
					return table.Refund(p, at, r.Tokens(), 0, r)
				},
			} {
				table := newTable(t, 8, 8, nil)
				receipt, at := c.scene(t, table)
				back := refund(table, table.Find(1), at, receipt)
				require.Equal(t, Admitted, back.Verdict, verb)
				require.Equal(t, at, back.At, verb)
				require.EqualValues(t, c.want, bucketOf(table).Debt(back.State.Record(), uint64(at)), verb)
			}
		})
	}
}

// TestARefundByAClockOfEachAlgorithm: a refund by a clock has the same result as a refund at the clock's time, whether
// or not other calls have taken since.
func TestARefundByAClockOfEachAlgorithm(t *testing.T) {
	inFlight, err := atomicbucket.NewConcurrency(5, 5, time.Minute)
	require.NoError(t, err)
	algorithms := algorithmsOfFive(t)
	algorithms["in flight"] = &inFlight
	for kind, algorithm := range algorithms {
		for _, others := range []uint64{0, 1} {
			var after [2]atomicbucket.State
			for i, refund := range []func(*Table, Place, Receipt) Outcome{
				func(table *Table, p Place, r Receipt) Outcome {
					return table.RefundBy(p, func() int64 { return start }, 1, 0, r)
				},
				func(table *Table, p Place, r Receipt) Outcome { return table.Refund(p, start, 1, 0, r) },
			} {
				plan, err := NewPlan(algorithm, 0)
				require.NoError(t, err)
				table := newTable(t, 1, 1, func(c *Config) { c.Plan = plan })
				p := table.Find(1)
				require.Equal(t, Admitted, take(table, 1, start, 1))
				o := table.Take(p, start, 2, 0)
				require.Equal(t, Admitted, o.Verdict)
				for range others {
					require.Equal(t, Admitted, take(table, 1, start, 1))
				}
				back := refund(table, p, o.Receipt(2, 0, Ends{}))
				require.Equal(t, Admitted, back.Verdict, kind)
				_, status := table.Peek(p, start, 0, 0)
				require.Equal(t, 3-others, status.Remaining, kind)
				after[i] = back.State
			}
			require.Equal(t, after[1], after[0], "%s, %d others", kind, others)
		}
	}
}

// TestARefundByALateClockLooksAtTheRecordAgain (I1): as TestARefundThatIsSuspendedAfterItsClock, but the watermark is
// later than the clock's time, and earlier than the last take. The refund reads the record again, finds the last take
// in it, and starts over.
func TestARefundByALateClockLooksAtTheRecordAgain(t *testing.T) {
	table := newTable(t, 8, 8, nil)
	p := table.Find(7)
	first := table.Take(p, start, 2, 0)
	require.Equal(t, Admitted, take(table, 7, start, 1))
	read := 0
	clock := func() int64 {
		if read++; read > 1 {
			return start + second
		}
		table.raise(start + second/2)
		require.Equal(t, Admitted, take(table, 7, start+second, 1))
		return start
	}
	back := table.RefundBy(p, clock, 2, 0, first.Receipt(2, 0, Ends{}))
	require.Equal(t, Admitted, back.Verdict)
	require.Equal(t, 2, read)
	require.EqualValues(t, 2*second, bucketOf(table).Debt(back.State.Record(), uint64(start+second)))
}

// TestARefundByAReceiptWhoseVersionIsThatOfNothing: a forgotten record may have had version 0, which is also the
// version of the zero record. A refund of a take from the forgotten record must not treat the zero record as that
// record.
func TestARefundByAReceiptWhoseVersionIsThatOfNothing(t *testing.T) {
	table := newTable(t, 1, 1, nil)
	p := table.Find(7)
	o := table.Take(p, start, 1, 0)
	for o.State.Version() != 0 {
		require.Equal(t, Admitted, table.Refund(p, start, 1, 0, Receipt{}).Verdict)
		o = table.Take(p, start, 1, 0)
		require.Equal(t, Admitted, o.Verdict)
	}
	const now = start + 100*second
	require.True(t, table.Sweep(now, nil))
	require.Zero(t, records(table, 7))
	back := table.RefundBy(p, func() int64 { return now }, 1, 0, o.Receipt(1, 0, table.Ends(p)))
	require.Equal(t, Refused, back.Verdict)
	require.Equal(t, now, back.At)
}

// TestARefundOfNoTakeByAClock: a refund without a receipt uses the tier with which it is called.
func TestARefundOfNoTakeByAClock(t *testing.T) {
	table := newTable(t, 1, 1, func(c *Config) { c.Plan.SetTier(1, Blocked()) })
	require.Equal(t, Admitted, take(table, 7, start, 3))
	for tier, want := range []Verdict{Admitted, Refused} {
		back := table.RefundBy(table.Find(7), func() int64 { return start }, 1, uint8(tier), Receipt{})
		require.Equal(t, want, back.Verdict)
		require.EqualValues(t, 2*second, bucketOf(table).Debt(back.State.Record(), uint64(start)))
	}
}

// TestWhatLeavesIsGivenBackAfterAForcedEndNearBy (R16): a receipt of tokens in flight stays valid after a forced end of
// another key's tenure, and after a change of the plan.
func TestWhatLeavesIsGivenBackAfterAForcedEndNearBy(t *testing.T) {
	of := func(limit uint64) *Plan {
		algorithm, err := atomicbucket.NewConcurrency(limit, 5, time.Second)
		require.NoError(t, err)
		plan, err := NewPlan(&algorithm, 0)
		require.NoError(t, err)
		return plan
	}
	for name, happens := range map[string]func(table *Table){
		"a reset": func(table *Table) {
			require.Equal(t, Admitted, take(table, 2, start, 1))
			require.True(t, table.Reset(table.Find(2)))
		},
		"another plan": func(table *Table) { table.Adopt(of(4), clockAt(start)) },
		"one that admits nothing": func(table *Table) {
			plan := of(4)
			plan.SetTier(0, Blocked())
			table.Adopt(plan, clockAt(start))
		},
	} {
		table := newTable(t, 8, 8, func(c *Config) { c.Plan = of(5) })
		p := table.Find(1)
		ends := table.Ends(p)
		o := table.Take(p, start, 3, 0)
		happens(table)
		back := table.Refund(p, start, 3, 0, o.Receipt(3, 0, ends))
		require.Equal(t, Admitted, back.Verdict, name)
		require.Zero(t, table.Plan().algorithm.Debt(back.State.Record(), table.Plan().algorithm.Ticks(start)), name)
	}
}
