//go:build unix

package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

const (
	timeout   = 50 * time.Millisecond
	noLonger  = 3 * time.Second  // the longest time for a call if all processors are busy; client libraries wait 10s
	backSoon  = 10 * time.Second // time for the store to count as back, on such a machine
	silence   = 3 * timeout      // time until the store counts as lost
	burst     = 12
	faultNode = 4
)

func slow() engine.Policy { return engine.TokenBucket(engine.Per(1, time.Hour), burst) }

func algorithms() map[string]engine.Policy {
	return map[string]engine.Policy{
		"token bucket":   slow(),
		"fixed window":   engine.FixedWindow(burst, time.Hour),
		"sliding window": engine.SlidingWindow(burst, 365*24*time.Hour),
		"sliding log":    engine.SlidingLog(burst, time.Hour),
	}
}

// open opens a store with a short timeout and readable keys.
func open(t *testing.T, url string, options ...redislimit.ClientOption) *redislimit.Client {
	t.Helper()
	store, err := redislimit.Open(t.Context(), url, append([]redislimit.ClientOption{redislimit.Timeout(timeout), redislimit.BreakAfter(silence), redislimit.FullKeys()}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	return store
}

// patient opens a store with a timeout that is long enough for a busy machine.
func patient(t *testing.T, url string) *redislimit.Client {
	t.Helper()
	return open(t, url, redislimit.Timeout(10*time.Second))
}

// timed takes one token, and fails the test if the call takes too long.
func timed(t *testing.T, l *redislimit.Limiter, key string) (engine.Decision, error) {
	t.Helper()
	begin := time.Now()
	d, err := l.Take(t.Context(), key, 1)
	assert.Less(t, time.Since(begin), noLonger, "a Take took longer than its timeout")
	return d, err
}

type fault struct {
	begin, end func(*redistest.Server, *redistest.Proxy)
	forgets    bool // the store has lost its data
}

func faults() map[string]fault {
	cleared := func(_ *redistest.Server, p *redistest.Proxy) { p.Clear() }
	return map[string]fault{
		"slow":         {begin: func(_ *redistest.Server, p *redistest.Proxy) { p.Latency(4 * timeout) }, end: cleared},
		"black hole":   {begin: func(_ *redistest.Server, p *redistest.Proxy) { p.BlackHole() }, end: cleared},
		"answers lost": {begin: func(_ *redistest.Server, p *redistest.Proxy) { p.LoseAnswers() }, end: cleared},
		"reset":        {begin: func(_ *redistest.Server, p *redistest.Proxy) { p.Reset() }, end: cleared},
		"gone": {
			begin:   func(s *redistest.Server, _ *redistest.Proxy) { s.Stop() },
			end:     func(s *redistest.Server, _ *redistest.Proxy) { s.Restart() },
			forgets: true,
		},
		"SIGSTOP": {
			begin: func(s *redistest.Server, _ *redistest.Proxy) { s.Pause() },
			end:   func(s *redistest.Server, _ *redistest.Proxy) { s.Resume() },
		},
	}
}

func TestStoreSlowOrGoneAndBack(t *testing.T) {
	for name, fault := range faults() {
		for _, policy := range []redislimit.FailurePolicy{redislimit.FailShare, redislimit.FailClosed, redislimit.FailOpen} {
			t.Run(name+"/"+policy.String(), func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				proxy := redistest.StartProxy(t, server.Addr())
				store := open(t, proxy.URL())
				l := limiter(t, store, slow(), redislimit.OnLoss(policy), redislimit.Nodes(faultNode))
				require.Equal(t, redislimit.Strict, l.Mode())
				require.Eventually(t, func() bool {
					_, err := l.Take(t.Context(), "warm", 1)
					return err == nil && l.Stats().Store.Lost == 0 && store.Health().Calls > store.Health().Failures
				}, 10*time.Second, time.Millisecond)

				fault.begin(server, proxy)
				require.Eventually(t, func() bool {
					_, _ = timed(t, l, "broken")
					return l.Stats().Store.Lost == 1
				}, backSoon, time.Millisecond, "no answer, and the store does not count as lost")
				require.Equal(t, policy, l.Stats().OnLoss)
				require.Positive(t, l.Stats().Fallbacks)

				before, begin := store.Health().Calls, time.Now()
				allowed := 0
				for range 500 {
					d, err := timed(t, l, "lost")
					if policy == redislimit.FailClosed {
						require.ErrorIs(t, err, redislimit.ErrStore)
						require.False(t, d.Allowed)
						require.Positive(t, d.RetryAfter)
						continue
					}
					require.NoError(t, err)
					if d.Allowed {
						allowed++
					}
				}
				probes := int64(time.Since(begin)/(250*time.Millisecond)) + 1
				assert.LessOrEqual(t, store.Health().Calls-before, probes, "calls to a store that is lost")
				switch policy {
				case redislimit.FailShare:
					assert.Equal(t, burst/faultNode, allowed)
				case redislimit.FailClosed:
					assert.Zero(t, allowed)
				case redislimit.FailOpen:
					assert.Equal(t, 500, allowed)
				}

				fault.end(server, proxy)
				require.Eventually(t, func() bool {
					_, _ = timed(t, l, "probe")
					return l.Stats().Store.Lost == 0
				}, backSoon, 5*time.Millisecond, "the store is back, and still counts as lost: %+v", l.Stats())

				// If Fallbacks did not grow during a call, the store made the decision.
				admitted := 0
				for range 3 * burst {
					lost := l.Stats().Fallbacks
					d, err := l.Take(t.Context(), "lost", 1)
					if err == nil && d.Allowed && l.Stats().Fallbacks == lost {
						admitted++
					}
				}
				assert.LessOrEqual(t, admitted, burst)
			})
		}
	}
}

// A fault without loss of data gives a key no more tokens.
func TestAtMostOneExtraBurst(t *testing.T) {
	t.Parallel()
	for name, fault := range faults() {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			proxy := redistest.StartProxy(t, server.Addr())
			l := limiter(t, open(t, proxy.URL()), slow(), redislimit.OnLoss(redislimit.FailClosed))
			admitted := 0
			ask := func() {
				if d, err := timed(t, l, "k"); err == nil && d.Allowed {
					admitted++
				}
			}
			for range burst / 2 {
				ask()
			}
			fault.begin(server, proxy)
			for range 6 {
				ask()
			}
			fault.end(server, proxy)
			require.Eventually(t, func() bool { ask(); return l.Stats().Store.Lost == 0 }, backSoon, 5*time.Millisecond)
			for range 3 * burst {
				ask()
			}
			if fault.forgets {
				assert.LessOrEqual(t, admitted, burst/2+burst)
			} else {
				assert.LessOrEqual(t, admitted, burst)
			}
		})
	}
}

