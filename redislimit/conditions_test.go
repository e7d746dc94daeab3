//go:build unix

package redislimit_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testlog"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// A server that answers but refuses to write counts as lost until it accepts writes.
func TestAServerThatDoesNotWriteStaysLost(t *testing.T) {
	for kind, change := range map[string][2][]string{
		"oom":        {{"CONFIG", "SET", "maxmemory", "1"}, {"CONFIG", "SET", "maxmemory", "0"}},
		"readonly":   {{"REPLICAOF", "127.0.0.1", "1"}, {"REPLICAOF", "NO", "ONE"}},
		"noreplicas": {{"CONFIG", "SET", "min-replicas-to-write", "1"}, {"CONFIG", "SET", "min-replicas-to-write", "0"}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server, log := redistest.Start(t), &testlog.Log{}
			store := open(t, server.URL(), redislimit.Logger(slog.New(slog.NewTextHandler(log, nil))))
			shared, err := redislimit.New(store, "shared", slow(), redislimit.Nodes(faultNode))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, shared.Close()) })
			require.Eventually(t, func() bool { d, err := shared.Peek(t.Context(), "k", 1); return err == nil && d.Allowed }, backSoon, time.Millisecond)
			server.Do(change[0]...)
			require.Eventually(t, func() bool { _, _ = timed(t, shared, "other"); return store.Health().Lost == 1 }, backSoon, time.Millisecond)
			assert.Equal(t, kind, store.Health().LastErrorKind)
			calls := store.Health().Calls
			allowed := 0
			require.Eventually(t, func() bool { // three probes, which the limiter sends itself
				if d, err := timed(t, shared, "k"); assert.NoError(t, err) && d.Allowed {
					allowed++
				}
				return store.Health().Calls >= calls+3
			}, backSoon, time.Millisecond)
			assert.Equal(t, burst/faultNode, allowed, "the share, once")
			assert.Empty(t, log.With("the store is back"), "it is not")
			assert.LessOrEqual(t, len(log.With("the store is lost")), 1)
			server.Do(change[1]...)
			require.Eventually(t, func() bool { return store.Health().Lost == 0 }, backSoon, time.Millisecond, "no request is needed")
			require.Eventually(t, func() bool {
				d, err := shared.Peek(t.Context(), "k", 1)
				return err == nil && d.Remaining <= burst-burst/faultNode
			}, backSoon, time.Millisecond, "what the share admitted is charged")
		})
	}
}

// The log warns about a policy that drops keys that owe something.
func TestEvictionIsTold(t *testing.T) {
	server := redistest.Start(t)
	for _, test := range []struct {
		memory, policy, user string
		evicts               string
		isTold, isMute       bool
	}{
		{"100mb", "allkeys-lru", "+@all", "allkeys-lru", false, false},
		{"100mb", "volatile-random", "+@all -info", "volatile-random", true, true},
		{"100mb", "allkeys-lfu", "+@all -config", "allkeys-lfu", true, false},
		{"100mb", "allkeys-lfu", "+@all -config -info", "", false, true},
		{"100mb", "volatile-ttl", "+@all", "volatile-ttl", true, false},
		{"100mb", "noeviction", "+@all", "", false, false},
		{"0", "allkeys-lfu", "+@all", "", false, false},
		{"0", "allkeys-lfu", "+@all -info", "", false, true},
	} {
		server.Do("CONFIG", "SET", "maxmemory", test.memory, "maxmemory-policy", test.policy)
		server.Do(append([]string{"ACL", "SETUSER", "weir", "reset", "on", ">secret", "~*"}, strings.Fields(test.user)...)...)
		log := &testlog.Log{}
		store := open(t, "redis://weir:secret@"+server.Addr(), redislimit.Timeout(10*time.Second), redislimit.Logger(slog.New(slog.NewTextHandler(log, nil))))
		for _, name := range []string{"one", "two"} {
			l, err := redislimit.New(store, name, slow())
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, l.Close()) })
		}
		require.Eventually(t, store.KnowsEviction, backSoon, time.Millisecond)
		assert.Equal(t, test.evicts, store.Health().Evicts, "%+v", test)
		told := log.With("drops keys")
		if !test.isTold {
			assert.Empty(t, told, "%+v", test)
		} else if assert.Len(t, told, 1, "%+v", test) {
			assert.Contains(t, told[0], "maxmemory-policy="+test.evicts)
		}
		assert.Equal(t, test.isMute, len(log.With("does not report how many keys")) == 1, "%+v", test)
	}
}

// Each eviction of a key admits one extra burst, and no more.
func TestAnEvictedKeyIsOneExtraBurst(t *testing.T) {
	server := redistest.Start(t)
	l := limiter(t, patient(t, server.URL()), slow(), redislimit.OnLoss(redislimit.FailClosed), redislimit.TrustRefusals(0))
	admitted := 0
	for i := range 4 * burst {
		if i == 2*burst {
			for _, name := range keysOf(server) {
				server.Do("DEL", name) // as eviction does
			}
		}
		if take(t, l, "k", 1).Allowed {
			admitted++
		}
	}
	assert.Equal(t, 2*burst, admitted)
}

