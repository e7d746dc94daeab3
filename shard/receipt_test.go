package shard

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestAReceiptOfAQuota: a receipt has the price of the quota or tier of its take. So it gives back exactly the cost of
// the take, in whole or in part, even after other refunds.
func TestAReceiptOfAQuota(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		tier bool
		want int64
	}{{4, false, 1}, {2, false, 5}, {4, true, 1}, {2, true, 3}} {
		n, want := c.n, c.want
		table := newTable(t, 1, 1, func(c *Config) { c.Plan = planOf(t, perSecond(t, 1, 20)) })
		p, plan := table.Find(1), table.Plan()
		quota := plan.Quota(0)
		quota.Token, quota.Tokens = 2*quota.Token, 10
		quoted := plan.NewQuota(quota)
		if c.tier {
			quoted = TierQuota(0)
		}
		o := table.TakeAt(p, start, start, 4, quoted, nil)
		var receipt Receipt
		receipt.Enter(&o, 4, quoted, Ends{})
		one := table.Take(p, start, 1, 0)
		for range 2 { // because of this, the version shows that other takes were given back
			other := table.Take(p, start, 1, 0)
			require.Equal(t, Admitted, table.Refund(p, start, 1, 0, other.Receipt(1, 0, Ends{})).Verdict)
			table.Refund(p, start, 1, 0, Receipt{})
			require.Equal(t, Admitted, table.Take(p, start, 1, 0).Verdict)
		}
		require.Equal(t, Admitted, one.Verdict)
		back := table.RefundAt(p, start, start, n, quoted, receipt)
		owed := func(s atomicbucket.State) int64 { return int64(plan.bucket.Debt(s.Record(), plan.bucket.Ticks(start))) }
		require.Equal(t, want*second, owed(back.State))
		receipt.Less(n, back.State)
		require.Equal(t, 4-n, receipt.Tokens())
		back = table.RefundAt(p, start, start, 4-n, quoted, receipt)
		require.Equal(t, second, owed(back.State), "the rest")
	}
}

// TestAReceiptOfALog: a refund by a receipt removes exactly the receipt's own request from the log.
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

	// A replacement of the plan does not change the requests in a log, so the receipt stays valid.
	o = table.Take(p, start+2*second, 1, 0)
	table.Adopt(logOf(t, 4), clockAt(start+2*second))
	require.Equal(t, Admitted, table.Refund(p, start+2*second, 1, 0, o.Receipt(1, 0, Ends{})).Verdict)
}

// TestWhatIsForgottenInFlight: tokens in flight that are never given back are counted as forgotten when a call or a
// sweep drops the period of their take from the record.
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
	require.Equal(t, Admitted, take(table, 1, start+3*second, 1))
	require.EqualValues(t, 4, table.Stats().Forgotten)
	table.Sweep(start+10*second, nil)
	require.EqualValues(t, 6, table.Stats().Forgotten)

	for name, next := range map[string]func(table *Table) Verdict{
		"by a charge": func(table *Table) Verdict {
			o, _ := table.Charge(table.Find(1), start+2*second, start+2*second, 1, TierQuota(0), nil)
			return o.Verdict
		},
		"by another key in its place": func(table *Table) Verdict { return take(table, 2, start+2*second, 1) },
	} {
		table := newTable(t, 1, 1, func(c *Config) { c.Plan = plan })
		require.Equal(t, Admitted, take(table, 1, start, 3))
		require.Equal(t, Admitted, take(table, 1, start+second, 1))
		require.Equal(t, Admitted, next(table), name)
		require.EqualValues(t, 3, table.Stats().Forgotten, name)
	}
}

// TestWhatLeavesIsGivenBackUnderAnyQuota (R16): a receipt gives tokens in flight back even if the quota of its key now
// grants nothing.
func TestWhatLeavesIsGivenBackUnderAnyQuota(t *testing.T) {
	algorithm, err := atomicbucket.NewConcurrency(5, 5, time.Second)
	require.NoError(t, err)
	plan, err := NewPlan(&algorithm, 0)
	require.NoError(t, err)
	table := newTable(t, 1, 1, func(c *Config) { c.Plan = plan })
	p := table.Find(1)
	o := table.Take(p, start, 3, 0)
	receipt := o.Receipt(3, 0, Ends{})
	require.Equal(t, Refused, table.RefundAt(p, start, start, 1, Blocked(), Receipt{}).Verdict)
	require.Equal(t, Admitted, table.RefundAt(p, start, start, 2, Blocked(), receipt).Verdict)
	_, status := table.Peek(p, start, 1, 0)
	require.EqualValues(t, 4, status.Remaining)
}

// TestAReceiptOfAnotherPlan: a receipt of an earlier plan is void, however often the plan has been replaced since,
// unless it is for a log.
func TestAReceiptOfAnotherPlan(t *testing.T) {
	for name, c := range map[string]struct {
		plan func() *Plan
		want Verdict
	}{
		"bucket": {func() *Plan { return planOf(t, perSecond(t, 1, 5)) }, Refused},
		"log":    {func() *Plan { return logOf(t, 5) }, Admitted},
	} {
		for _, first := range []uint32{1, math.MaxUint32 - 1} {
			table := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan = c.plan() })
			p := table.Find(1)
			table.Plan().number = first
			for range 4 {
				o := table.Take(p, start, 1, 0)
				require.Equal(t, Admitted, o.Verdict)
				receipt := o.Receipt(1, 0, Ends{})
				table.Adopt(c.plan(), clockAt(start))
				require.NotZero(t, table.Plan().number)
				require.Equal(t, c.want, table.Refund(p, start, 1, 0, receipt).Verdict, name)
				o = table.Take(p, start, 1, 0)
				require.Equal(t, Admitted, o.Verdict)
				require.Equal(t, Admitted, table.Refund(p, start, 1, 0, o.Receipt(1, 0, Ends{})).Verdict, "of this plan")
				require.Equal(t, Refused, table.Refund(p, start, 1, 0, o.Receipt(1, 0, Ends{endUnderway})).Verdict, "beside an end")
				table.Reset(p)
				table.neighbourhood(p).ends.Store(0)
			}
		}
	}
}