func TestFlushAllIsOneExtraBurst(t *testing.T) {
	server := redistest.Start(t)
	l := limiter(t, patient(t, server.URL()), slow(), redislimit.TrustRefusals(0))
	for range 2 {
		for i := range 2 * burst {
			require.Equal(t, i < burst, take(t, l, "k", 1).Allowed, i)
		}
		server.Do("FLUSHALL")
	}
}

// While the store is unavailable, a leased limiter first spends its tokens in hand.
func TestLeasesWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	for name, fault := range faults() {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			proxy := redistest.StartProxy(t, server.Addr())
			store := open(t, proxy.URL())
			const limit = 2000
			l := limiter(t, store, engine.TokenBucket(engine.PerSecond(1000), limit), redislimit.OnLoss(redislimit.FailClosed))
			require.Equal(t, redislimit.Leased, l.Mode())
			begin, admitted := time.Now(), uint64(0)
			ask := func() error {
				d, err := timed(t, l, "k")
				if d.Allowed {
					admitted++
				}
				return err
			}
			require.Eventually(t, func() bool { _ = ask(); return l.Stats().Held > 0 }, 10*time.Second, time.Millisecond)
			fault.begin(server, proxy)
			require.Eventually(t, func() bool { return errors.Is(ask(), redislimit.ErrStore) }, 10*time.Second, time.Millisecond,
				"closed, and it goes on admitting")
			require.Eventually(t, func() bool { _ = ask(); return l.Stats().Store.Lost == 1 }, 10*time.Second, time.Millisecond)
			fault.end(server, proxy)
			require.Eventually(t, func() bool { _ = ask(); return l.Stats().Store.Lost == 0 }, backSoon, 5*time.Millisecond)
			require.Eventually(t, func() bool { n := admitted; return ask() == nil && admitted > n }, backSoon, time.Millisecond)
			bound := l.Bound(time.Since(begin))
			if fault.forgets {
				bound += limit
			}
			assert.LessOrEqual(t, admitted, bound)
		})
	}
}

