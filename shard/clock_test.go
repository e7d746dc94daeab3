package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

func clockAt(now int64) func() int64 { return func() int64 { return now } }

// TestTheWatermarkFollowsTheEarlierOfTwoTimes (R7): the watermark moves to the time of a call or to its clock,
// whichever is earlier, and only if the call would otherwise be too far ahead of the watermark.
func TestTheWatermarkFollowsTheEarlierOfTwoTimes(t *testing.T) {
	skew := int64(planOf(t, perSecond(t, 1, 5)).skew)
	for name, call := range map[string]func(tb *Table, now, clock int64) int64{
		"decide": func(tb *Table, now, clock int64) int64 {
			var status atomicbucket.Status
			return tb.TakeAt(tb.Find(1), now, clock, 1, Quota{}, &status).At
		},
		"peek": func(tb *Table, now, clock int64) int64 {
			o, _ := tb.PeekAt(tb.Find(1), now, clock, 1, Quota{})
			return o.At
		},
		"refund": func(tb *Table, now, clock int64) int64 {
			return tb.RefundAt(tb.Find(1), now, clock, 1, Quota{}, Receipt{}).At
		},
		"reserve": func(tb *Table, now, clock int64) int64 { return tb.ReserveAt(tb.Find(1), now, clock, 1, Quota{}, 0).At },
	} {
		for _, c := range []struct{ now, clock, at, watermark int64 }{
			{second, 0, second, 0},
			{second, second, second, 0},
			{second, 10 * second, second, 0},
			{second, 9 * skew, second, 0},
			{skew, 0, skew, 0},
			{skew + 5, 10, skew + 5, 10},
			{skew + 5, skew + 5, skew + 5, skew + 5},
			{skew + 5, 9 * skew, skew + 5, skew + 5},
			{skew / 2, -5, skew / 2, 0},
			{-5, -5, 0, 0},
			{-5, 9 * skew, 0, 0},
			{5 * skew, 5 * skew, 5 * skew, 4 * skew}, // then the call is a skew ahead of the watermark
		} {
			table := newTable(t, 4, 4, nil)
			at := call(table, start+c.now, start+c.clock)
			assert.Equal(t, c.at, at-start, "%s: %+v", name, c)
			assert.Equal(t, c.watermark, table.Watermark()-start, "%s: %+v", name, c)
		}
	}
}

// TestTheWatermarkIsNotRaisedToATimeBeforeTheOrigin (R7): a call reads a record by a later plan with the same tag. It
// therefore computes a time before the origin, and raises the watermark to that time. The watermark must not change.
// (The compare-and-swap of such a claim fails.)
func TestTheWatermarkIsNotRaisedToATimeBeforeTheOrigin(t *testing.T) {
	plan := planOf(t, perSecond(t, 1, 5))
	long := plan.idleSince(atomicbucket.NewState(plan.live, 0, plan.bucket.Ticks(2*second)), second)
	require.Negative(t, long)
	table := newTable(t, 1, 1, nil)
	table.raise(long)
	assert.Equal(t, start, table.Watermark())
}

// TestAnInsertFarAheadOfTheWatermarkClaimsNothing (R7): an insert more than a skew ahead of the watermark is undecided
// and leaves no record. This happens if a plan with a smaller skew becomes current during the call.
func TestAnInsertFarAheadOfTheWatermarkClaimsNothing(t *testing.T) {
	table := newTable(t, 1, 1, nil)
	for ahead, want := range map[int64]Verdict{0: Admitted, 1: Undecided} {
		now := start + int64(table.Plan().skew) + ahead
		assert.Equal(t, want, table.insert(table.Find(1), &request{now: now, clock: now, n: 1}).Verdict)
		assert.Equal(t, want == Admitted, table.Reset(table.Find(1)))
		assert.Equal(t, start, table.Watermark())
	}
	assert.Equal(t, atomicbucket.Free, table.Find(1).home.state.Load().Tag())
}

// TestALeapIsMadeInSteps (R7): each step is at most four skews, plus any number of whole turns. If the watermark is
// more than a skew ahead of the last sweep, a sweep comes before the step.
func TestALeapIsMadeInSteps(t *testing.T) {
	const skew = 1 << 20
	for _, c := range []struct{ ahead, step uint64 }{
		{0, 0}, {1, 1}, {skew + 1, skew + 1}, {4*skew - 1, 4*skew - 1}, {4 * skew, 4 * skew}, {4*skew + 1, 4 * skew},
		{19 * skew, 4 * skew}, {20*skew - 1, 4 * skew}, {20 * skew, 20 * skew}, {20*skew + 1, 20 * skew}, {35*skew + 7, 20 * skew},
		{36 * skew, 36 * skew}, {1 << 60, 1<<60 - 12*skew},
	} {
		assert.Equal(t, c.step, leap(c.ahead, skew), "%d", c.ahead)
	}
	table := newTable(t, 4, 4, nil)
	ahead := int64(table.Plan().skew)
	table.raise(start + ahead)
	assert.Zero(t, table.Stats().Epoch, "not more than a skew since the last sweep")
	table.raise(start + ahead + 1)
	assert.Zero(t, table.Stats().Epoch)
	table.raise(start + ahead + 2)
	assert.EqualValues(t, 1, table.Stats().Epoch)
	assert.Equal(t, start+ahead+2, table.Watermark())
	table.raise(start)
	assert.Equal(t, start+ahead+2, table.Watermark(), "it never falls")
	assert.Equal(t, start+ahead+2, table.catchUp(start))
	assert.Equal(t, start+2*ahead+2, table.catchUp(start+2*ahead+2), "a skew ahead")
	assert.Zero(t, table.advancing.Load(), "no call is about to move it")
	assert.Equal(t, start+ahead+2, table.Watermark())
}

