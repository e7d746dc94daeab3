//go:build unix

package redislimit_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// Peek returns what Take would return at that moment, and changes nothing in the store.
func TestPeekTakesNothing(t *testing.T) {
	for name, policy := range fives() {
		t.Run(name, func(t *testing.T) {
			server, store := mini(t)
			l := limiter(t, store, policy, redislimit.TrustRefusals(0))
			assert.Equal(t, engine.Decision{Allowed: true, Limit: 5, Remaining: 5}, peek(t, l, "k", 5), "a key that was never seen")
			assert.Empty(t, miniKeys(server))
			take(t, l, "k", 3)
			require.Eventually(t, func() bool { return server.Exists("weir:settings:test") }, 10*time.Second, time.Millisecond)
			before := server.Dump()
			for _, n := range []uint64{0, 1, 2, 3, 5, 6} {
				d := peek(t, l, "k", n)
				assert.Equal(t, n <= 2, d.Allowed, "%d of 2", n)
				assert.EqualValues(t, 2, d.Remaining)
				assert.Positive(t, d.ResetAfter)
				switch {
				case n <= 2:
					assert.Zero(t, d.RetryAfter)
				case n > 5:
					assert.Equal(t, engine.Never, d.RetryAfter)
				default:
					assert.Equal(t, d.RetryAfter, take(t, l, "k", n).RetryAfter, "as Take says it")
				}
			}
			assert.Equal(t, before, server.Dump())
		})
	}
}

func TestResetOfAStrictKey(t *testing.T) {
	for name, policy := range algorithms() {
		t.Run(name, func(t *testing.T) {
			store := patient(t, redistest.Start(t).URL())
			l := limiter(t, store, policy)
			other := limiter(t, store, policy)
			take(t, l, "k", burst)
			take(t, l, "another", burst)
			d := peek(t, other, "k", 1)
			require.False(t, d.Allowed)
			require.Positive(t, d.RetryAfter)
			require.NoError(t, l.Reset(t.Context(), "k"))
			require.NoError(t, l.Reset(t.Context(), "never seen"))
			assert.Equal(t, engine.Decision{Allowed: true, Limit: burst, Remaining: burst}, peek(t, other, "k", 1))
			assert.Zero(t, peek(t, l, "another", 1).Remaining)
		})
	}
}

// In a cluster, Peek and Reset find a key on any of the servers.
func TestPeekAndResetInACluster(t *testing.T) {
	t.Parallel()
	store := patient(t, redistest.StartCluster(t).URL())
	l := limiter(t, store, slow())
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		take(t, l, key, 2)
		assert.EqualValues(t, burst-2, peek(t, l, key, 1).Remaining)
		require.NoError(t, l.Reset(t.Context(), key))
		assert.EqualValues(t, burst, peek(t, l, key, 1).Remaining)
	}
}

// Peek counts tokens that are in hand, owed, or admitted without asking the store.
func TestPeekOfALeasedKey(t *testing.T) {
	store := patient(t, redistest.Start(t).URL())
	const limit = 1_000_000
	policy := engine.FixedWindow(limit, time.Hour)
	l := limiter(t, store, policy)
	require.Equal(t, redislimit.Leased, l.Mode())
	assert.Equal(t, engine.Decision{Allowed: true, Limit: limit, Remaining: limit}, peek(t, l, "k", 1))
	left := func(taken uint64) {
		t.Helper()
		// While an answer with tokens is on its way, these tokens are counted nowhere.
		require.Eventually(t, func() bool { return peek(t, l, "k", 1).Remaining == limit-taken }, backSoon, time.Millisecond,
			"%d taken, %d left", taken, peek(t, l, "k", 1).Remaining)
	}
	take(t, l, "k", 1)
	assert.Zero(t, store.Health().Keys-1, "the first requests do not ask the store")
	left(1)
	taken := uint64(1)
	require.Eventually(t, func() bool {
		if take(t, l, "k", 1).Allowed {
			taken++
		}
		before := l.Stats()
		d := peek(t, l, "k", 1)
		after := l.Stats()
		return before.Held > 0 && before.Held == after.Held && before.Debt == after.Debt && d.Remaining == limit-taken
	}, backSoon, time.Microsecond, "what is in hand is left, too")
	require.Eventually(t, func() bool { s := l.Stats(); return s.Leases == 0 }, backSoon, time.Millisecond)
	left(taken)

	require.NoError(t, l.Reset(t.Context(), "k"))
	assert.Equal(t, engine.Decision{Allowed: true, Limit: limit, Remaining: limit}, peek(t, l, "k", 1))
}