// If the store does not answer, requests end in time, and leave no goroutines and no memory behind.
func TestNothingQueuesWithoutBound(t *testing.T) {
	server := redistest.Start(t)
	l := limiter(t, open(t, server.URL(), redislimit.BreakAfter(time.Minute)), slow(), redislimit.OnLoss(redislimit.FailClosed))
	_, _ = timed(t, l, "k")
	before := runtime.NumGoroutine()
	server.Pause()
	var all sync.WaitGroup
	var longest atomic.Int64
	for i := range 3000 {
		all.Go(func() {
			begin := time.Now()
			_, _ = l.Take(t.Context(), strconv.Itoa(i), 1)
			for took := int64(time.Since(begin)); ; {
				if old := longest.Load(); took <= old || longest.CompareAndSwap(old, took) {
					return
				}
			}
		})
	}
	all.Wait()
	assert.Less(t, time.Duration(longest.Load()), noLonger)
	server.Resume()
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+10 }, 10*time.Second, 10*time.Millisecond, "calls that are out of time do not end")
}

func TestNoScript(t *testing.T) {
	server := redistest.Start(t)
	store := patient(t, server.URL())
	for name, policy := range algorithms() {
		l, err := redislimit.New(store, name, policy, redislimit.OnLoss(redislimit.FailClosed))
		require.NoError(t, err)
		for i := range burst {
			server.Do("SCRIPT", "FLUSH")
			d, err := l.Take(t.Context(), "k", 1)
			require.NoError(t, err, name)
			require.EqualValues(t, burst-1-i, d.Remaining, name)
		}
		require.NoError(t, l.Close())
	}
	assert.Zero(t, store.Health().Failures)

	leased := limiter(t, store, engine.TokenBucket(engine.PerSecond(1000), 1000), redislimit.OnLoss(redislimit.FailClosed))
	require.Equal(t, redislimit.Leased, leased.Mode())
	for range 20 {
		server.Do("SCRIPT", "FLUSH")
		require.NoError(t, errOf(leased.Take(t.Context(), "k", 1)))
	}
	assert.Zero(t, store.Health().Failures)
}

func errOf(_ engine.Decision, err error) error { return err }

func TestRestart(t *testing.T) {
	server := redistest.Start(t)
	l := limiter(t, patient(t, server.URL()), slow(), redislimit.OnLoss(redislimit.FailClosed))
	for range burst {
		require.True(t, take(t, l, "k", 1).Allowed)
	}
	server.Restart()
	// A dead connection may cause an error or two. A missing script must cause none.
	admitted, refused := 0, 0
	require.Eventually(t, func() bool {
		d, err := l.Take(t.Context(), "k", 1)
		switch {
		case err != nil:
			assert.NotContains(t, err.Error(), "NOSCRIPT")
		case d.Allowed:
			admitted++
		default:
			refused++
		}
		return refused == 10
	}, backSoon, time.Millisecond)
	assert.Equal(t, burst, admitted)
}

