//go:build explore

package shard

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestARefundToAnUntouchedBucketBesideATakeAtEveryStep (I1, I2): another call takes a token before any operation of
// RefundBy. Afterwards the bucket owes that token. The bucket is no longer as the first take left it, so the refund
// reads the clock, once.
func TestARefundToAnUntouchedBucketBesideATakeAtEveryStep(t *testing.T) {
	times := map[int]int{}
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 1, 1, nil)
		p := tb.Find(1)
		o := tb.Take(p, start, 3, 0)
		receipt := o.Receipt(3, 0, tb.Ends(p))
		read := 0
		clock := func() int64 { read++; return start }
		var back Outcome
		return func() { back = tb.RefundBy(p, clock, 3, 0, receipt) },
			func() { require.Equal(t, Admitted, take(tb, 1, start, 1)) },
			func(what string) {
				times[read]++
				assert.Equal(t, Admitted, back.Verdict, what)
				assert.EqualValues(t, second, bucketOf(tb).Debt(p.home.state.Load().Record(), uint64(start)), what)
			}
	})
	assert.Equal(t, map[int]int{1: 6}, times)
}

// TestTheOperationsOfARefundByAClockAhead (R7): a refund whose clock is at most a skew ahead of the watermark checks
// the record and the receipt once. If the clock is one nanosecond further ahead, the refund first moves the watermark,
// and then checks again.
func TestTheOperationsOfARefundByAClockAhead(t *testing.T) {
	for more, want := range map[int64]string{
		0: "s0 k0 p ends w leading promised s0?",
		1: "s0 k0 p ends w w p moving+ pace swept w? moving+ w s0 k0 p w ends leading promised s0?",
	} {
		tb := newTable(t, 1, 1, nil)
		p := tb.Find(1)
		o := tb.Take(p, start, 1, 0)
		receipt := o.Receipt(1, 0, tb.Ends(p))
		require.Equal(t, Admitted, take(tb, 1, start, 1))
		clock := start + int64(tb.Plan().skew) + more
		assert.Equal(t, want, operations(tb, func() { tb.RefundBy(p, func() int64 { return clock }, 1, 0, receipt) }), more)
	}
}
