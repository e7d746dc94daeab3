//go:build unix

package redislimit_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testlog"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// Each loss and each return of the store is logged once, and the return is noticed without a request.
func TestWhatBecomesOfTheStoreIsLogged(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	var log testlog.Log
	client := open(t, proxy.URL(), redislimit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	l := limiter(t, client, slow())
	require.Eventually(t, func() bool { _, err := l.Peek(t.Context(), "k", 1); return err == nil }, backSoon, time.Millisecond)
	lostTime := client.Health().LostTime
	assert.Zero(t, lostTime)
	for loss := 1; loss <= 2; loss++ {
		proxy.BlackHole()
		require.Eventually(t, func() bool { _ = l.Allow("k"); return client.Health().Lost == 1 }, backSoon, time.Millisecond)
		for range 100 {
			_ = l.Allow("k")
		}
		h := client.Health()
		assert.Equal(t, "timeout", h.LastErrorKind)
		assert.Contains(t, h.LastError, "no answer within")
		assert.WithinDuration(t, time.Now(), h.LastErrorAt, time.Minute)
		var all []string // the log is written after Health counts the loss
		require.Eventually(t, func() bool { all = log.With("the store is lost"); return len(all) >= loss }, backSoon, time.Millisecond)
		require.Len(t, all, loss)
		assert.Contains(t, all[loss-1], "kind=timeout")
		assert.Contains(t, all[loss-1], "no answer within")

		proxy.Clear()
		require.Eventually(t, func() bool { return client.Health().Lost == 0 }, backSoon, time.Millisecond, "without a request it is not found to be back")
		assert.Greater(t, client.Health().LostTime, lostTime, "it grows with each loss")
		require.Eventually(t, func() bool { return len(log.With("the store is back")) == loss }, backSoon, time.Millisecond)
		lostTime = client.Health().LostTime
	}
	assert.Equal(t, lostTime, client.Health().LostTime, "it stands still while the store answers")
	assert.LessOrEqual(t, len(log.With("the store is slow")), 1, "in a minute")
}

// The documented rights suffice. Without one of them, Open returns an error.
func TestTheLeastRights(t *testing.T) {
	server := redistest.Start(t)
	rights := strings.Fields(redislimit.Rights)
	grant := func(rights ...string) {
		server.Do(append([]string{"ACL", "SETUSER", "weir", "reset", "on", ">secret", "+hello", "+ping", "+client", "+echo", "+info", "+auth", "+select"}, rights...)...)
	}
	url := "redis://weir:secret@" + server.Addr()
	grant(rights...)
	client, err := redislimit.Open(t.Context(), url, redislimit.Timeout(10*time.Second))
	require.NoError(t, err)
	defer client.Close()
	policies := algorithms()
	policies["leased"] = engine.TokenBucket(engine.PerSecond(1000), 400)
	for name, policy := range policies {
		l, err := redislimit.New(client, name, policy, redislimit.OnLoss(redislimit.FailClosed))
		require.NoError(t, err)
		for range 2 * burst {
			_, err = l.Take(t.Context(), "k", 1)
			require.NoError(t, err)
		}
		require.NoError(t, l.Refund(t.Context(), "k", 1))
		require.NoError(t, l.Reset(t.Context(), "k"))
		require.NoError(t, l.Close())
	}
	for i, right := range rights {
		grant(slices.Delete(slices.Clone(rights), i, i+1)...)
		server.Do("SCRIPT", "FLUSH") // otherwise EVAL is not needed
		_, err := redislimit.Open(t.Context(), url, redislimit.Timeout(10*time.Second))
		if assert.Error(t, err, "without %s", right) {
			assert.ErrorContains(t, err, "want the rights ~weir:*")
			assert.NotContains(t, err.Error(), "secret")
		}
	}

	grant(rights...)
	var log testlog.Log
	late, err := redislimit.Open(t.Context(), url, redislimit.Timeout(10*time.Second),
		redislimit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	defer late.Close()
	l := limiter(t, late, slow())
	grant("+eval", "+evalsha", "~weir:*")
	require.Eventually(t, func() bool { _ = l.Allow("k"); return late.Health().Lost == 1 }, backSoon, time.Millisecond)
	assert.Equal(t, "forbidden", late.Health().LastErrorKind)
	require.Eventually(t, func() bool { return len(log.With("the store is lost")) > 0 }, backSoon, time.Millisecond)
	assert.Contains(t, strings.Join(log.With("the store is lost"), ""), "kind=forbidden")
}