func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	store := patient(t, cluster.URL())
	l := limiter(t, store, slow(), redislimit.OnLoss(redislimit.FailClosed))
	require.Greater(t, store.Health().Parts, 1)

	t.Run("keys of all nodes", func(t *testing.T) {
		// All requests come at once, so that calls carry several keys. Keys in different slots would cause the error
		// CROSSSLOT.
		var all sync.WaitGroup
		for i := range 500 {
			all.Go(func() {
				d, err := l.Take(t.Context(), "key "+strconv.Itoa(i), 1)
				assert.NoError(t, err)
				assert.True(t, d.Allowed)
			})
		}
		all.Wait()
		total := 0
		for i, node := range cluster.Nodes {
			n := len(keysOf(node))
			assert.Positive(t, n, "node %d has no keys", i)
			total += n
		}
		assert.Equal(t, 500, total)
		assert.Zero(t, store.Health().Failures)
	})

	t.Run("leases", func(t *testing.T) {
		leased := limiter(t, store, engine.TokenBucket(engine.PerSecond(1000), 1000), redislimit.OnLoss(redislimit.FailClosed))
		require.Equal(t, redislimit.Leased, leased.Mode())
		for i := range 100 {
			for range 10 {
				require.NoError(t, errOf(leased.Take(t.Context(), strconv.Itoa(i), 1)))
			}
		}
		assert.Eventually(t, func() bool { return leased.Stats().Debt == 0 }, 10*time.Second, time.Millisecond)
		assert.Zero(t, store.Health().Failures)
	})

	t.Run("slot moved", func(t *testing.T) {
		require.True(t, take(t, l, "moved", burst/2).Allowed)
		name := ""
		for _, node := range cluster.Nodes {
			for _, key := range strings.Fields(node.Do("KEYS", "*:=moved")) {
				name = key
			}
		}
		require.NotEmpty(t, name)
		slot := cluster.Slot(name)
		for range 2 { // two moves: both are news to the client
			cluster.MoveSlot(slot, (cluster.Owner(slot)+1)%len(cluster.Nodes))
			d, err := l.Take(t.Context(), "moved", 1)
			require.NoError(t, err)
			require.True(t, d.Allowed)
		}
		for i := range burst {
			assert.Equal(t, i < burst-burst/2-2, take(t, l, "moved", 1).Allowed, "the moved key lost count")
		}
		assert.Zero(t, store.Health().Failures)
	})

	t.Run("every key has a time to live", func(t *testing.T) {
		for _, node := range cluster.Nodes {
			timesToLive(t, node)
		}
	})

	t.Run("a node is gone", func(t *testing.T) {
		store := open(t, cluster.URL())
		l := limiter(t, store, slow(), redislimit.OnLoss(redislimit.FailClosed))
		cluster.Nodes[2].Stop()
		require.Eventually(t, func() bool {
			for i := range 100 {
				_, _ = timed(t, l, "part "+strconv.Itoa(i))
			}
			return store.Health().Lost > 0
		}, 20*time.Second, time.Millisecond)
		require.Eventually(t, func() bool {
			served := 0
			for i := range 100 {
				if _, err := timed(t, l, "part "+strconv.Itoa(i)); err == nil {
					served++
				}
			}
			return served >= 40
		}, 20*time.Second, time.Millisecond)
		assert.Less(t, store.Health().Lost, store.Health().Parts)
	})
}

// timesToLive asserts that every key of the server has a time to live.
func timesToLive(t *testing.T, server *redistest.Server) int {
	t.Helper()
	keys := strings.Split(server.Do("KEYS", "*"), "\n")
	if keys[0] == "" {
		return 0
	}
	for _, key := range keys {
		// -2: the key has ended since KEYS listed it.
		assert.NotEqual(t, "-1", server.Do("PTTL", key), "%s lives for ever", key)
	}
	return len(keys)
}

