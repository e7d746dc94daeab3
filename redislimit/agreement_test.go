//go:build unix

package redislimit_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testlog"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// Nodes that differ in what must be the same hold limits of their own. The later one says so, once, with both settings.
func TestSettingsThatDifferAreSaid(t *testing.T) {
	server := redistest.Start(t)
	secret := "a secret of the test"
	node := func(options ...redislimit.ClientOption) (*redislimit.Limiter, *testlog.Log) {
		log := &testlog.Log{}
		options = append(options, redislimit.Timeout(10*time.Second), redislimit.Logger(slog.New(slog.NewTextHandler(log, nil))))
		client, err := redislimit.Open(t.Context(), server.URL(), options...)
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		return limiter(t, client, slow()), log
	}
	left := func(settings string) {
		require.Eventually(t, func() bool { return server.Do("GET", "weir:settings:test") == settings }, backSoon, time.Millisecond)
	}
	first, _ := node()
	left("prefix=weir partitions=64 keys=hashed secret=none")
	same, log := node()
	assert.Never(t, func() bool { return same.Stats().Differs != "" || len(log.With("other settings")) > 0 }, time.Second/2, time.Second/10)
	require.NoError(t, first.Close()) // which would leave its settings again
	require.NoError(t, same.Close())
	for option, settings := range map[string]redislimit.ClientOption{
		"prefix=shop partitions=64 keys=hashed secret=none":     redislimit.Prefix("shop"),
		"prefix=weir partitions=32 keys=hashed secret=none":     redislimit.Partitions(32),
		"prefix=weir partitions=64 keys=full secret=none":       redislimit.FullKeys(),
		"prefix=weir partitions=64 keys=hashed secret=a5024497": redislimit.Secret(secret),
	} {
		server.Do("SET", "weir:settings:test", "prefix=weir partitions=64 keys=hashed secret=none", "PX", "60000")
		l, log := node(settings)
		require.Eventually(t, func() bool { return l.Stats().Differs != "" }, backSoon, time.Millisecond, option)
		assert.Equal(t, "prefix=weir partitions=64 keys=hashed secret=none", l.Stats().Differs)
		var said []string // the log is written behind the number
		require.Eventually(t, func() bool { said = log.With("other settings"); return len(said) > 0 }, backSoon, time.Millisecond, option)
		if assert.Len(t, said, 1) {
			assert.Contains(t, said[0], `here="`+option+`"`)
			assert.Contains(t, said[0], `there="prefix=weir partitions=64 keys=hashed secret=none"`)
		}
		left(option)
		require.NoError(t, l.Close())
		assert.NotContains(t, strings.Join(said, ""), secret)
	}
	assert.NotEqual(t, "-1", server.Do("PTTL", "weir:settings:test"), "settings stay for ever")
}

// What cannot be compared, because the user may not or the key is another's, is no failure of the store.
func TestSettingsThatCannotBeCompared(t *testing.T) {
	server := redistest.Start(t)
	server.Do("LPUSH", "weir:settings:test", "another's")
	client := patient(t, server.URL())
	l := limiter(t, client, slow())
	assert.True(t, take(t, l, "k", 1).Allowed)
	assert.Zero(t, client.Health().Failures)
	server.Do("ACL", "SETUSER", "shop", "on", ">secret", "+@all", "~shop:*")
	log := &testlog.Log{}
	client, err := redislimit.Open(t.Context(), "redis://shop:secret@"+server.Addr(), redislimit.Prefix("shop"),
		redislimit.Timeout(10*time.Second), redislimit.Logger(slog.New(slog.NewTextHandler(log, nil))))
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	l = limiter(t, client, slow())
	assert.True(t, take(t, l, "k", 1).Allowed)
	assert.Zero(t, client.Health().Failures)
	assert.Empty(t, l.Stats().Differs)
	assert.Equal(t, "1", server.Do("LLEN", "weir:settings:test"))
}
