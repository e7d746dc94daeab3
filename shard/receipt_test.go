package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestAReceiptOfAQuota knows what a token cost, which is twice what it costs in the tier of the plan. So all is given
// back although others gave back, too, and of a part what the part is.
func TestAReceiptOfAQuota(t *testing.T) {
	for n, want := range map[uint64]int64{4: 1, 2: 5} {
		table := newTable(t, 1, 1, func(c *Config) { c.Plan = planOf(t, perSecond(t, 1, 20)) })
		p, plan := table.Find(1), table.Plan()
		quota := plan.Quota(0)
		quota.Token, quota.Tokens = 2*quota.Token, 10
		double := plan.NewQuota(quota)
		o := table.TakeAt(p, start, start, 4, double, nil)
		var receipt Receipt
		receipt.Enter(&o, 4, double, Ends{})
		one := table.Take(p, start, 1, 0)
		for range 2 { // so that the version says that others gave back
			other := table.Take(p, start, 1, 0)
			require.Equal(t, Admitted, table.Refund(p, start, 1, 0, other.Receipt(1, 0, Ends{})).Verdict)
			table.Refund(p, start, 1, 0, Receipt{})
			require.Equal(t, Admitted, table.Take(p, start, 1, 0).Verdict)
		}
		require.Equal(t, Admitted, one.Verdict)
		back := table.RefundAt(p, start, start, n, double, receipt)
		owed := func(s atomicbucket.State) int64 { return int64(plan.bucket.Debt(s.Record(), plan.bucket.Ticks(start))) }
		require.Equal(t, want*second, owed(back.State))
		back = table.RefundAt(p, start, start, 4-n, double, receipt.Less(n, back.State))
		require.Equal(t, second, owed(back.State), "the rest")
	}
}

// TestAReceiptOfALog forgets just its own request.
func TestAReceiptOfALog(t *testing.T) {
	table := newTable(t, 1, 1, func(c *Config) { c.Plan = logOf(t, 5) })
	p := table.Find(1)
	require.Equal(t, Admitted, take(table, 1, start, 1))
	o := table.Take(p, start+second, 1, 0)
	require.Equal(t, Admitted, take(table, 1, start+2*second, 1))
	require.Equal(t, Admitted, table.Refund(p, start+2*second, 1, 0, o.Receipt(1, 0, Ends{})).Verdict)
	_, four := table.Peek(p, start+2*second, 4, 0)
	_, five := table.Peek(p, start+2*second, 5, 0)
	require.EqualValues(t, 3, five.Remaining)
	require.Equal(t, 2*time.Second, five.RetryAfter-four.RetryAfter, "the first and the last are still there")

	// Requests stay what they are when the plan is replaced.
	o = table.Take(p, start+2*second, 1, 0)
	table.Adopt(logOf(t, 4), start+2*second)
	require.Equal(t, Admitted, table.Refund(p, start+2*second, 1, 0, o.Receipt(1, 0, Ends{})).Verdict)
}

// TestWhatIsForgottenInFlight is counted when the record moves on: what was entered and never left.
func TestWhatIsForgottenInFlight(t *testing.T) {
	algorithm, err := atomicbucket.NewConcurrency(5, 5, time.Second)
	require.NoError(t, err)
	plan, err := NewPlan(&algorithm, 0)
	require.NoError(t, err)
	table := newTable(t, 1, 1, func(c *Config) { c.Plan = plan })
	require.Equal(t, Admitted, take(table, 1, start, 3))
	require.Equal(t, Admitted, take(table, 1, start+second, 1))
	require.Zero(t, table.Stats().Forgotten)
	require.Equal(t, Admitted, take(table, 1, start+2*second, 1))
	require.EqualValues(t, 3, table.Stats().Forgotten)
	table.Sweep(start+10*second, nil)
	require.EqualValues(t, 5, table.Stats().Forgotten)
}

// TestTheStatusOfTheLastToken says that none is left. Nobody has asked for another one, so there is none to wait for.
func TestTheStatusOfTheLastToken(t *testing.T) {
	table := newTable(t, 1, 1, func(c *Config) { c.Plan = logOf(t, 5) })
	require.Equal(t, Admitted, take(table, 1, start, 4))
	var status atomicbucket.Status
	require.Equal(t, Admitted, table.Decide(table.Find(1), start, 1, 0, &status).Verdict)
	require.Zero(t, status.Remaining)
	require.Zero(t, status.RetryAfter)
	require.Positive(t, status.ResetAfter)
}

// TestAReservationUnderAPlanWhoseRefusalsCost is refused if it would have to wait for too long, and costs nothing.
func TestAReservationUnderAPlanWhoseRefusalsCost(t *testing.T) {
	table := newTable(t, 1, 1, func(c *Config) { c.Plan.SetCharges(2, Penalty) })
	require.Equal(t, Admitted, take(table, 1, start, 5))
	require.Equal(t, Refused, table.Reserve(table.Find(1), start, 1, 0, 0).Verdict)
	_, status := table.Peek(table.Find(1), start, 0, 0)
	require.Equal(t, 5*time.Second, status.ResetAfter)
}