func TestNoKeyWithoutTimeToLive(t *testing.T) {
	server := redistest.Start(t)
	store := patient(t, server.URL())
	policies := algorithms()
	policies["burst of 1"] = engine.TokenBucket(engine.PerSecond(1), 1)
	policies["fast"] = engine.TokenBucket(engine.PerSecond(1000000), 2)
	policies["short window"] = engine.FixedWindow(3, time.Millisecond)
	policies["short sliding window"] = engine.SlidingWindow(3, 10*time.Millisecond)
	policies["short log"] = engine.SlidingLog(3, 10*time.Millisecond)
	policies["aligned"] = engine.FixedWindow(3, time.Minute).Aligned()
	policies["leased"] = engine.TokenBucket(engine.PerSecond(1000), 1000)
	most := 0
	for name, policy := range policies {
		l, err := redislimit.New(store, name, policy)
		require.NoError(t, err, name)
		for i := range 60 {
			_, err := l.Take(t.Context(), strconv.Itoa(i%10), uint64(i%3)+1)
			require.NoError(t, err, name)
			if i%7 == 0 {
				require.NoError(t, l.Refund(t.Context(), strconv.Itoa(i%10), 1), name)
			}
		}
		most = max(most, timesToLive(t, server))
		require.NoError(t, l.Close())
	}
	timesToLive(t, server)
	assert.GreaterOrEqual(t, most, 40)
}

func TestRefusedTakesNothing(t *testing.T) {
	server := redistest.Start(t)
	store := patient(t, server.URL())
	for name, policy := range algorithms() {
		t.Run(name, func(t *testing.T) {
			l, err := redislimit.New(store, name, policy, redislimit.OnLoss(redislimit.FailClosed))
			require.NoError(t, err)
			defer func() { assert.NoError(t, l.Close()) }()
			require.True(t, take(t, l, "k", burst-2).Allowed)
			for _, n := range []uint64{3, burst, burst + 1, 1 << 60} {
				for range 20 {
					d := take(t, l, "k", n)
					require.False(t, d.Allowed)
					require.Equal(t, n > burst, d.RetryAfter == engine.Never)
				}
			}
			require.True(t, take(t, l, "k", 2).Allowed, "a refused request took something")
			require.False(t, take(t, l, "k", 1).Allowed)
		})
	}
}

// The store carries out a request without an answer at most once.
func TestLostAnswerTakesNoMoreThanWasWanted(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	l := limiter(t, open(t, proxy.URL()), slow(), redislimit.OnLoss(redislimit.FailClosed))
	// Now the script is loaded and all of up to four connections are open.
	inARow := 0
	require.Eventually(t, func() bool {
		if inARow++; errOf(l.Take(t.Context(), "warm", 1)) != nil {
			inARow = 0
		}
		return inARow == 50
	}, 20*time.Second, time.Millisecond)
	straight := limiter(t, patient(t, server.URL()), slow())
	server.Do("CONFIG", "RESETSTAT")
	proxy.LoseAnswers()
	d, err := l.Take(t.Context(), "k", 5)
	require.ErrorIs(t, err, redislimit.ErrStore)
	require.False(t, d.Allowed)
	require.Eventually(t, func() bool { return evaluations(t, server) == 1 }, 10*time.Second, time.Millisecond)
	proxy.Clear()
	assert.True(t, take(t, straight, "k", burst-5).Allowed)
	assert.False(t, take(t, straight, "k", 1).Allowed)
	assert.Equal(t, 3, evaluations(t, server), "a call was repeated")
}

func evaluations(t *testing.T, server *redistest.Server) int {
	t.Helper()
	n := 0
	for _, line := range strings.Fields(server.Do("INFO", "commandstats")) {
		var calls int
		for _, command := range []string{"eval", "evalsha"} {
			if _, err := fmt.Sscanf(line, "cmdstat_"+command+":calls=%d", &calls); err == nil {
				n += calls
			}
		}
	}
	return n
}

