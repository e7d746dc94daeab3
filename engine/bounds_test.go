package engine

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestATimeIsAtMostASecondAhead tests to the nanosecond how far a request may be ahead of the clock.
func TestATimeIsAtMostASecondAhead(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 5))
	k := l.Key("k")
	require.True(t, l.TakeAt(k, 1, h.now().Add(maxLead)).Allowed)
	require.Equal(t, Decision{Limit: 5, RetryAfter: 1, ResetAfter: 1}, l.TakeAt(k, 1, h.now().Add(maxLead+1)))

	l.clock.function.latest.Store(math.MaxInt64 - 1)
	h.set(time.Unix(-1, 0)) // this time is outside the timeline, so the limiter's time stands still
	_, clock, early := l.instant(time.Unix(0, 0))
	require.EqualValues(t, int64(math.MaxInt64-1), clock)
	require.LessOrEqual(t, early, time.Duration(0))
}

// TestARefusalForWantOfRoomHasAWait: without room, RetryAfter is the time until the first record is idle, to the
// nanosecond.
func TestARefusalForWantOfRoomHasAWait(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(Per(1, time.Nanosecond), 1), MaxKeys(1), Shards(1), Overflow(Refuse))
	for i := range uint64(10_000) {
		k := l.KeyUint64(i)
		d := l.TakeKey(k, 1)
		if d.Allowed {
			continue
		}
		require.NotZero(t, l.Stats().NoRoom)
		require.Equal(t, Decision{Limit: 1, RetryAfter: 1, ResetAfter: 1}, d)
		require.Equal(t, d, l.TakeAt(k, 1, h.now().Add(maxLead)))
		return
	}
	t.Fatal("there is room for 10,000 keys")
}

// TestAReservationOfNoPatience: a reservation that may not wait takes only available tokens.
func TestAReservationOfNoPatience(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(Per(1, time.Nanosecond), 1))
	for i, patience := range []time.Duration{0, -1, math.MinInt64} {
		k := l.KeyUint64(uint64(i))
		_, delay, err := l.Reserve(k, 1, patience)
		require.NoError(t, err)
		require.Zero(t, delay)
		_, _, err = l.Reserve(k, 1, patience)
		require.ErrorIs(t, err, ErrTooLong)
		require.ErrorContains(t, err, "1ns, and "+patience.String()+" is the longest")
	}
	_, delay, err := l.Reserve(l.KeyUint64(0), 1, 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, delay)
}

func TestTheLargestQuota(t *testing.T) {
	for _, with := range []func(n uint64) Policy{
		func(n uint64) Policy { return FixedWindow(n, time.Minute) },
		func(n uint64) Policy { return SlidingWindow(n, time.Minute) },
		func(n uint64) Policy { return SlidingLog(n, time.Minute) },
		func(n uint64) Policy { return Concurrency(n, time.Minute) },
		func(n uint64) Policy { return BatchRefill(1, time.Second, n) },
	} {
		l, _ := newLimiter(t, with(5), MaxQuota(100))
		most := atomicbucket.Most(l.table.Plan().Algorithm())
		if l.Algorithm() == AlgorithmBatchRefill {
			most = atomicbucket.MaxBurst
		}
		quota, err := l.Quota(with(most))
		require.NoError(t, err)
		require.Equal(t, most, l.Peek(l.Key("k").With(quota), 0).Limit)
		for _, n := range []uint64{0, most + 1} {
			_, err = l.Quota(with(n))
			require.ErrorContains(t, err, "this limiter has room for 1 to ", "%d of %v", n, with(5))
		}
	}
}

// TestAQuotaOfAnotherKindIsNamed: the error of an impossible quota names the limiter's own policy with its limit.
func TestAQuotaOfAnotherKindIsNamed(t *testing.T) {
	for _, own := range []Policy{
		FixedWindow(5, time.Minute), SlidingWindow(5, time.Minute), SlidingLog(5, time.Minute), Concurrency(5, time.Minute),
		BatchRefill(1, time.Second, 5),
	} {
		l, _ := newLimiter(t, own)
		longer := own
		longer.limit, longer.window = 3, time.Hour
		for _, p := range []Policy{longer, TokenBucket(PerSecond(1), 5), TokenBucket(Per(1, time.Hour), 5)} {
			_, err := l.Quota(p)
			require.EqualError(t, err, "engine: Quota("+p.String()+"): the limiter's policy is "+own.String()+
				": want that with another limit, engine.Unlimited() or engine.Blocked()")
		}
	}
	l, _ := newLimiter(t, TokenBucket(PerSecond(2), 5))
	_, err := l.Quota(TokenBucket(PerSecond(3), 5))
	require.EqualError(t, err, "engine: Quota(token bucket 3/s burst 5): rate of 3/s: the limiter's records are of one rate, 2/s: "+
		"want that, or a limiter with room for others (engine.MaxQuota, engine.Tiers, engine.TokenBuckets)")
}