// Reset makes a node drop its tokens in hand and its refusal.
func TestResetOfALeasedKey(t *testing.T) {
	t.Parallel()
	store := patient(t, redistest.Start(t).URL())
	l := limiter(t, store, engine.FixedWindow(1000, 10*time.Second), redislimit.Nodes(2))
	require.Equal(t, redislimit.Leased, l.Mode())
	require.Eventually(t, func() bool {
		allowed := false
		for range 100 {
			allowed = l.Allow("k")
		}
		return !allowed && !peek(t, l, "k", 1).Allowed
	}, backSoon, time.Millisecond, "everything is used up")
	require.Equal(t, 1, l.Stats().Leases)
	require.NoError(t, l.Reset(t.Context(), "k"))
	assert.Zero(t, l.Stats().Leases)
	assert.True(t, l.Allow("k"), "a refusal is not remembered")
	assert.Greater(t, peek(t, l, "k", 1).Remaining, uint64(1000*2/3), "all but what may have been on its way")
}

// If the store does not answer, Peek returns an error in time.
func TestPeekAndResetOfALostStore(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	store := open(t, proxy.URL())
	l := limiter(t, store, slow(), redislimit.OnLoss(redislimit.FailShare), redislimit.Nodes(faultNode))
	require.Eventually(t, func() bool { _, err := l.Peek(t.Context(), "k", 1); return err == nil }, backSoon, time.Millisecond)
	before := store.Health()
	proxy.BlackHole()
	resets := int64(0)
	require.Eventually(t, func() bool {
		begin := time.Now()
		assert.ErrorIs(t, l.Reset(t.Context(), "k"), redislimit.ErrStore)
		assert.Less(t, time.Since(begin), noLonger)
		resets++
		return store.Health().Lost == 1
	}, backSoon, time.Millisecond)
	assert.Equal(t, resets, store.Health().Failures-before.Failures)
	assert.Positive(t, store.Health().Timeouts-before.Timeouts)
	before, begin := store.Health(), time.Now()
	for range 100 {
		_, err := l.Peek(t.Context(), "k", 1)
		assert.ErrorIs(t, err, redislimit.ErrStore)
		assert.ErrorIs(t, l.Reset(t.Context(), "k"), redislimit.ErrStore)
	}
	assert.LessOrEqual(t, store.Health().Calls-before.Calls, int64(time.Since(begin)/(250*time.Millisecond))+1, "calls to a store that is lost")
	require.True(t, take(t, l, "k", burst/faultNode).Allowed, "the share")
	assert.False(t, take(t, l, "k", 1).Allowed)
	assert.ErrorIs(t, l.Reset(t.Context(), "k"), redislimit.ErrStore)
	assert.True(t, take(t, l, "k", 1).Allowed, "the share is reset in any case")

	proxy.Clear()
	require.Eventually(t, func() bool { return l.Reset(t.Context(), "k") == nil }, backSoon, time.Millisecond)
	assert.Zero(t, store.Health().Lost)
	require.Eventually(t, func() bool { d, err := l.Peek(t.Context(), "k", 1); return err == nil && d.Remaining == burst }, backSoon, time.Millisecond)
}

func TestWhoGivesUpSaysNothingOfTheStore(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Start(t).Addr())
	store := patient(t, proxy.URL())
	l := limiter(t, store, slow())
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Peek(over, "k", 1)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, l.Reset(over, "k"), context.Canceled)
	assert.Zero(t, store.Health().Calls)

	take(t, l, "k", 1)
	proxy.BlackHole()
	for range 3 {
		soon, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		err = l.Reset(soon, "k")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, redislimit.ErrStore)
	}
	assert.Zero(t, store.Health().Failures)
	assert.Zero(t, store.Health().Lost)
	require.Eventually(t, func() bool {
		var calls sync.WaitGroup
		var refused atomic.Bool
		for range 64 { // one after the other would take too long beside other processes
			calls.Go(func() {
				soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				if err := l.Reset(soon, "k"); errors.Is(err, redislimit.ErrStore) && strings.Contains(err.Error(), "calls have timed out and not ended") {
					refused.Store(true)
				}
			})
		}
		calls.Wait()
		return refused.Load()
	}, backSoon, time.Microsecond)
}
