//go:build unix

package redislimit

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// However often the store is lost, all shares together admit at most one additional limit.
func TestWhatSharesAdmitIsCharged(t *testing.T) {
	const nodes = 4
	for name, policy := range map[string]engine.Policy{ // nothing comes back during the test
		"token bucket":   engine.TokenBucket(engine.Per(1, time.Hour), 12),
		"fixed window":   engine.FixedWindow(12, time.Hour),
		"sliding window": engine.SlidingWindow(12, 365*24*time.Hour),
		"sliding log":    engine.SlidingLog(12, time.Hour),
		"leased":         engine.FixedWindow(360_000, time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := redistest.StartProxy(t, server.Addr())
			node := func(url string, options ...ClientOption) *Limiter {
				store, err := Open(t.Context(), url, options...)
				require.NoError(t, err)
				l, err := New(store, "shares", policy, Nodes(nodes))
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, l.Close()); assert.NoError(t, store.Close()) })
				return l
			}
			l, other := node(proxy.URL()), node(server.URL(), Timeout(10*time.Second))
			require.Equal(t, name == "leased", l.Mode() == Leased)
			left := func() uint64 {
				d, err := other.Peek(t.Context(), "k", 1)
				require.NoError(t, err)
				return d.Remaining
			}
			part, whole, taken, inHand := policy.Limit()/nodes, left(), uint64(1), uint64(0)
			if l.Mode() == Leased {
				taken, inHand = 1000, 1000
			}
			_, err := other.Take(t.Context(), "k", taken)
			require.NoError(t, err)
			unsure := uint64(0) // settlements whose answer may be lost, so they may be charged twice
			for loss := range 3 {
				proxy.BlackHole()
				require.Eventually(t, func() bool {
					_, _ = l.Take(t.Context(), "elsewhere", whole)
					return l.isLost("k")
				}, 10*time.Second, time.Millisecond)
				admitted := uint64(0)
				for l.Allow("k") {
					admitted++
				}
				if loss == 0 {
					require.GreaterOrEqual(t, admitted, part)
					require.GreaterOrEqual(t, l.Stats().Debt, part)
				} else {
					require.LessOrEqual(t, admitted, inHand, "nothing came back to the share since")
				}
				require.LessOrEqual(t, admitted, part+inHand)

				// The debt is charged without a further request.
				failed := l.client.Health().Failures
				proxy.Clear()
				require.Eventually(t, func() bool { return !l.isLost("k") && l.share.debts.Owed(debtID{key: "k"}) == 0 }, 10*time.Second, time.Millisecond,
					"loss %d: what the share admitted is owed still", loss)
				require.LessOrEqual(t, left(), whole-taken-part)
				unsure += uint64(l.client.Health().Failures - failed)
				require.GreaterOrEqual(t, left()+inHand*3+unsure*part, whole-taken-part, "charged more than once")
			}
		})
	}
}

// Tokens that come back to a share during a loss, and are then admitted, are charged as well.
func TestWhatComesBackToAShareIsCharged(t *testing.T) {
	t.Parallel()
	server := redistest.StartWithClock(t, time.Date(2010, 1, 2, 12, 0, 0, 0, time.UTC))
	proxy := redistest.StartProxy(t, server.Addr())
	client, err := Open(t.Context(), proxy.URL())
	require.NoError(t, err)
	defer client.Close()
	const limit = 4000
	l, err := New(client, "shares", engine.TokenBucket(engine.PerSecond(4000), limit), Nodes(4), InMode(Strict))
	require.NoError(t, err)
	defer l.Close()
	require.Eventually(t, func() bool { _, err := l.Peek(t.Context(), "k", 1); return err == nil }, 10*time.Second, time.Millisecond)
	proxy.BlackHole()
	require.Eventually(t, func() bool { _, _ = l.Take(t.Context(), "elsewhere", 1); return l.isLost("k") }, 10*time.Second, time.Millisecond)
	admitted := uint64(0)
	require.Eventually(t, func() bool { // the store's clock stands still, so nothing comes back in the store
		for l.Allow("k") {
			admitted++
		}
		return admitted >= limit*3/4 // the share is a quarter
	}, 20*time.Second, time.Millisecond)
	proxy.Clear()
	require.Eventually(t, func() bool { return l.share.debts.Owed(debtID{key: "k"}) == 0 }, 10*time.Second, time.Millisecond)
	var d engine.Decision
	require.Eventually(t, func() bool { d, err = l.Peek(t.Context(), "k", 1); return err == nil }, 10*time.Second, time.Millisecond)
	assert.LessOrEqual(t, d.Remaining, limit-admitted)
}

// No token that a share admitted is charged twice, even by concurrent callers.
func TestSettlementsDoNotOverlap(t *testing.T) {
	server := redistest.Start(t)
	store, err := Open(t.Context(), server.URL(), Timeout(10*time.Second))
	require.NoError(t, err)
	defer store.Close()
	l, err := New(store, "shares", engine.TokenBucket(engine.Per(1, time.Hour), 100), Nodes(4))
	require.NoError(t, err)
	defer l.Close()
	require.True(t, l.share.take("k", &l.ownQuota, 7).Allowed)
	for range 50 {
		l.chargeDebt(debtID{key: "k"})
	}
	require.Eventually(t, func() bool { return l.share.debts.Owed(debtID{key: "k"}) == 0 }, 10*time.Second, time.Millisecond)
	d, err := l.Peek(t.Context(), "k", 1)
	require.NoError(t, err)
	assert.EqualValues(t, 93, d.Remaining)
}

