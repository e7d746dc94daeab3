//go:build unix

package redislimit_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

const placeLife = time.Second

func places(t *testing.T, store *redislimit.Client, limit uint64, options ...redislimit.Option) *redislimit.Limiter {
	t.Helper()
	l, err := redislimit.New(store, "places", engine.Concurrency(limit, time.Hour), append([]redislimit.Option{redislimit.PlaceLife(placeLife)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

func enter(t *testing.T, l *redislimit.Limiter, key string, n uint64) *redislimit.Entry {
	t.Helper()
	e, d, err := l.Enter(t.Context(), key, n)
	require.NoError(t, err)
	require.True(t, d.Allowed)
	t.Cleanup(func() { e.Release() })
	return e
}

// The places of all nodes count together, and are given back once.
func TestPlacesOfAllNodes(t *testing.T) {
	server := redistest.Start(t)
	a, b := places(t, patient(t, server.URL()), 5), places(t, patient(t, server.URL()), 5)
	first, second := enter(t, a, "k", 2), enter(t, b, "k", 2)
	refused, d, err := a.Enter(t.Context(), "k", 2)
	require.NoError(t, err)
	require.False(t, d.Allowed)
	require.Positive(t, d.RetryAfter)
	require.LessOrEqual(t, d.RetryAfter, placeLife)
	require.EqualValues(t, 4, usedOf(t, a, "k"))
	for range 3 {
		refused.Release()
		first.Release()
		(&redislimit.Entry{}).Release()
	}
	becomes(t, b, "k", 2)
	third := enter(t, a, "k", 3)
	second.Release()
	third.Release()
	becomes(t, a, "k", 0)
	_, d, err = a.Enter(t.Context(), "k", 6)
	require.NoError(t, err)
	require.Equal(t, engine.Never, d.RetryAfter)
	_, _, err = a.Hold(t.Context(), "k", 1)
	require.ErrorContains(t, err, "use Enter")
	_, _, err = limiter(t, patient(t, server.URL()), slow()).Enter(t.Context(), "k", 1)
	require.ErrorContains(t, err, "want one of engine.Concurrency")
}

// When a node is cut off, its places end after PlaceLife.
func TestADeadNodeFreesItsPlaces(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	dead, alive := places(t, patient(t, proxy.URL()), 4), places(t, patient(t, server.URL()), 4)
	enter(t, dead, "k", 2)
	kept := enter(t, alive, "k", 1)
	proxy.BlackHole()
	died := time.Now()
	require.EqualValues(t, 3, usedOf(t, alive, "k"))
	becomes(t, alive, "k", 1)
	assert.Greater(t, time.Since(died), placeLife/2)
	require.Never(t, func() bool { return usedOfNow(alive, "k") != 1 }, 2*placeLife, 10*time.Millisecond, "a place of a node that lives")
	server.Do("FLUSHALL")
	becomes(t, alive, "k", 1)
	kept.Release()
	becomes(t, alive, "k", 0)
	require.Never(t, func() bool { return usedOfNow(alive, "k") != 0 }, placeLife, 10*time.Millisecond, "a place that was released is not renewed")
}

func usedOfNow(l *redislimit.Limiter, key string) uint64 {
	d, err := l.Peek(context.Background(), key, 1)
	if err != nil {
		return 1 << 40
	}
	return d.Limit - d.Remaining
}

// A node is cut off from the store for so long that the store forgets the node's requests in flight. When the node is
// back, it reports them again.
func TestANodeThatOutlivesItsPlaces(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	away, here := places(t, open(t, proxy.URL()), 4), places(t, patient(t, server.URL()), 4)
	var long *redislimit.Entry
	require.Eventually(t, func() bool {
		e, d, err := away.Enter(t.Context(), "k", 3)
		long = e
		return err == nil && d.Allowed && usedOfNow(here, "k") == 3
	}, backSoon, 10*time.Millisecond)
	proxy.BlackHole()
	becomes(t, here, "k", 0)
	entered := enter(t, here, "k", 4)
	proxy.Clear()
	require.Eventually(t, func() bool { _, d, err := here.Enter(t.Context(), "k", 1); return err == nil && !d.Allowed }, backSoon, time.Millisecond)
	entered.Release()
	becomes(t, here, "k", 3)
	enter(t, here, "k", 1)
	long.Release()
	becomes(t, here, "k", 1)
}

// While the store is lost, a node has at most its share of places in flight, and reports them later.
func TestPlacesWhileTheStoreIsLost(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := places(t, open(t, server.URL()), 10, redislimit.Nodes(2))
	before := enter(t, l, "k", 2)
	server.Pause()
	lost := func() bool {
		_, err := l.Take(t.Context(), "x", 1)
		return err == nil && l.Stats().Store.Lost > 0
	}
	require.Eventually(t, lost, backSoon, time.Millisecond)
	during := enter(t, l, "k", 3)
	_, d, err := l.Enter(t.Context(), "k", 1)
	require.NoError(t, err)
	require.False(t, d.Allowed, "five of ten")
	before.Release()
	again := enter(t, l, "k", 1)
	server.Resume()
	require.Eventually(t, func() bool { return usedOfNow(l, "k") == 4 }, backSoon, time.Millisecond, "with nothing but the two that were released")
	during.Release()
	again.Release()
	require.Eventually(t, func() bool { return usedOfNow(l, "k") == 0 }, backSoon, time.Millisecond)
	closed := places(t, open(t, server.URL()), 10, redislimit.OnLoss(redislimit.FailClosed))
	server.Pause()
	defer server.Resume()
	_, _, err = closed.Enter(t.Context(), "k", 1)
	require.ErrorIs(t, err, redislimit.ErrStore)
}

// One script decides a place, a rate and an estimate of a request, all or nothing.
func TestPlacesHoldsAndRatesTogether(t *testing.T) {
	server := redistest.Start(t)
	store := patient(t, server.URL())
	var list []limits.Limit[errand]
	all := map[string]*redislimit.Limiter{}
	for name, policy := range map[string]engine.Policy{
		"rate": engine.FixedWindow(5, time.Hour), "busy": engine.Concurrency(1, time.Hour), "tokens": engine.TokenBucket(engine.Per(1, time.Hour), 100),
	} {
		l, err := redislimit.New(store, name, policy)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, l.Close()) })
		made := limitOf(name, l)
		if made.Refund = nil; name == "tokens" {
			made.Hold, made.Cost = true, func(errand) uint64 { return 30 }
		}
		all[name], list = l, append(list, made)
	}
	tokens := all["tokens"]
	set, err := limits.New(list, limits.Options[errand]{})
	require.NoError(t, err)
	e := errand{"rate": "k", "busy": "k", "tokens": "k"}
	warm := set.Decide(t.Context(), e)
	require.True(t, warm.Allowed())
	warm.Release()
	becomes(t, all["busy"], textOf("k"), 0)

	server.Do("CONFIG", "RESETSTAT")
	first := set.Decide(t.Context(), e)
	require.True(t, first.Allowed())
	require.Equal(t, 1, evaluations(t, server))
	second := set.Decide(t.Context(), e)
	require.False(t, second.Allowed())
	require.Equal(t, 2, evaluations(t, server), "a refusal has nothing to undo")
	require.EqualValues(t, 2, used(t, all["rate"], "k"))
	require.EqualValues(t, 60, used(t, tokens, "k"))
	require.Zero(t, limits.HoldFrom(first.Context(t.Context()), "tokens").Settle(10))
	becomes(t, tokens, textOf("k"), 40)
	first.Release()
	first.Release()
	becomes(t, all["busy"], textOf("k"), 0)
	for i := range uint64(3) {
		res := set.Decide(t.Context(), e)
		require.True(t, res.Allowed())
		res.Release()
		becomes(t, all["busy"], textOf("k"), 0)
		limits.HoldFrom(res.Context(t.Context()), "tokens").Settle(1)
		becomes(t, tokens, textOf("k"), 41+i)
	}
	last := set.Decide(t.Context(), e)
	require.False(t, last.Allowed())
	require.Zero(t, used(t, all["busy"], "k"))
	require.EqualValues(t, 43, used(t, tokens, "k"))
}

// Never more requests are in flight than the limit allows, and none at the end.
func TestNoMoreInFlightThanTheLimit(t *testing.T) {
	server := redistest.Start(t)
	const limit = 7
	nodes := []*redislimit.Limiter{places(t, patient(t, server.URL()), limit), places(t, patient(t, server.URL()), limit)}
	var now, most, admitted atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for range 60 {
				e, d, err := nodes[i%2].Enter(t.Context(), "k", 1)
				if assert.NoError(t, err) && d.Allowed {
					admitted.Add(1)
					for n, old := now.Add(1), int64(0); ; {
						if old = most.Load(); old >= n || most.CompareAndSwap(old, n) {
							break
						}
					}
					now.Add(-1)
					e.Release()
				}
			}
		})
	}
	all.Wait()
	assert.LessOrEqual(t, most.Load(), int64(limit))
	assert.Greater(t, admitted.Load(), int64(limit))
	becomes(t, nodes[0], "k", 0)
}

