//go:build unix

package redislimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// Settle waits for a lost store to charge the tokens that a share admitted; Close does not.
func TestSettle(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	policy := engine.TokenBucket(engine.Per(1, time.Hour), 40)
	for _, tier := range []bool{false, true} {
		name := map[bool]string{false: "own", true: "tier"}[tier]
		l, err := redislimit.New(open(t, server.URL()), name, policy, redislimit.Tiers(policy), redislimit.Nodes(2),
			redislimit.InMode(redislimit.Strict))
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		take := func() bool {
			made := limitOf("a", l)
			set := setOf(t, made, tier)
			res := set.Decide(t.Context(), errand{"a": "k"})
			return res.Allowed()
		}
		require.True(t, take())
		require.NoError(t, l.Settle(t.Context()), "nothing is owed")
		server.Pause()
		admitted := 1
		require.Eventually(t, func() bool {
			if take() {
				admitted++
			}
			return admitted == 20
		}, backSoon, time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		require.ErrorContains(t, l.Settle(ctx), "not been charged for 1 keys: context deadline exceeded")
		cancel()
		server.Resume()
		ctx, cancel = context.WithTimeout(t.Context(), backSoon)
		require.NoError(t, l.Settle(ctx))
		cancel()
		require.NoError(t, l.Close())
		next, err := redislimit.New(open(t, server.URL()), name, policy, redislimit.InMode(redislimit.Strict), redislimit.OnLoss(redislimit.FailClosed))
		require.NoError(t, err)
		t.Cleanup(func() { _ = next.Close() })
		assert.LessOrEqual(t, used(t, next, "k"), uint64(40))
		assert.GreaterOrEqual(t, used(t, next, "k"), uint64(admitted), name)
	}
}

// Close charges the tokens that were admitted beyond a lease.
func TestCloseSettlesLeases(t *testing.T) {
	_, store := miniAs(t, true)
	policy := engine.TokenBucket(engine.PerSecond(10_000), 10_000)
	l, err := redislimit.New(store, "leased", policy, redislimit.Nodes(2))
	require.NoError(t, err)
	require.Equal(t, redislimit.Leased, l.Mode())
	require.Eventually(t, func() bool {
		for range 100 {
			l.Allow("text:k")
		}
		return l.Stats().Debt > 0
	}, backSoon, time.Microsecond)
	require.NoError(t, l.Close())
	assert.Zero(t, l.Stats().Debt)
}

// Close does not wait for a lost store, and returns no error.
func TestCloseWithoutTheStore(t *testing.T) {
	server := redistest.Start(t)
	client := open(t, server.URL(), redislimit.Timeout(10*time.Second))
	l, err := redislimit.New(client, "lost", slow())
	require.NoError(t, err)
	server.Stop()
	require.Eventually(t, func() bool { d, _ := l.Take(t.Context(), "k", 1); return d.Allowed && l.Stats().Fallbacks > 0 }, backSoon, time.Millisecond)
	require.NoError(t, l.Close())
	require.NoError(t, client.Close())
	require.ErrorContains(t, l.Settle(t.Context()), "the client is closed")
}