func TestALostLeaseCallIsNotRepeated(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	store := open(t, proxy.URL(), redislimit.BreakAfter(time.Millisecond))
	const limit = 2000
	policy := engine.TokenBucket(engine.PerSecond(100), limit)
	l := limiter(t, store, policy, redislimit.OnLoss(redislimit.FailClosed))
	require.Equal(t, redislimit.Leased, l.Mode())
	require.Eventually(t, func() bool { _ = l.Allow("k"); return l.Stats().Held > 0 }, 10*time.Second, time.Millisecond)
	given := func() bool { return l.Stats().Held == 0 && l.Stats().Leases == 0 }
	require.Eventually(t, given, 10*time.Second, time.Millisecond)
	server.Do("CONFIG", "RESETSTAT")
	before := store.Health().Calls
	proxy.LoseAnswers()
	require.Eventually(t, func() bool { _ = l.Allow("k"); return store.Health().Lost == 1 }, 10*time.Second, time.Millisecond)
	assert.LessOrEqual(t, evaluations(t, server), int(store.Health().Calls-before), "a call was repeated")
	proxy.Clear()
	// Another node gets all tokens except those of the lost calls.
	other := limiter(t, patient(t, server.URL()), policy, redislimit.OnLoss(redislimit.FailClosed))
	admitted := 0
	require.Eventually(t, func() bool {
		if other.Allow("k") {
			admitted++
		}
		return admitted > limit/2
	}, 20*time.Second, 10*time.Microsecond, "%d admitted", admitted)
}

// Calls at different times have identical arguments, so only the server's clock counts.
func TestNodesClocksDoNotMatter(t *testing.T) {
	server := redistest.Start(t)
	server.Do("CONFIG", "SET", "slowlog-log-slower-than", "0")
	for name, policy := range algorithms() {
		t.Run(name, func(t *testing.T) {
			var admitted atomic.Int64
			var all sync.WaitGroup
			for range 2 {
				node, err := redislimit.New(patient(t, server.URL()), name, policy, redislimit.OnLoss(redislimit.FailClosed))
				require.NoError(t, err)
				defer func() { assert.NoError(t, node.Close()) }()
				all.Go(func() {
					for range 5 * burst {
						d, err := node.Take(t.Context(), "k", 1)
						assert.NoError(t, err)
						if d.Allowed {
							admitted.Add(1)
						}
					}
				})
			}
			all.Wait()
			assert.EqualValues(t, burst, admitted.Load())

			client := server.Client()
			entries, err := client.Do(context.Background(), client.B().SlowlogGet().Count(60).Build()).ToArray()
			require.NoError(t, err)
			calls := map[string]int{}
			for _, entry := range entries {
				fields, err := entry.ToArray()
				require.NoError(t, err)
				arguments, err := fields[3].AsStrSlice()
				require.NoError(t, err)
				if strings.EqualFold(arguments[0], "evalsha") && strings.Contains(arguments[3], ":"+name+":") {
					calls[strings.Join(arguments, " ")]++
				}
			}
			assert.Len(t, calls, 1, "calls differ: %v", calls)
		})
	}
}

// The tokens in hand of a node that dies are lost. So fewer tokens are admitted, and never more.
func TestNodeCrash(t *testing.T) {
	server := redistest.Start(t)
	policy := engine.TokenBucket(engine.PerSecond(200), 800)
	begin, admitted := time.Now(), uint64(0)
	ask := func(l *redislimit.Limiter) bool {
		if l.Allow("k") {
			admitted++
			return true
		}
		return false
	}
	dead := limiter(t, patient(t, server.URL()), policy)
	require.Equal(t, redislimit.Leased, dead.Mode())
	require.Eventually(t, func() bool { ask(dead); return dead.Stats().Held > 0 }, 10*time.Second, time.Millisecond)
	require.NoError(t, dead.Close()) // Close of a dead node gives nothing back
	other := limiter(t, patient(t, server.URL()), policy)
	require.Eventually(t, func() bool { return !ask(other) && admitted > 600 }, 20*time.Second, 10*time.Microsecond)
	assert.LessOrEqual(t, admitted, other.Bound(time.Since(begin)))
}
