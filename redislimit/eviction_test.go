//go:build unix

package redislimit

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testlog"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// KnowsEviction reports whether the client has checked how all servers evict.
func (c *Client) KnowsEviction() bool { return c.eviction.next.Load() != 0 }

// evict makes a server drop all keys that it can drop, and then gives it memory again.
func evict(t *testing.T, server *redistest.Server) {
	server.Do("CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", "allkeys-random")
	require.Eventually(t, func() bool { return server.Do("DBSIZE") == "0" }, 10*time.Second, time.Millisecond)
	server.Do("CONFIG", "SET", "maxmemory", "1gb")
}

// A store that drops keys counts as lost for a while, except for a limiter with FailOpen.
func TestAStoreThatDropsKeysIsLost(t *testing.T) {
	const limit, share = 8, 2
	for _, onLoss := range []FailurePolicy{FailShare, FailClosed, FailOpen} {
		t.Run(onLoss.String(), func(t *testing.T) {
			server, log := redistest.Start(t), &testlog.Log{}
			client, err := Open(t.Context(), server.URL(), Timeout(10*time.Second), Logger(slog.New(slog.NewTextHandler(log, nil))))
			require.NoError(t, err)
			defer client.Close()
			l, err := New(client, "login", engine.TokenBucket(engine.Per(1, time.Hour), limit), Nodes(limit/share), OnLoss(onLoss), TrustRefusals(0))
			require.NoError(t, err)
			require.NoError(t, l.Close()) // so that nothing in the background checks for dropped keys
			require.Eventually(t, func() bool { return client.eviction.isBusy.CompareAndSwap(false, true) }, 10*time.Second, time.Millisecond)
			at := now()
			look := func(after time.Duration) { at += int64(after); client.checkEviction(at) }
			admitted := func() (n int) {
				for range 2 * limit {
					if d, err := l.Take(t.Context(), "k", 1); err == nil && d.Allowed {
						n++
					}
				}
				return n
			}
			look(0)
			require.Equal(t, limit, admitted())
			look(time.Second)
			require.Zero(t, client.Health().Lost)
			evict(t, server)
			look(time.Second)

			h := client.Health()
			assert.Equal(t, 1, h.Lost)
			assert.Equal(t, "eviction", h.LastErrorKind)
			assert.Len(t, log.With("lost until"), 1)
			want := map[FailurePolicy]int{FailShare: share, FailClosed: 0, FailOpen: limit}[onLoss]
			assert.Equal(t, want, admitted())
			_, err = l.Take(t.Context(), "k", 1)
			assert.Equal(t, onLoss == FailClosed, err != nil)
			if err != nil {
				assert.ErrorIs(t, err, ErrStore)
			}
			look(evictionQuiet - 1)
			assert.Equal(t, 1, client.Health().Lost)
			look(1)
			assert.Zero(t, client.Health().Lost)
			assert.Len(t, log.With("the store is back"), 1)
			if onLoss == FailShare {
				_, err := l.Take(t.Context(), "k", 1)
				require.NoError(t, err)
				require.Eventually(t, func() bool {
					d, err := l.Peek(t.Context(), "k", 1)
					return err == nil && d.Remaining == limit-share-1
				}, 10*time.Second, time.Millisecond, "what the share admitted is charged")
			}
		})
	}
}

// While a store drops keys, a share of less than one token starts empty, and leases are not renewed.
func TestSmallLimitsAndLeasesWhileAStoreDropsKeys(t *testing.T) {
	client, err := Open(t.Context(), redistest.Start(t).URL(), Timeout(10*time.Second))
	require.NoError(t, err)
	defer client.Close()
	small, err := New(client, "small", engine.TokenBucket(engine.Per(1, time.Hour), 1), Nodes(8))
	require.NoError(t, err)
	leased, err := New(client, "leased", engine.TokenBucket(engine.Per(360_000, time.Hour), 400), Nodes(4), InMode(Leased))
	require.NoError(t, err)
	require.NoError(t, small.Close())
	require.NoError(t, leased.Close())
	// A check that a limiter has started may still be running. It would find that the store drops no keys.
	require.Eventually(t, func() bool { return !client.eviction.isBusy.Load() }, 10*time.Second, time.Millisecond)
	at := now()
	small.now = func() int64 { return at }
	client.eviction.since.Store(at)
	calls := client.Health().Calls
	d, err := small.Take(t.Context(), "k", 1)
	require.NoError(t, err)
	assert.Equal(t, 8*time.Hour, d.RetryAfter)
	at += int64(8 * time.Hour)
	d, err = small.Take(t.Context(), "k", 1)
	require.NoError(t, err)
	assert.True(t, d.Allowed)
	admitted := 0
	for range 400 {
		if leased.Allow("k") {
			admitted++
		}
	}
	assert.LessOrEqual(t, admitted, 400/4+8+100, "the share, what comes back in a second, and the overdraft")
	assert.GreaterOrEqual(t, admitted, 400/4)
	assert.Equal(t, calls, client.Health().Calls)
}

// The warning about a policy that drops keys is repeated, and a restarted counter is noticed.
func TestEvictionIsWarnedOfAgainAndAgain(t *testing.T) {
	server, log := redistest.Start(t), &testlog.Log{}
	server.Do("CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "volatile-ttl")
	client, err := Open(t.Context(), server.URL(), Timeout(10*time.Second), Logger(slog.New(slog.NewTextHandler(log, nil))))
	require.NoError(t, err)
	defer client.Close()
	for second := range 61 {
		client.checkEviction(int64(second+1) * int64(time.Second))
	}
	assert.Len(t, log.With("maxmemory-policy=volatile-ttl"), 4)

	e := &client.eviction
	for i, step := range []struct{ said, grown int64 }{{7, 0}, {7, 0}, {9, 2}, {3, 3}, {0, 0}, {1, 1}} {
		assert.Equal(t, step.grown, e.newlyDropped("elsewhere", step.said), "%d: %+v", i, step)
	}
	for text, want := range map[string]evictionReport{
		"# Memory\r\nmaxmemory:5\r\nmaxmemory_policy:volatile-ttl\r\n# Stats\r\nevicted_keys:12\r\n": {"volatile-ttl", 12},
		"maxmemory:0\r\nmaxmemory_policy:volatile-ttl\r\nevicted_keys:0":                             {"", 0},
		"maxmemory:5\r\nmaxmemory_policy:noeviction":                                                 {"noeviction", -1},
	} {
		assert.Equal(t, want, readEviction(text), strconv.Quote(strings.TrimSpace(text)))
	}
}
