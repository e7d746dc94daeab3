//go:build explore

package shard

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/internal/word"
)

// The prices of TestALateOffer have no common divisor.
const usualPrice, leftPrice, latePrice = 7, 11, 13

// A lateOffer is the state of a record after an offer came late.
type lateOffer struct {
	same            bool   // the states in before and between have the same mark, so the offer looks valid
	admitted        uint64 // tokens
	owed, price     uint64 // ticks
	what            string
	before, between atomicbucket.State // the state of the offer, and the state in which the late call met it
}

// lateOffers makes a call at latePrice, once for each of its operations. Before the call starts, another call has
// offered leftPrice for an earlier state, and was then suspended. Before the operation in question, other calls take n
// tokens at the usual price, and then one token at leftPrice.
func lateOffers(t *testing.T, n uint64) (all []lateOffer) {
	interleave.Inject(func() (call, other func(), check func(string)) {
		algorithm, err := atomicbucket.NewTicks(1 << 51)
		require.NoError(t, err)
		plan, err := NewPlan(&algorithm, 0)
		require.NoError(t, err)
		table, err := New(Config{Plan: plan, Slots: 1, Shards: 1, ProbeWindow: 1, Overflow: Refuse, Start: noon})
		require.NoError(t, err)
		p, o := table.Find(1), lateOffer{}
		take := func(n, price uint64) {
			q := plan.NewQuota(atomicbucket.Quota{Token: price, Tokens: 1 << 32})
			require.Equal(t, Admitted, table.TakeAt(p, noon, noon, n, q, nil).Verdict)
			o.admitted += n
		}
		take(1, usualPrice)
		record, _, sl := table.record(p)
		_, offered := record.Ring.Offer(record.State, leftPrice, &sl.state)
		require.True(t, offered)
		o.before = record.State
		take(1, usualPrice)
		return func() { take(1, latePrice) },
			func() {
				take(n, usualPrice)
				record, _, _ := table.record(p)
				o.between, o.same = record.State, markOf(record.State) == markOf(o.before)
				take(1, leftPrice)
			},
			func(what string) {
				record, _, _ := table.record(p)
				price, known := record.Ring.Price(record.State)
				require.True(t, known)
				o.price, o.owed, o.what = price, plan.bucket.Debt(record, plan.bucket.Ticks(noon)), what
				all = append(all, o)
			}
	})
	return all
}

// markOf returns the bits that distinguish an offer for one state from an offer for another.
func markOf(s atomicbucket.State) uint64 {
	var at atomicbucket.Word
	(*word.Word)(unsafe.Pointer(&at)).Poke(uint64(s))
	ring := make(atomicbucket.Ring, 2)
	ring.Begin(s, 1)
	ring.Offer(s, 1, &at)
	return ring[(s.Version()+1)&1].Peek() & (1<<12 - 1)
}

// TestALateOffer (I2, R27): other calls convert a record while a call offers a price. The record owes the admitted
// tokens at its price, with the one exception in R27: another call left an offer behind for a state that looks like the
// current one (1 of 4096). Then the record owes the time that was charged, at the late call's price.
func TestALateOffer(t *testing.T) {
	var before, between atomicbucket.State
	for n := uint64(1); n <= 200; n++ {
		for _, o := range lateOffers(t, n) {
			before, between = o.before, o.between
			if !o.same && o.owed != o.admitted*o.price {
				t.Fatalf("broken: I2: %s, beside %d: %d tokens were admitted, and the record owes %d ticks at a price of %d",
					o.what, n, o.admitted, o.owed, o.price)
			}
		}
	}
	n, looksSame, states := uint64(200), uint64(0), uint64(1<<16)
	for more := uint64(1); more <= states; more++ {
		if s := atomicbucket.NewState(between.Tag(), between.Version(), between.Payload()+more*usualPrice); markOf(s) == markOf(before) {
			n, looksSame = 200+more, looksSame+1
		}
	}
	if looksSame < states>>13 || looksSame > states>>11 {
		t.Fatalf("broken: I2: of %d states %d look the same, want one of 4096", states, looksSame)
	}
	exceptions := 0
	for _, o := range lateOffers(t, n) {
		require.True(t, o.same)
		if o.owed != o.admitted*o.price {
			exceptions++
			require.EqualValues(t, latePrice, o.price, o.what)
			require.Equal(t, (o.admitted-1)*leftPrice+latePrice, o.owed, o.what)
		}
	}
	require.Equal(t, 1, exceptions, "between two of its operations")
}