func TestASmallerShare(t *testing.T) {
	client, err := Open(t.Context(), redistest.Start(t).URL(), Timeout(10*time.Second))
	require.NoError(t, err)
	defer client.Close()
	l, err := New(client, "shares", engine.TokenBucket(engine.Per(1, time.Hour), 100), Nodes(4), LocalShare(0.05))
	require.NoError(t, err)
	defer l.Close()
	require.True(t, l.share.take("k", &l.ownQuota, 5).Allowed)
	assert.False(t, l.share.take("k", &l.ownQuota, 1).Allowed)
}

// The node's share decides under the quota, and its tokens are charged under the same quota.
func TestSharesHaveQuotas(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	client, err := Open(t.Context(), proxy.URL())
	require.NoError(t, err)
	defer client.Close()
	l, err := New(client, "shares", engine.TokenBuckets(24*time.Hour), Nodes(4))
	require.NoError(t, err)
	defer l.Close()
	day, err := l.Quota(engine.TokenBucket(engine.Per(100, 24*time.Hour), 100))
	require.NoError(t, err)
	large, err := l.Quota(engine.TokenBucket(engine.Per(1000, 24*time.Hour), 1000))
	require.NoError(t, err)
	proxy.BlackHole()
	require.Eventually(t, func() bool { _, _ = day.Take(t.Context(), "elsewhere", 1); return l.isLost("k") }, 10*time.Second, time.Millisecond)
	d, err := large.Take(t.Context(), "k", 5)
	require.NoError(t, err)
	assert.True(t, d.Allowed)
	assert.EqualValues(t, 1000, d.Limit)
	d, err = day.Take(t.Context(), "k", 18)
	require.NoError(t, err)
	assert.True(t, d.Allowed)
	assert.EqualValues(t, 100, d.Limit)
	d, err = day.Take(t.Context(), "k", 3)
	require.NoError(t, err)
	assert.False(t, d.Allowed, "a quarter of it")
	d, err = day.Charge(t.Context(), "k", 10)
	require.NoError(t, err)
	assert.False(t, d.Allowed)
	assert.EqualValues(t, 28, l.share.debts.Owed(debtID{"k", day.numbers}))
	failed := l.client.Health().Failures
	proxy.Clear()
	require.Eventually(t, func() bool {
		return !l.isLost("k") && l.share.debts.Owed(debtID{"k", day.numbers})+l.share.debts.Owed(debtID{"k", large.numbers}) == 0
	}, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { d, err = day.Peek(t.Context(), "k", 1); return err == nil }, 10*time.Second, time.Millisecond)
	if l.client.Health().Failures == failed {
		assert.EqualValues(t, 67, d.Remaining, "28 of its own, and 5 of the other")
	} else { // an answer that was lost may have charged tokens, which are charged again
		assert.LessOrEqual(t, d.Remaining, uint64(67))
	}
}

// Fallback decides by the node's share, without a call to the store.
func TestFallbackAsksNoStore(t *testing.T) {
	client, err := Open(t.Context(), redistest.Start(t).URL(), Timeout(10*time.Second))
	require.NoError(t, err)
	defer client.Close()
	l, err := New(client, "fallback", engine.FixedWindow(1<<32, time.Hour).Aligned(), Nodes(2), InMode(Strict))
	require.NoError(t, err)
	defer l.Close()
	quota, err := l.Quota(engine.FixedWindow(10, time.Hour).Aligned())
	require.NoError(t, err)
	calls := client.Health().Calls
	for _, step := range []struct {
		n         uint64
		allowed   bool
		remaining uint64
	}{{0, true, 5}, {3, true, 2}, {3, false, 2}, {0, true, 2}, {2, true, 0}, {0, false, 0}, {1, false, 0}, {11, false, 0}} {
		d, err := quota.Fallback("k", step.n, ErrStore)
		require.NoError(t, err)
		assert.Equal(t, []any{step.allowed, step.remaining, uint64(10)}, []any{d.Allowed, d.Remaining, d.Limit}, "%+v", step)
	}
	_, err = quota.Fallback("k", 1, context.Canceled)
	assert.ErrorIs(t, err, context.Canceled)
	_, err = Quota{}.Fallback("k", 1, ErrStore)
	assert.ErrorContains(t, err, "zero Quota")
	assert.Equal(t, calls, client.Health().Calls)
	assert.EqualValues(t, 5, l.share.debts.Owed(debtID{"k", quota.numbers}))
}

// TestWhatIsAdmittedWithoutAStoreIsFromNowhere: the receipt says that tokens of a request that FailOpen admits were
// taken nowhere.
func TestWhatIsAdmittedWithoutAStoreIsFromNowhere(t *testing.T) {
	client, err := Open(t.Context(), redistest.Start(t).URL())
	require.NoError(t, err)
	defer client.Close()
	l, err := New(client, "open", engine.TokenBucket(engine.PerSecond(1000), 1000), OnLoss(FailOpen), InMode(Leased))
	require.NoError(t, err)
	defer l.Close()
	r := receipt{origin: fromLease}
	d, err := l.fallback(&l.ownQuota, "k", 1, errLost, &r)
	require.NoError(t, err)
	assert.True(t, d.Allowed)
	assert.Equal(t, fromNowhere, r.origin)
}