// A closed limiter renews the places of its requests, and the next limiter gives them to no other request.
func TestAClosedLimiterRenewsItsPlaces(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := patient(t, server.URL())
	before, after := places(t, client, 2), places(t, patient(t, server.URL()), 3)
	first, second := enter(t, before, "k", 1), enter(t, before, "k", 1)
	require.NoError(t, before.Close())
	require.NoError(t, client.Close())
	server.Do("FLUSHALL")
	becomes(t, after, "k", 2)
	require.Never(t, func() bool { return usedOfNow(after, "k") != 2 }, 2*placeLife, 10*time.Millisecond)
	first.Release()
	becomes(t, after, "k", 1)
	late := enter(t, before, "k", 1)
	second.Release()
	server.Do("FLUSHALL")
	becomes(t, after, "k", 1)
	late.Release()
	becomes(t, after, "k", 0)
	require.Eventually(t, func() bool { h := client.Health(); return h.Opened == h.Closed }, backSoon, time.Millisecond, "the client is closed")
	e, _, err := before.Enter(t.Context(), "k", 1)
	require.NoError(t, err)
	require.NoError(t, client.Close())
	e.Release()
}

// A request that is being decided while its limiter and client are closed keeps its places.
func TestAnEntryThatIsDecidedWhileItsLimiterCloses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := patient(t, server.URL())
	l, watch := places(t, client, 2), places(t, patient(t, server.URL()), 2)
	becomes(t, watch, "k", 0)
	release := enter(t, l, "k", 1)
	require.True(t, release.Release())
	becomes(t, watch, "k", 0)
	server.Pause()
	calls := client.Health().Calls
	entries := make(chan *redislimit.Entry, 1)
	go func() {
		e, _, err := l.Enter(context.Background(), "k", 1)
		assert.NoError(t, err)
		entries <- e
	}()
	require.Eventually(t, func() bool { return client.Health().Calls > calls }, backSoon, time.Millisecond)
	require.NoError(t, l.Close())
	require.NoError(t, client.Close()) // Close does not wait for the answer, which cannot come yet
	server.Resume()
	e := <-entries
	becomes(t, watch, "k", 1)
	require.Never(t, func() bool { return usedOfNow(watch, "k") != 1 }, 2*placeLife, 10*time.Millisecond)
	e.Release()
	becomes(t, watch, "k", 0)
	require.Eventually(t, func() bool { h := client.Health(); return h.Opened == h.Closed }, backSoon, time.Millisecond, "the client is closed")
}