// TestAdoptionsDoNotAddUp: rounding errors of many replacements do not add up. A key has about as many tokens left
// after them as before.
func TestAdoptionsDoNotAddUp(t *testing.T) {
	of := func(limit uint64) *Plan {
		window, err := atomicbucket.NewFixedWindow(limit, 200, time.Hour, false)
		require.NoError(t, err)
		plan, err := NewPlan(&window, 0)
		require.NoError(t, err)
		return plan
	}
	table := newTable(t, 1, 1, func(c *Config) { c.Plan = of(100) })
	require.Equal(t, Admitted, take(table, 1, start, 50))
	for range 100 {
		table.Adopt(of(101), clockAt(start))
		table.Adopt(of(100), clockAt(start))
	}
	_, status := table.Peek(table.Find(1), start, 0, 0)
	require.InDelta(t, 50, float64(status.Remaining), 5)
}

// TestATakeIsGivenBackInTwoParts: after a take has been given back in two parts, the record is as if the take had not
// been made.
func TestATakeIsGivenBackInTwoParts(t *testing.T) {
	inFlight, err := atomicbucket.NewConcurrency(5, 5, time.Minute)
	require.NoError(t, err)
	algorithms := algorithmsOfFive(t)
	algorithms["in flight"] = &inFlight
	for kind, algorithm := range algorithms {
		plan, err := NewPlan(algorithm, 0)
		require.NoError(t, err)
		table := newTable(t, 1, 1, func(c *Config) { c.Plan = plan })
		p := table.Find(1)
		first := table.Take(p, start, 1, 0)
		o := table.Take(p, start, 4, 0)
		require.Equal(t, Admitted, o.Verdict)
		receipt := o.Receipt(4, 0, table.Ends(p))
		back := table.Refund(p, start, 1, 0, receipt)
		require.Equal(t, Admitted, back.Verdict, kind)
		receipt.Less(1, back.State)
		require.EqualValues(t, 3, receipt.Tokens())
		back = table.Refund(p, start, 3, 0, receipt)
		require.Equal(t, Admitted, back.Verdict, kind)
		_, status := table.Peek(p, start, 1, 0)
		require.EqualValues(t, 4, status.Remaining, kind)
		if plan.isBucket {
			require.Equal(t, first.State, back.State, "to the bit")
		}
	}
}

// TestAReceiptOfATenureBefore: a receipt from before a reset gives back none of the tokens that are in flight now.
func TestAReceiptOfATenureBefore(t *testing.T) {
	algorithm, err := atomicbucket.NewConcurrency(5, 5, time.Minute)
	require.NoError(t, err)
	plan, err := NewPlan(&algorithm, 0)
	require.NoError(t, err)
	require.True(t, plan.InFlight())
	require.False(t, logOf(t, 5).InFlight())
	table := newTable(t, 1, 1, func(c *Config) { c.Plan = plan })
	p := table.Find(1)
	before := table.Take(p, start, 1, 0)
	require.True(t, table.Reset(p))
	require.Equal(t, Admitted, take(table, 1, start, 1))
	table.Refund(p, start, 1, 0, before.Receipt(1, 0, Ends{}))
	_, status := table.Peek(p, start, 1, 0)
	require.EqualValues(t, 4, status.Remaining)
}

// TestAReceiptOfNoTake: a receipt that identifies no take still names a number of tokens.
func TestAReceiptOfNoTake(t *testing.T) {
	r := Receipt{plan: logOf(t, 5), n: 2}
	r.EnterNone(3, TierQuota(2))
	require.False(t, r.IsKnown())
	require.EqualValues(t, 3, r.Tokens())
	require.Equal(t, TierQuota(2), r.Quota())
}

// TestTheStatusOfTheLastToken: the status after the last token says that none is left, but names no wait, because no
// further token was asked for.
func TestTheStatusOfTheLastToken(t *testing.T) {
	for kind, algorithm := range algorithmsOfFive(t) {
		for _, before := range []uint64{0, 3, 4} {
			plan, err := NewPlan(algorithm, 0)
			require.NoError(t, err)
			table := newTable(t, 1, 1, func(c *Config) { c.Plan = plan })
			if before > 0 {
				require.Equal(t, Admitted, take(table, 1, start, before))
			}
			var status atomicbucket.Status
			require.Equal(t, Admitted, table.Decide(table.Find(1), start, 5-before, 0, &status).Verdict)
			require.Zero(t, status.Remaining, kind)
			require.Zero(t, status.RetryAfter, kind)
			require.Positive(t, status.ResetAfter, kind)
		}
	}
}

// TestAReservationUnderAPlanWhoseRefusalsCost: a reservation that would have to wait too long is refused, and is not
// charged.
func TestAReservationUnderAPlanWhoseRefusalsCost(t *testing.T) {
	table := newTable(t, 1, 1, func(c *Config) { c.Plan.SetCharges(2, Penalty) })
	require.Equal(t, Admitted, take(table, 1, start, 5))
	require.Equal(t, Refused, table.Reserve(table.Find(1), start, 1, 0, 0).Verdict)
	require.Equal(t, TooMuch, table.Reserve(table.Find(1), start, 6, 0, time.Hour).Verdict)
	_, status := table.Peek(table.Find(1), start, 0, 0)
	require.Equal(t, 5*time.Second, status.ResetAfter)
}
