package redislimit

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/script"
)

type timed struct {
	*Limiter
	server *miniredis.Miniredis
	nanos  atomic.Int64 // also read by senders
	t      *testing.T
}

func newTimed(t *testing.T, policy engine.Policy, options ...Option) *timed {
	server := miniredis.RunT(t)
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	client, err := NewClient(redis, Timeout(10*time.Second))
	require.NoError(t, err)
	l := &timed{server: server, t: t}
	l.after(1_000_000_000 * time.Second)
	l.Limiter, err = New(client, "refusals", policy, options...)
	require.NoError(t, err)
	require.NoError(t, l.Close()) // so that nothing in the background reads the clock
	l.now = l.nanos.Load
	for i := range l.routes.Load().queues {
		l.routes.Load().queues[i].now = l.now
	}
	return l
}

func (l *timed) after(d time.Duration) {
	l.server.SetTime(time.Unix(0, l.nanos.Add(int64(d))))
}

func (l *timed) take(n uint64) engine.Decision {
	d, err := l.Take(l.t.Context(), "k", n)
	require.NoError(l.t, err)
	return d
}

// After a refusal, the node refuses equal requests until exactly the moment at which they can pass.
func TestRefusalsAreRemembered(t *testing.T) {
	for name, policy := range map[string]engine.Policy{
		"token bucket":   engine.TokenBucket(engine.PerSecond(20), 5),
		"fixed window":   engine.FixedWindow(5, 50*time.Millisecond),
		"sliding window": engine.SlidingWindow(5, 50*time.Millisecond),
	} {
		t.Run(name, func(t *testing.T) {
			l := newTimed(t, policy)
			require.True(t, l.take(4).Allowed)
			calls := l.client.Health().Calls
			first := l.take(3)
			require.False(t, first.Allowed)
			for range 1000 {
				require.Equal(t, first, l.take(3))
			}
			l.after(first.RetryAfter - time.Microsecond)
			d := l.take(4)
			require.False(t, d.Allowed, "what costs more is refused, too")
			assert.Equal(t, time.Microsecond, d.RetryAfter)
			assert.Equal(t, calls+1, l.client.Health().Calls)
			l.after(time.Microsecond)
			assert.True(t, l.take(3).Allowed, "exactly then")
		})
	}
}

// If tokens are given back on this node, its next request asks the store.
func TestRefusalsAreForgotten(t *testing.T) {
	policy := engine.TokenBucket(engine.Per(5, time.Minute), 5)
	l := newTimed(t, policy)
	refused := func() {
		t.Helper()
		require.True(t, l.take(5).Allowed)
		require.False(t, l.take(2).Allowed)
	}
	refused()
	require.NoError(t, l.Refund(t.Context(), "k", 2))
	assert.True(t, l.take(2).Allowed, "a refund")
	require.False(t, l.take(2).Allowed)
	require.NoError(t, l.Reset(t.Context(), "k"))
	refused()
	require.False(t, l.take(2).Allowed)
	assert.False(t, l.take(1).Allowed, "the store was not asked about one token before")

	l.server.FlushAll()
	assert.False(t, l.take(2).Allowed)
	l.after(99 * time.Millisecond)
	assert.False(t, l.take(2).Allowed)
	l.after(time.Millisecond)
	assert.True(t, l.take(2).Allowed, "a tenth of a second is the most")

	l.refusals.remember("other", script.Quota{}, 1, 0, engine.Decision{RetryAfter: 1})
	l.refusals.sweep(l.now() + int64(time.Second))
	assert.Zero(t, l.refusals.count.Load())
	assert.Zero(t, l.refusals.keys.Size())
}

// The node asks the store about a request that is smaller than the refused one.
func TestASmallerRequestIsAsked(t *testing.T) {
	l := newTimed(t, engine.TokenBucket(engine.Per(5, time.Minute), 5))
	require.True(t, l.take(3).Allowed)
	require.False(t, l.take(4).Allowed)
	assert.True(t, l.take(1).Allowed)
	assert.False(t, l.take(2).Allowed)
	calls := l.client.Health().Calls
	assert.False(t, l.take(2).Allowed)
	assert.False(t, l.take(4).Allowed)
	assert.Equal(t, calls, l.client.Health().Calls)
}

// MaxKeys bounds the remembered refusals. With TrustRefusals(0), there are none.
func TestRefusalsAreBounded(t *testing.T) {
	l := newTimed(t, engine.TokenBucket(engine.Per(5, time.Minute), 5), MaxKeys(10))
	for i := range 20 {
		l.refusals.remember(string(rune('a'+i)), script.Quota{}, 1, l.now(), engine.Decision{RetryAfter: time.Second})
	}
	assert.Equal(t, 10, l.refusals.keys.Size())
	l = newTimed(t, engine.TokenBucket(engine.Per(5, time.Minute), 5), TrustRefusals(0))
	require.True(t, l.take(5).Allowed)
	for range 3 {
		require.False(t, l.take(1).Allowed)
	}
	assert.EqualValues(t, 4, l.client.Health().Calls)
}