// A closed limiter that decides a request renews the places of that request.
func TestAClosedLimiterDecidesAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := open(t, server.URL())
	l, err := redislimit.New(client, "places", engine.Concurrency(2, 3*placeLife), redislimit.PlaceLife(placeLife))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	watch := places(t, patient(t, server.URL()), 2)
	for range 2 {
		require.Eventually(t, func() bool { return usedOfNow(watch, "k") == 0 }, backSoon, time.Millisecond)
		require.Eventually(t, func() bool { _, d, err := l.Enter(t.Context(), "k", 1); return err == nil && d.Allowed }, backSoon, time.Millisecond)
		server.Do("FLUSHALL")
		require.Eventually(t, func() bool { return usedOfNow(watch, "k") == 1 }, backSoon, time.Millisecond)
	}
	require.NoError(t, client.Close())
	server.Pause()
	defer server.Resume()
	require.Eventually(t, func() bool { h := client.Health(); return h.Opened == h.Closed }, backSoon, time.Millisecond)
}

// A limiter that replaces another one while the store is lost gives its node no second share.
func TestTheShareOfANewLimiter(t *testing.T) {
	server := redistest.Start(t)
	client := open(t, server.URL())
	before := places(t, client, 10, redislimit.Nodes(2))
	long := enter(t, before, "k", 3)
	server.Pause()
	defer server.Resume()
	require.Eventually(t, func() bool {
		_, err := before.Take(t.Context(), "x", 1)
		return err == nil && before.Stats().Store.Lost > 0
	}, backSoon, time.Millisecond)
	enter(t, before, "k", 1)
	after := places(t, client, 12, redislimit.Nodes(2))
	require.NoError(t, before.Close())
	enter(t, after, "k", 2)
	_, d, err := after.Enter(t.Context(), "k", 1)
	require.NoError(t, err)
	require.False(t, d.Allowed, "six of twelve")
	long.Release()
	enter(t, after, "k", 3)
}
