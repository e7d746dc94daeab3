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

// If the limit is smaller than the number of nodes, no node gets a token when the store is lost.
func TestALimitSmallerThanNodes(t *testing.T) {
	const nodes = 8
	for name, policy := range map[string]engine.Policy{
		"token bucket":   engine.TokenBucket(engine.Per(1, time.Hour), 1),
		"fixed window":   engine.FixedWindow(5, time.Hour),
		"aligned window": engine.FixedWindow(5, time.Hour).Aligned(),
		"sliding window": engine.SlidingWindow(7, time.Hour),
		"sliding log":    engine.SlidingLog(1, time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.StartProxy(t, redistest.Start(t).Addr())
			all := make([]*Limiter, nodes)
			for i := range all {
				client, err := Open(t.Context(), proxy.URL())
				require.NoError(t, err)
				all[i], err = New(client, "small", policy, Nodes(nodes))
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, client.Close()) })
			}
			proxy.BlackHole()
			ask := func() (admitted int) {
				for _, l := range all {
					if d, err := l.Take(t.Context(), "k", 1); assert.NoError(t, err) && d.Allowed {
						admitted++
					} else {
						assert.Positive(t, d.RetryAfter)
						assert.Equal(t, policy.Limit(), d.Limit)
					}
				}
				return admitted
			}
			require.Zero(t, ask(), "late")
			for _, l := range all {
				require.Eventually(t, func() bool { _, _ = l.Take(t.Context(), "elsewhere", 1); return l.isLost("k") }, 10*time.Second, time.Millisecond)
			}
			require.Zero(t, ask(), "gone")
			for _, l := range all {
				require.NoError(t, l.Close()) // so that nothing in the background reads the clock
				l.now = func() int64 { return now() + int64(time.Hour)*nodes/int64(policy.Limit())/2 }
			}
			require.Zero(t, ask(), "half a token each")
			for _, l := range all {
				l.now = func() int64 { return now() + int64(time.Hour)*nodes/int64(policy.Limit()) }
			}
			assert.Equal(t, nodes, ask(), "a token each")
			assert.Zero(t, ask(), "once")
		})
	}
}

// A quota smaller than the number of nodes has a share of less than one token.
func TestAQuotaSmallerThanNodes(t *testing.T) {
	proxy := redistest.StartProxy(t, redistest.Start(t).Addr())
	client, err := Open(t.Context(), proxy.URL())
	require.NoError(t, err)
	defer client.Close()
	l, err := New(client, "small", engine.FixedWindow(100, time.Hour), Nodes(8), InMode(Strict))
	require.NoError(t, err)
	defer l.Close()
	q, err := l.Quota(engine.FixedWindow(5, time.Hour))
	require.NoError(t, err)
	proxy.BlackHole()
	require.Eventually(t, func() bool { _, _ = l.Take(t.Context(), "elsewhere", 1); return l.isLost("k") }, 10*time.Second, time.Millisecond)
	d, err := q.Take(t.Context(), "k", 1)
	require.NoError(t, err)
	assert.False(t, d.Allowed)
	assert.Greater(t, d.RetryAfter, time.Hour)
	d, err = l.Take(t.Context(), "k", 12)
	require.NoError(t, err)
	assert.True(t, d.Allowed, "the limiter's own share")
}
