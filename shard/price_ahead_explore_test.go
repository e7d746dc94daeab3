//go:build explore

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// TestAnotherCallsPriceKeepsWhatIsAhead (I1, R27): a take ahead of its clock uses a slow price that another call has
// offered, instead of its own fast one. At the current time the key still owes what it took before.
func TestAnotherCallsPriceKeepsWhatIsAhead(t *testing.T) {
	const usual, fast, slow = 10 * time.Millisecond, time.Millisecond, time.Second
	table, p, under := priced(t, usual)
	require.Equal(t, Admitted, table.TakeAt(p, start, start, 100, under(usual), nil).Verdict)

	record, now, sl := table.record(p)
	table.storeLowestPrice(now, uint64(usual))
	table.raise(start)
	_, offered := record.Ring.Offer(record.State, uint64(slow), &sl.state)
	require.True(t, offered)

	require.Equal(t, Admitted, table.TakeAt(p, start+second, start, 1, under(fast), nil).Verdict)
	if v := table.TakeAt(p, start, start, 1, under(slow), nil).Verdict; v != Refused {
		t.Error("broken: I1: what was taken before is forgiven")
	}
	// The key owes 101 tokens, and not the thousand tokens that come back in a second at the fast price.
	status := atomicbucket.Status{}
	table.TakeAt(p, start, start, 1, under(slow), &status)
	require.LessOrEqual(t, status.RetryAfter, 2*slow)
}

// TestADebtForWhichThereIsNoRoom (I1, R27): a key owes more tokens than a record has room for at a slow price. A call
// with that price is refused, however far it is ahead of its clock.
func TestADebtForWhichThereIsNoRoom(t *testing.T) {
	algorithm, err := atomicbucket.NewTicks(1 << 51)
	require.NoError(t, err)
	quick, slow := atomicbucket.Quota{Token: 1000, Tokens: 200}, atomicbucket.Quota{Token: 1 << 44, Tokens: 1 << 7}
	plan, err := NewPlan(&algorithm, 0, quick, slow)
	require.NoError(t, err)
	table, err := New(Config{Plan: plan, Slots: 16, Shards: 1, ProbeWindow: 16, Start: start})
	require.NoError(t, err)
	p := table.Find(1)
	require.Equal(t, Admitted, table.TakeAt(p, start, start, 200, TierQuota(1), nil).Verdict)
	for _, ahead := range []int64{0, 1, 1 << 45, 1 << 50} {
		if v := table.TakeAt(p, start+ahead, start, 1, TierQuota(2), nil).Verdict; v != Refused {
			t.Errorf("broken: I1: a take %d ahead of its clock is admitted", ahead)
		}
	}
}

// TestAnOfferForWhichThereIsNoRoom (I5, R27): a call meets an offer of a price at which a record has no room for the
// debt. The call changes the state, so that the offer is for another state, and then returns.
func TestAnOfferForWhichThereIsNoRoom(t *testing.T) {
	algorithm, err := atomicbucket.NewTicks(1 << 51)
	require.NoError(t, err)
	quick, slow := atomicbucket.Quota{Token: 1000, Tokens: 200}, atomicbucket.Quota{Token: 1 << 44, Tokens: 1 << 7}
	other := atomicbucket.Quota{Token: 2000, Tokens: 400}
	plan, err := NewPlan(&algorithm, 0, quick, slow, other)
	require.NoError(t, err)
	table, err := New(Config{Plan: plan, Slots: 16, Shards: 1, ProbeWindow: 16, Start: start})
	require.NoError(t, err)
	p := table.Find(1)
	require.Equal(t, Admitted, table.TakeAt(p, start, start, 200, TierQuota(1), nil).Verdict)
	record, _, sl := table.record(p)
	_, offered := record.Ring.Offer(record.State, slow.Token, &sl.state)
	require.True(t, offered)
	steps := 0
	word.Before = func(word.Access) {
		if steps++; steps > 10_000 {
			word.Before = nil
			t.Error("broken: I5: a call does not end")
			t.FailNow()
		}
	}
	defer func() { word.Before = nil }()
	require.Equal(t, Admitted, table.TakeAt(p, start, start, 1, TierQuota(3), nil).Verdict)
	price, known := table.LastPrice(p)
	require.True(t, known)
	require.Equal(t, other.Token, price)
}

// TestAConversionKnowsEveryLimit (R24, R28): if a token costs the same by every tier and quota, a debt may have been
// taken under any of them. When the rate falls, only the part above all of these limits keeps its time, because it
// comes from a reservation. The rest keeps its number of tokens. If no quota can have the number in the word largest
// (R20), the whole debt keeps its number of tokens.
func TestAConversionKnowsEveryLimit(t *testing.T) {
	planOf := func(rate float64) *Plan {
		bucket := perSecond(t, rate, 10)
		plan, err := NewPlan(&bucket, 0, atomicbucket.Quota{Token: bucket.Quota().Token, Tokens: 100})
		require.NoError(t, err)
		return plan
	}
	for _, c := range []struct {
		rule, name string
		high       uint64
	}{{"R24", "a tier", 100}, {"R28", "a quota", 1000}} {
		table, err := New(Config{Plan: planOf(1), Slots: 16, Shards: 1, ProbeWindow: 16, Start: start})
		require.NoError(t, err)
		p, quota := table.Find(1), TierQuota(1)
		if c.high > 100 {
			require.True(t, table.Remember(c.high, clockAt(start)))
			require.True(t, table.Remember(c.high/2, clockAt(start)))
			if table.Largest() != c.high {
				t.Errorf("broken: R28: a table remembers %d, want %d", table.Largest(), c.high)
			}
			quota = table.Plan().NewQuota(atomicbucket.Quota{Token: table.Plan().LastToken(0), Tokens: c.high})
		}
		require.Equal(t, Admitted, table.TakeAt(p, start, start, c.high, quota, nil).Verdict)
		require.Equal(t, Admitted, table.ReserveAt(p, start, start, 10, TierQuota(0), 1000*time.Second).Verdict)
		table.Adopt(planOf(0.1), clockAt(start))
		status := atomicbucket.Status{}
		require.Equal(t, Refused, table.TakeAt(p, start, start, 1, TierQuota(0), &status).Verdict)
		// The reservation's ten tokens still take ten seconds. The other c.high tokens now take ten seconds each. A
		// token is available while nine of them are still owed.
		if want := time.Duration(10*c.high+10-90) * time.Second; status.RetryAfter != want {
			t.Errorf("broken: %s: a key that took %d of %s waits %v, want %v", c.rule, c.high, c.name, status.RetryAfter, want)
		}
		require.True(t, table.Remember(1<<63, clockAt(start)))
		table.Adopt(planOf(0.01), clockAt(start))
		require.Equal(t, Refused, table.TakeAt(p, start, start, 1, TierQuota(0), &status).Verdict)
		// The reservation's ten seconds count as one token of ten seconds. So the key owes c.high+1 tokens, and each
		// takes a hundred seconds now. A token is available while nine of them are still owed.
		if want := time.Duration(100*c.high+100-900) * time.Second; status.RetryAfter != want {
			t.Errorf("broken: R28: of a number above all limits a key waits %v, want %v", status.RetryAfter, want)
		}
	}
}