// TestTheWatermarkGoesNoFurther: raise moves the watermark exactly to the given time, even while the plan is being
// replaced.
func TestTheWatermarkGoesNoFurther(t *testing.T) {
	table := newTable(t, 4, 4, nil)
	table.pace.Store(table.Plan().skew | replacingBit)
	for _, to := range []int64{start + 7, start + 3*int64(table.Plan().skew), start + 20*int64(table.Plan().skew)} {
		table.raise(to)
		assert.Equal(t, to, table.Watermark())
	}
}

// TestALeapTakesFewSweeps: the number of sweeps does not depend on the number of turns of the circle.
func TestALeapTakesFewSweeps(t *testing.T) {
	table := newTable(t, 4, 4, func(c *Config) {
		window, err := atomicbucket.NewFixedWindow(5, atomicbucket.MaxLimit, time.Minute, false)
		require.NoError(t, err)
		c.Plan, err = NewPlan(&window, 0)
		require.NoError(t, err)
	})
	later := start + 365*24*3600*second
	require.Greater(t, (later-start)/int64(table.Plan().skew), int64(1000*circleSkews))
	assert.Equal(t, later, table.catchUp(later))
	assert.LessOrEqual(t, table.Stats().Epoch, uint64(circleSkews/leapStep+1))
}

// TestVerdicts checks which verdicts admit a request, and which report that tokens are missing.
func TestVerdicts(t *testing.T) {
	for verdict, want := range map[Verdict][2]bool{
		Refused: {false, true}, Doubtful: {false, true}, Admitted: {true, false}, NoRoom: {false, false},
		Unrecorded: {true, false}, TooMuch: {false, false}, Undecided: {false, false},
		UnlimitedQuota: {true, false},
	} {
		assert.Equal(t, want, [2]bool{verdict.Admits(), verdict.Refuses()}, verdict)
	}
}

// TestDecideTellsTheStatus: Decide sets the status after an admitted take and for a refused request, and leaves it
// unchanged otherwise.
func TestDecideTellsTheStatus(t *testing.T) {
	for kind, plan := range map[string]*Plan{"bucket": planOf(t, perSecond(t, 1, 5)), "log": logOf(t, 5)} {
		table := newTable(t, 1, 1, func(c *Config) { c.Plan, c.Overflow = plan, Refuse })
		p, algorithm := table.Find(1), plan.algorithm
		var status atomicbucket.Status
		decide := func(n uint64) Verdict { return table.Decide(p, start, n, 0, &status).Verdict }
		require.Equal(t, Admitted, decide(2), kind)
		assert.Equal(t, []uint64{3, 0}, []uint64{status.Remaining, uint64(status.RetryAfter)}, kind)
		require.Equal(t, Admitted, decide(1), kind)
		assert.Equal(t, []uint64{2, 0}, []uint64{status.Remaining, uint64(status.RetryAfter)}, kind)
		require.Equal(t, Refused, decide(4), kind)
		record, _, _ := table.record(p)
		assert.Equal(t, algorithm.Status(record, start, algorithm.Quota().Demand(4)), status, kind)
		assert.NotZero(t, status.RetryAfter, kind)
		status = atomicbucket.Status{Remaining: 77}
		require.Equal(t, TooMuch, decide(6), kind)
		assert.EqualValues(t, 77, status.Remaining, kind)
		p = table.Find(2)
		require.Equal(t, NoRoom, decide(1), kind)
		assert.EqualValues(t, 77, status.Remaining, kind)

		table = newTable(t, 1, 1, func(c *Config) { c.Plan, c.Overflow = plan, Admit })
		require.Equal(t, Admitted, take(table, 1, start, 5))
		p = table.Find(2)
		require.Equal(t, Unrecorded, decide(2), kind)
		assert.EqualValues(t, 3, status.Remaining, kind)
		require.Equal(t, Unrecorded, decide(1), kind)
		assert.EqualValues(t, 4, status.Remaining, "nothing is recorded: %s", kind)
	}
}
