package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAPriceThatAnotherOffersIsEntered (R27): a conversion to a lower price is recorded even if another call has
// offered this price. Otherwise a refund would underestimate how fast debts may have come back.
func TestAPriceThatAnotherOffersIsEntered(t *testing.T) {
	const usual, fastest, fast = time.Second, time.Microsecond, time.Millisecond
	table, p, under := priced(t, usual)
	require.Equal(t, Admitted, table.TakeAt(p, start, start, 100, under(usual), nil).Verdict)
	record, plan, sl := table.record(p)
	_, offered := record.Ring.Offer(record.State, uint64(fastest), &sl.state)
	require.True(t, offered)
	later := start + int64(50*time.Second)
	require.Equal(t, Admitted, table.TakeAt(p, later, later, 1, under(fast), nil).Verdict)
	price, known := table.LastPrice(p)
	require.True(t, known)
	require.EqualValues(t, fastest, price)
	if least := table.lowestPrice(plan, uint64(usual)); least != plan.bucket.Sixteenths(uint64(fastest)) {
		t.Errorf("broken: R27: debts came back at %d sixteenths of a nanosecond a token at most", least)
	}
}

// TestAReceiptOfATakeAtAnotherCallsPrice: the receipt names the version that the record has after the take. Otherwise a
// refund would count the time since the take as if other refunds had come in between.
func TestAReceiptOfATakeAtAnotherCallsPrice(t *testing.T) {
	const usual, offer, own = time.Second, 2 * time.Second, 4 * time.Second
	table, p, under := priced(t, usual)
	require.Equal(t, Admitted, table.TakeAt(p, start, start, 50, under(usual), nil).Verdict)
	record, _, sl := table.record(p)
	_, offered := record.Ring.Offer(record.State, uint64(offer), &sl.state)
	require.True(t, offered)
	o := table.TakeAt(p, start, start, 1, under(own), nil)
	require.Equal(t, Admitted, o.Verdict)
	price, known := table.LastPrice(p)
	require.True(t, known)
	require.EqualValues(t, offer, price)

	receipt := o.Receipt(1, 0, table.Ends(p))
	record, _, _ = table.record(p)
	require.True(t, receipt.sameVersion(record.State))
}
