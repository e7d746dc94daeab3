//go:build unix

package redislimit_test

import (
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// TestAStoreThatIsJoinedLater: a node that starts without its store decides by its share, and joins the store later.
func TestAStoreThatIsJoinedLater(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	_, err := redislimit.Open(t.Context(), server.URL())
	require.ErrorIs(t, err, redislimit.ErrStore, "without JoinLater")
	client, err := redislimit.Open(t.Context(), server.URL(), redislimit.JoinLater())
	require.NoError(t, err)
	defer client.Close()
	health := client.Health()
	assert.Equal(t, []int{1, 1}, []int{health.Parts, health.Lost})
	assert.Equal(t, "connection", health.LastErrorKind)

	l, err := redislimit.New(client, "later", engine.TokenBucket(engine.Per(1, time.Hour), 10),
		redislimit.Nodes(2), redislimit.InMode(redislimit.Strict))
	require.NoError(t, err)
	defer l.Close()
	assert.Equal(t, 5, admitted(t, l, 8), "its share")
	require.ErrorIs(t, l.Reset(t.Context(), "other"), redislimit.ErrStore)

	server.Restart()
	require.Eventually(t, func() bool {
		d, err := l.Peek(t.Context(), "key", 1)
		return err == nil && d.Remaining == 5
	}, 20*time.Second, 10*time.Millisecond, "the share's five are charged")
	assert.Zero(t, client.Health().Lost)
	assert.Equal(t, 5, admitted(t, l, 8), "what the store has left")
}

// TestAClusterThatIsJoinedLater: the number of a cluster's parts is known only when the cluster answers.
func TestAClusterThatIsJoinedLater(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	for _, node := range cluster.Nodes {
		node.Stop()
	}
	client, err := redislimit.Open(t.Context(), cluster.URL(), redislimit.JoinLater(), redislimit.Timeout(time.Second))
	require.NoError(t, err)
	defer client.Close()
	assert.Equal(t, 1, client.Health().Lost)
	l, err := redislimit.New(client, "later", engine.TokenBucket(engine.Per(1, time.Hour), 10), redislimit.Nodes(2))
	require.NoError(t, err)
	defer l.Close()
	assert.Equal(t, 5, admitted(t, l, 8))
	for _, node := range cluster.Nodes {
		node.Restart()
	}
	require.Eventually(t, func() bool {
		d, err := l.Peek(t.Context(), "key", 1)
		return err == nil && d.Remaining == 5
	}, 30*time.Second, 10*time.Millisecond)
	assert.Equal(t, 64, client.Health().Parts)
}

// TestWhatDoesNotPassIsAnErrorOfTheStart: Open does not wait for a store that refuses the password.
func TestWhatDoesNotPassIsAnErrorOfTheStart(t *testing.T) {
	server := redistest.Start(t)
	_, err := redislimit.Open(t.Context(), strings.Replace(server.URL(), "://", "://weir:wrong@", 1), redislimit.JoinLater())
	require.ErrorContains(t, err, "WRONGPASS")
}

// TestAClientThatNeverJoinedCloses: after Close, the client does not try to connect any longer.
func TestAClientThatNeverJoinedCloses(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	client, err := redislimit.Open(t.Context(), server.URL(), redislimit.JoinLater())
	require.NoError(t, err)
	goroutines := func() string {
		var text strings.Builder
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&text, 2))
		return text.String()
	}
	const joins = "(*Client).startLost"
	require.Eventually(t, func() bool { return strings.Contains(goroutines(), joins) }, 10*time.Second, time.Millisecond)
	require.NoError(t, client.Close())
	assert.NotContains(t, goroutines(), joins)
}

func admitted(t *testing.T, l *redislimit.Limiter, n int) (count int) {
	t.Helper()
	for range n {
		d, err := l.Take(t.Context(), "key", 1)
		require.NoError(t, err)
		if d.Allowed {
			count++
		}
	}
	return count
}

// TestAPasswordInTheAddress: the password of the default user is written as ":password".
func TestAPasswordInTheAddress(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "shop", "on", ">sesame", "+@all", "~*")
	server.Do("CONFIG", "SET", "requirepass", "a/b@c:d")
	for _, who := range []string{":a%2Fb%40c%3Ad", "default:a%2Fb%40c%3Ad", "shop:sesame"} {
		client, err := redislimit.Open(t.Context(), "redis://"+who+"@"+server.Addr(), redislimit.Timeout(10*time.Second))
		require.NoError(t, err, who)
		assert.True(t, take(t, limiter(t, client, slow(), redislimit.OnLoss(redislimit.FailClosed)), who, 1).Allowed)
		require.NoError(t, client.Close())
	}
	for who, want := range map[string]string{"": "NOAUTH", ":sesame@": "WRONGPASS", "shop:a%2Fb%40c%3Ad@": "WRONGPASS"} {
		_, err := redislimit.Open(t.Context(), "redis://"+who+server.Addr())
		assert.ErrorContains(t, err, want, who)
	}
}
