//go:build unix

package redistest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func through(t *testing.T) (*Server, *Proxy, rueidis.Client) {
	s := Start(t)
	p := StartProxy(t, s.Addr())
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{p.Addr()},
		ForceSingleClient: true,
		DisableCache:      true,
		DisableRetry:      true,
		PipelineMultiplex: -1, // one connection, which exists when a fault begins
	})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return s, p, client
}

func incr(ctx context.Context, client rueidis.Client, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return client.Do(ctx, client.B().Incr().Key("n").Build()).Error()
}

func works(t *testing.T, client rueidis.Client) {
	t.Helper()
	require.Eventually(t, func() bool {
		return incr(t.Context(), client, time.Second) == nil
	}, 10*time.Second, 10*time.Millisecond)
}

func TestProxyPassesOn(t *testing.T) {
	s, p, client := through(t)
	assert.Equal(t, "redis://"+p.Addr(), p.URL())
	assert.NotEqual(t, s.Addr(), p.Addr())
	require.NoError(t, incr(t.Context(), client, 10*time.Second))
	assert.Equal(t, "1", s.Do("GET", "n"))
}

func TestLatency(t *testing.T) {
	s, p, client := through(t)
	const delay = 100 * time.Millisecond
	p.Latency(delay)
	start := time.Now()
	require.NoError(t, incr(t.Context(), client, 10*time.Second))
	assert.GreaterOrEqual(t, time.Since(start), delay)
	assert.ErrorIs(t, incr(t.Context(), client, delay/4), context.DeadlineExceeded)
	p.Clear()
	works(t, client)
	assert.NotEqual(t, "1", s.Do("GET", "n"))
}

func TestBlackHole(t *testing.T) {
	s, p, client := through(t)
	p.BlackHole()
	assert.ErrorIs(t, incr(t.Context(), client, 50*time.Millisecond), context.DeadlineExceeded)
	assert.Empty(t, s.Do("GET", "n"), "a request came through")
	p.Clear()
	works(t, client)
}

func TestLoseAnswers(t *testing.T) {
	s, p, client := through(t)
	require.NoError(t, incr(t.Context(), client, 10*time.Second)) // the connection's first commands must arrive
	p.LoseAnswers()
	assert.ErrorIs(t, incr(t.Context(), client, 2*time.Second), context.DeadlineExceeded)
	require.Eventually(t, func() bool { return s.Do("GET", "n") == "2" }, 10*time.Second, time.Millisecond)
	p.Clear()
	works(t, client)
}

func TestReset(t *testing.T) {
	_, p, client := through(t)
	p.Reset()
	err := incr(t.Context(), client, 10*time.Second)
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	_, err = client.Do(t.Context(), client.B().Ping().Build()).ToString()
	assert.Error(t, err, "a new connection works")
	p.Clear()
	works(t, client)
}

func TestFaultsReplaceEachOther(t *testing.T) {
	_, p, client := through(t)
	p.BlackHole()
	p.BlackHole()
	p.LoseAnswers()
	p.Latency(time.Millisecond)
	works(t, client)
	p.Reset()
	p.Clear()
	p.Clear()
	works(t, client)
}