// A doneLater context returns an error from the second call of Err on.
type doneLater struct {
	context.Context
	looks int
}

func (c *doneLater) Err() error {
	if c.looks++; c.looks == 1 {
		return nil
	}
	return context.Canceled
}

func (c *doneLater) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// A pastDeadline context has a deadline in the past, but is not done yet.
type pastDeadline struct{ context.Context }

func (pastDeadline) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }

// TestWaitTakesWhatIsThere: if the context is done before the call, Wait takes nothing.
func TestWaitTakesWhatIsThere(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for _, p := range []Policy{TokenBucket(PerSecond(1), 5), FixedWindow(5, time.Minute), SlidingLog(5, time.Minute)} {
		l, _ := newLimiter(t, p)
		require.Equal(t, context.Canceled, l.Wait(done, "k", 1))
		require.EqualValues(t, 5, left(l, "k"))
		for range 20 {
			l.Reset(l.Key("k"))
			require.NoError(t, l.Wait(&doneLater{Context: t.Context()}, "k", 2))
			require.NoError(t, l.Wait(pastDeadline{t.Context()}, "k", 3))
			require.Zero(t, left(l, "k"))
		}
		require.ErrorIs(t, l.Wait(pastDeadline{t.Context()}, "k", 1), ErrTooLong)
	}
}

// TestTheErrorOfAWaitNamesTheWait: the error names the wait for all requested tokens, not for some of them.
func TestTheErrorOfAWaitNamesTheWait(t *testing.T) {
	l, h := newLimiter(t, SlidingLog(4, 30*time.Second))
	require.True(t, l.Take("k", 3).Allowed)
	h.advance(20 * time.Second)
	require.True(t, l.Take("k", 1).Allowed)
	require.Equal(t, Decision{Limit: 4, RetryAfter: 30 * time.Second, ResetAfter: 10 * time.Second}, l.Peek(l.Key("k"), 4))
	require.ErrorContains(t, l.Wait(shortly(t), "k", 4), "engine: Wait(4): the wait would be too long: 30s, and ")
}

// TestARefundOfNothingChangesNoReceipt: after a refund of 0 tokens, a receipt still gives back all of its tokens.
func TestARefundOfNothingChangesNoReceipt(t *testing.T) {
	for name, options := range map[string][]Option{"one rate": nil, "several rates": {MaxQuota(20)}} {
		l, _ := newLimiter(t, TokenBucket(PerSecond(1), 10), options...)
		k := l.Key("k")
		require.True(t, l.TakeKey(k, 10).Allowed)
		for i := range 300 { // a version has seven bits
			r, delay, err := l.Reserve(k, 5, time.Minute)
			require.NoError(t, err)
			require.Equal(t, 5*time.Second, delay, "%s: %d", name, i)
			r.Refund(0)
			l.Refund(k, 0)
			require.True(t, r.Release())
		}
	}
}

// TestAllowAsksTheExactClockBeforeARefusalCosts: a request that only a late coarse clock refuses is not charged as a
// refusal.
func TestAllowAsksTheExactClockBeforeARefusalCosts(t *testing.T) {
	for _, charge := range []RefusalCharge{ChargeTheRest, ChargePenalty} {
		synctest.Test(t, func(t *testing.T) {
			l, err := New(TokenBucket(PerSecond(100), 1), ClockCoarse(), MaxKeys(10), ChargeRefusals(charge))
			require.NoError(t, err)
			defer l.Close()
			time.Sleep(time.Second)
			for _, allow := range []func() bool{
				func() bool { return l.Allow("k") }, func() bool { return l.AllowKey(l.Key("k")) },
				func() bool { return l.Take("k", 1).Allowed },
			} {
				synctest.Wait()
				word := l.clock.coarse.Load()
				require.True(t, allow())
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
				l.clock.coarse.Store(word) // as if it had not been renewed
				assert.True(t, allow())
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// TestOneOfTwoRefusalsIsObserved: an observer of one in two refusals sees some refusals, but not all.
func TestOneOfTwoRefusalsIsObserved(t *testing.T) {
	newLimiter(t, TokenBucket(PerSecond(1), 5), Observe(func(Key, uint64) {}, 1<<30))
	seen := 0
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 1), Observe(func(Key, uint64) { seen++ }, 2))
	for range 1001 {
		l.Allow("k")
	}
	require.Positive(t, seen)
	require.Less(t, seen, 1000)
}

// TestALookAheadIsOfItsTime: TakeAt of 0 tokens, at a time ahead of the clock, reports waits from that time on.
func TestALookAheadIsOfItsTime(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 5))
	require.True(t, l.Take("k", 5).Allowed)
	require.Equal(t, Decision{Allowed: true, Limit: 5, ResetAfter: 4500 * time.Millisecond},
		l.TakeAt(l.Key("k"), 0, h.now().Add(500*time.Millisecond)))
}
