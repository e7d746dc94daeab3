//go:build unix

package redislimit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// What a share admits while the store is away is charged when it is back: over any number of losses the shares
// admit one limit more together, and not one each.
func TestWhatSharesAdmitIsCharged(t *testing.T) {
	const nodes = 4
	for name, policy := range map[string]engine.Policy{ // nothing comes back during the test
		"token bucket":   engine.TokenBucket(engine.PerHour(1), 12),
		"fixed window":   engine.FixedWindow(12, time.Hour),
		"sliding window": engine.SlidingWindow(12, 365*24*time.Hour),
		"sliding log":    engine.SlidingLog(12, time.Hour),
		"leased":         engine.FixedWindow(360_000, time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
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
				taken, inHand = 1000, 1000 // more than goes without asking, and than leases hold at such rates
			}
			_, err := other.Take(t.Context(), "k", taken)
			require.NoError(t, err)
			for loss := uint64(1); loss <= 2; loss++ {
				proxy.BlackHole()
				require.Eventually(t, func() bool {
					_, _ = l.Take(t.Context(), "elsewhere", whole)
					return l.isLost("k")
				}, 10*time.Second, time.Millisecond)
				admitted := uint64(0)
				for l.Allow("k") {
					admitted++
				}
				require.GreaterOrEqual(t, admitted, part)
				require.LessOrEqual(t, admitted, part+inHand)
				require.Zero(t, l.share.Peek("k", 1).Remaining)

				proxy.Clear()
				require.Eventually(t, func() bool {
					_, _ = l.Take(t.Context(), "k", whole) // never there
					return l.share.Peek("k", 1).Remaining == part
				}, 10*time.Second, time.Millisecond, "loss %d: what the share admitted is owed still", loss)
				require.LessOrEqual(t, left(), whole-taken-loss*part)
				require.GreaterOrEqual(t, left()+inHand, whole-taken-loss*part, "charged more than once")
			}
		})
	}
}

// Nothing is charged that the share did not admit, and nothing twice by those who ask at once.
func TestSettlementsDoNotOverlap(t *testing.T) {
	server := redistest.Start(t)
	store, err := Open(t.Context(), server.URL(), Timeout(10*time.Second))
	require.NoError(t, err)
	defer store.Close()
	l, err := New(store, "shares", engine.TokenBucket(engine.PerHour(1), 100), Nodes(4))
	require.NoError(t, err)
	defer l.Close()
	require.True(t, l.share.take("k", 7).Allowed)
	for range 50 {
		l.settle("k")
	}
	require.Eventually(t, func() bool { return l.share.Peek("k", 1).Remaining == 25 }, 10*time.Second, time.Millisecond)
	d, err := l.Peek(t.Context(), "k", 1)
	require.NoError(t, err)
	assert.EqualValues(t, 93, d.Remaining)
}