// After every error that a store can return, the failure policy decides at once, and the store is used again later.
func TestErrorsThatAStoreAnswers(t *testing.T) {
	for _, text := range []string{
		"LOADING Redis is loading the dataset in memory",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
		"OOM command not allowed when used memory > 'maxmemory'.",
		"CLUSTERDOWN The cluster is down",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"TRYAGAIN Multiple keys request during rehashing of slot",
		"ERR max number of clients reached",
	} {
		kind := strings.ToLower(strings.Fields(text)[0])
		if kind == "err" {
			kind, text = "error", "max number of clients reached"
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server, store := mini(t, redislimit.BreakAfter(time.Millisecond))
			open := limiter(t, store, slow(), redislimit.OnLoss(redislimit.FailOpen))
			closed := limiter(t, store, slow(), redislimit.OnLoss(redislimit.FailClosed))
			shared, err := redislimit.New(store, "shared", slow(), redislimit.Nodes(faultNode))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, shared.Close()) })
			require.True(t, take(t, shared, "k", 1).Allowed)
			server.SetError(text)
			require.Eventually(t, func() bool { _, _ = timed(t, closed, "k"); return store.Health().Lost == 1 }, backSoon, time.Millisecond)
			assert.Equal(t, kind, store.Health().LastErrorKind)
			assert.Contains(t, store.Health().LastError, text)
			for i := range 2 * burst {
				d, err := timed(t, shared, "k")
				require.NoError(t, err)
				assert.Equal(t, i < burst/faultNode, d.Allowed, i)
				assert.True(t, take(t, open, "k", 1).Allowed)
				d, err = timed(t, closed, "k")
				assert.ErrorIs(t, err, redislimit.ErrStore)
				assert.False(t, d.Allowed)
			}
			server.SetError("")
			require.Eventually(t, func() bool { return store.Health().Lost == 0 }, backSoon, time.Millisecond)
			require.Eventually(t, func() bool { return peek(t, shared, "k", 1).Remaining == burst-1-burst/faultNode }, backSoon, time.Millisecond, "the share is charged")
		})
	}
}

// While a limit changes on one node after the other, the admitted tokens of all nodes together are between the smaller
// and the larger limit.
func TestALimitThatChangesUnderTraffic(t *testing.T) {
	const seconds, step = 3, 5 * time.Millisecond
	before, after := engine.TokenBucket(engine.PerSecond(100), 50), engine.TokenBucket(engine.Per(3000, time.Minute), 20)
	old, fresh := uint64(50+100*seconds), uint64(20+50*seconds)
	type taker interface {
		Take(ctx context.Context, key string, n uint64) (engine.Decision, error)
	}
	admitted := func(server *miniredis.Miniredis, nodes ...taker) (sum uint64) {
		for i := range int(seconds * time.Second / step) {
			server.SetTime(time.Unix(1_000_000_000, 0).Add(time.Duration(i) * step))
			for _, node := range nodes {
				if d, err := node.Take(t.Context(), "k", 1); assert.NoError(t, err) && d.Allowed {
					sum++
				}
			}
		}
		return sum
	}
	options := []redislimit.Option{redislimit.InMode(redislimit.Strict), redislimit.TrustRefusals(0)}
	server, store := mini(t)
	sum := admitted(server, limiter(t, store, before, options...), limiter(t, store, after, options...))
	assert.LessOrEqual(t, sum, old)
	assert.GreaterOrEqual(t, sum, fresh)

	server, store = mini(t)
	l := limiter(t, store, engine.TokenBuckets(time.Minute), options...)
	large, err := l.Quota(before)
	require.NoError(t, err)
	small, err := l.Quota(after)
	require.NoError(t, err)
	sum = admitted(server, large, small)
	assert.LessOrEqual(t, sum, old)
	assert.GreaterOrEqual(t, sum, fresh)
}

// Each time a store is emptied, a key gets at most one more limit, even with leases.
func TestFlushAllUnderLeases(t *testing.T) {
	for name, policy := range map[string]engine.Policy{
		"token bucket": engine.TokenBucket(engine.PerSecond(1000), 400),
		"fixed window": engine.FixedWindow(1000, time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			server, store := mini(t) // the server's clock stands still, so no tokens come back
			nodes := []*redislimit.Limiter{limiter(t, store, policy, redislimit.InMode(redislimit.Leased)), limiter(t, store, policy, redislimit.InMode(redislimit.Leased))}
			admitted, flushes := uint64(0), uint64(4)
			for flush := range flushes + 1 {
				if flush > 0 {
					server.FlushAll()
				}
				for begin := admitted; admitted < begin+policy.Limit()/2; {
					for _, l := range nodes {
						if l.Allow("k") {
							admitted++
						}
					}
				}
			}
			for refused := 0; refused < 1000; refused++ {
				if nodes[refused%2].Allow("k") {
					admitted, refused = admitted+1, 0
				}
			}
			assert.LessOrEqual(t, admitted, (flushes+1)*policy.Limit()+2*8)
		})
	}
}
