package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSeveralLimitsGetBackWhatIsTheirs: if the third limit of TakeAll refuses, the first two get their tokens back.
func TestSeveralLimitsGetBackWhatIsTheirs(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	hourly := func(n uint64) Policy { return TokenBucket(Per(float64(n), time.Hour), n) }
	var requests []Request
	for _, n := range []uint64{5, 7, 1} {
		l := pinned(t, &now, hourly(n))
		requests = append(requests, Request{Limiter: l, Key: l.Key("ann"), N: 1})
	}
	requests[1].N = 2
	left := func() (all []uint64) {
		for _, r := range requests {
			all = append(all, r.Limiter.Peek(r.Key, 0).Remaining)
		}
		return all
	}
	holds := make([]Receipt, 3)
	d, err := holdAll(requests, holds)
	require.NoError(t, err)
	require.True(t, d.Allowed)
	used := []uint64{4, 5, 0}
	require.Equal(t, used, left())

	d, err = all(requests...)
	require.NoError(t, err)
	assert.False(t, d.Allowed)
	assert.Equal(t, used, left())
	answers := make([]Answer, 3)
	allowed, err := TakeAll(requests, answers)
	require.NoError(t, err)
	assert.False(t, allowed)
	assert.Equal(t, used, left())
	for _, a := range answers {
		assert.Equal(t, Receipt{}, a.Receipt)
	}
	refused := make([]Receipt, 3)
	d, err = holdAll(requests, refused)
	require.NoError(t, err)
	assert.False(t, d.Allowed)
	assert.Equal(t, time.Hour, d.RetryAfter)
	assert.Equal(t, used, left())
	for i := range refused {
		refused[i].Settle(3)
		assert.Nil(t, refused[i].limiter, "there is nothing to settle")
	}
	assert.Equal(t, used, left())
}

// TestABatchIntoUsedDecisions: TakeBatch overwrites all of a reused slice, even for more keys than it loads at once.
func TestABatchIntoUsedDecisions(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	batch, each := pinned(t, &now, TokenBucket(Per(10, time.Hour), 10)), pinned(t, &now, TokenBucket(Per(10, time.Hour), 10))
	keys, decisions := make([]Key, 3*batchAhead+1), make([]Decision, 3*batchAhead+1)
	for range 3 {
		for i := range keys {
			keys[i] = batch.KeyUint64(uint64(i % 50))
		}
		require.NoError(t, batch.TakeBatch(keys, 4, decisions))
		for i, d := range decisions {
			require.Equal(t, each.TakeKey(each.KeyUint64(uint64(i%50)), 4), d, i)
		}
	}
}

// TestWaitOfAWindow: with a window, Wait tries again when its tokens should be available.
func TestWaitOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(FixedWindow(1, 10*time.Second), MaxKeys(1), ClockFunc(time.Now))
		require.NoError(t, err)
		defer l.Close()
		k, begin := l.KeyUint64(0), time.Now()
		require.NoError(t, l.WaitKey(t.Context(), k, 1))
		assert.Zero(t, time.Since(begin))
		soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err = l.WaitKey(soon, k, 1)
		require.ErrorIs(t, err, ErrTooLong)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.EqualError(t, err, "engine: Wait(1): the wait would be too long: 10s, and 5s is the longest (context deadline exceeded)")
		err = l.WaitKey(t.Context(), k, 2)
		require.ErrorIs(t, err, ErrNever)
		assert.EqualError(t, err, "engine: Wait(2): more tokens than the limit of 1")
		assert.Zero(t, time.Since(begin))
		impatient, leave := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, leave)
		require.ErrorIs(t, l.WaitKey(impatient, k, 1), context.Canceled)
		assert.Equal(t, 3*time.Second, time.Since(begin))
		require.NoError(t, l.WaitKey(t.Context(), k, 1))
		assert.Equal(t, 10*time.Second, time.Since(begin))
		require.NoError(t, l.WaitKey(t.Context(), k, 1))
		assert.Equal(t, 20*time.Second, time.Since(begin))
	})
}

// TestARefusalThatIsInDoubtUnderATier (I1): a refusal by a coarse clock is decided again by the exact clock, under the
// request's tier or quota.
func TestARefusalThatIsInDoubtUnderATier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		few := TokenBucket(PerSecond(20), 2) // a token comes back within the time by which the clock may be late
		l, err := New(TokenBucket(PerSecond(20), 100), Tiers(few), MaxKeys(100), ClockCoarse())
		require.NoError(t, err)
		defer l.Close()
		quota, err := l.Quota(few)
		require.NoError(t, err)
		for under, of := range map[string]func(Key) Key{
			"tier":  func(k Key) Key { return k.Tier(1) },
			"quota": func(k Key) Key { return k.With(quota) },
		} {
			for verb, take := range map[string]func(Key) bool{
				"Allow":       l.AllowKey,
				"Take":        func(k Key) bool { return l.TakeKey(k, 1).Allowed },
				"TakeReceipt": func(k Key) bool { d, _ := l.TakeReceipt(k, 1); return d.Allowed },
				"Hold":        func(k Key) bool { d, _ := l.Hold(k, 1); return d.Allowed },
			} {
				k := of(l.Key(under + verb))
				assert.Equal(t, []bool{true, true, false, false}, []bool{take(k), take(k), take(k), take(k)}, "%s under a %s", verb, under)
			}
		}
	})
}
