//go:build unix

package redislimit_test

import (
	"fmt"
	"log/slog"
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

// Nodes with different settings have separate limits, and the later node logs this once.
func TestSettingsThatDifferAreSaid(t *testing.T) {
	server := redistest.Start(t)
	secret := "a secret of the test"
	full := func(settings string) string {
		return fmt.Sprintf("format=2 %s kind=bucket policy=(%v)", settings, slow())
	}
	mine := full("prefix=weir partitions=64 keys=hashed secret=none")
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
	left(mine)
	same, log := node()
	assert.Never(t, func() bool { return same.Stats().Differs != "" || len(log.With("other settings")) > 0 }, time.Second/2, time.Second/10)
	require.NoError(t, first.Close())
	require.NoError(t, same.Close())
	for option, settings := range map[string]redislimit.ClientOption{
		"prefix=shop partitions=64 keys=hashed secret=none":     redislimit.Prefix("shop"),
		"prefix=weir partitions=32 keys=hashed secret=none":     redislimit.Partitions(32),
		"prefix=weir partitions=64 keys=full secret=none":       redislimit.FullKeys(),
		"prefix=weir partitions=64 keys=hashed secret=a5024497": redislimit.Secret(secret),
	} {
		option = full(option)
		server.Do("SET", "weir:settings:test", mine, "PX", "60000")
		l, log := node(settings)
		require.Eventually(t, func() bool { return l.Stats().Differs != "" }, backSoon, time.Millisecond, option)
		assert.Equal(t, mine, l.Stats().Differs)
		var said []string // the log is written after Differs is set
		require.Eventually(t, func() bool { said = log.With("other settings"); return len(said) > 0 }, backSoon, time.Millisecond, option)
		if assert.Len(t, said, 1) {
			assert.Contains(t, said[0], `here="`+option+`"`)
			assert.Contains(t, said[0], `there="`+mine+`"`)
		}
		left(option)
		require.NoError(t, l.Close())
		assert.NotContains(t, strings.Join(said, ""), secret)
	}
	assert.NotEqual(t, "-1", server.Do("PTTL", "weir:settings:test"), "settings stay for ever")
}

// Settings that cannot be compared do not count as a failure of the store.
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

// While a change of numbers is rolled out, no key gets a second limit, and the nodes report the difference.
func TestARollingChangeOfNumbers(t *testing.T) {
	for name, of := range map[string]func(uint64) engine.Policy{
		"token bucket":   func(n uint64) engine.Policy { return engine.TokenBucket(engine.Per(float64(n), 24*time.Hour), n) },
		"fixed window":   func(n uint64) engine.Policy { return engine.FixedWindow(n, 24*time.Hour) },
		"sliding window": func(n uint64) engine.Policy { return engine.SlidingWindow(n, 24*time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			log := &testlog.Log{}
			var nodes []*redislimit.Limiter
			start := func(policy engine.Policy) *redislimit.Limiter {
				client := open(t, server.URL(), redislimit.Timeout(10*time.Second), redislimit.Logger(slog.New(slog.NewTextHandler(log, nil))))
				return limiter(t, client, policy, redislimit.OnLoss(redislimit.FailClosed))
			}
			for range 4 {
				nodes = append(nodes, start(of(1000)))
			}
			admitted := 0
			all := func() {
				for i := range 600 {
					if take(t, nodes[i%4], "k", 3).Allowed {
						admitted += 3
					}
				}
			}
			all()
			require.InDelta(t, 1000, admitted, 3)
			for i := range nodes {
				require.NoError(t, nodes[i].Close())
				nodes[i] = start(of(1001))
				if i == 1 {
					require.Eventually(t, func() bool { return len(log.With("other numbers")) > 0 }, backSoon, time.Millisecond)
					assert.Contains(t, nodes[i].Stats().Differs+nodes[0].Stats().Differs, fmt.Sprintf("policy=(%v)", of(1000)))
				}
				all()
			}
			assert.LessOrEqual(t, admitted, 1002)
			assert.Empty(t, log.With("other settings"))
		})
	}
}

// TestASharedName: the numbers of limiters with one shared name are not compared.
func TestASharedName(t *testing.T) {
	server := redistest.Start(t)
	var limiters []*redislimit.Limiter
	for _, policy := range []engine.Policy{slow(), engine.TokenBucket(engine.Per(7, time.Hour), 7)} {
		client, err := redislimit.Open(t.Context(), server.URL(), redislimit.Timeout(10*time.Second))
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		l, err := redislimit.New(client, "shared", policy, redislimit.SharedName())
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		limiters = append(limiters, l)
		require.Eventually(t, func() bool {
			return server.Do("GET", "weir:settings:shared") == "format=2 prefix=weir partitions=64 keys=hashed secret=none kind=bucket"
		}, backSoon, time.Millisecond)
	}
	assert.Never(t, func() bool { return limiters[0].Stats().Differs+limiters[1].Stats().Differs != "" }, time.Second/2, time.Second/10)
}
