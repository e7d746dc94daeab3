//go:build unix

package redislimit_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// A caller takes tokens from some keys all the time, and counts the results.
type caller struct {
	stop func()

	mu       sync.Mutex
	admitted map[string]int // admitted by the store
	served   map[string]int // decided by the store
	longest  time.Duration
	missed   map[string]int // not decided in time: the store may have charged each
	errors   map[string]int // by the text of the error
	foreign  error
}

// call starts a caller. The limiter has FailClosed, so every answer without an error is the store's decision.
func call(t *testing.T, l *redislimit.Limiter, keys ...string) *caller {
	c := &caller{admitted: map[string]int{}, served: map[string]int{}, missed: map[string]int{}, errors: map[string]int{}}
	quit, over := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c.stop = func() { once.Do(func() { close(quit); <-over }) }
	t.Cleanup(c.stop)
	go func() {
		defer close(over)
		pace := time.NewTicker(time.Millisecond)
		defer pace.Stop()
		for i := 0; ; i++ {
			select {
			case <-quit:
				return
			case <-pace.C:
			}
			key := keys[i%len(keys)]
			begin := time.Now()
			d, err := l.Take(t.Context(), key, 1)
			c.note(key, d, err, time.Since(begin))
		}
	}()
	return c
}

func (c *caller) note(key string, d engine.Decision, err error, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.longest = max(c.longest, took)
	switch {
	case err == nil:
		c.served[key]++
		if d.Allowed {
			c.admitted[key]++
		}
	case errors.Is(err, redislimit.ErrStore):
		c.missed[key]++
		text := err.Error()
		c.errors[text[:min(len(text), 90)]]++
	default:
		c.foreign = err
	}
}

func (c *caller) of(keys ...string) (served, admitted int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		served, admitted = served+c.served[key], admitted+c.admitted[key]
	}
	return served, admitted
}

func (c *caller) missing(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.missed[key]
}

// rest takes all tokens that a key has left, and returns how many.
func rest(t *testing.T, sure *redislimit.Limiter, key string) (tokens int) {
	t.Helper()
	for tokens <= 2*burst && take(t, sure, key, 1).Allowed {
		tokens++
	}
	return tokens
}

func (c *caller) awaitServed(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		before, _ := c.of(key)
		require.Eventually(t, func() bool { now, _ := c.of(key); return now > before }, 30*time.Second, time.Millisecond, "the store is back, and does not decide about %s: %v", key, c.errors)
	}
}

// check asserts that no call took longer than its timeout, and that all errors match ErrStore.
func (c *caller) check(t *testing.T, what string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	assert.NoError(t, c.foreign, "an error that is not ErrStore")
	assert.Less(t, c.longest, noLonger, "a Take took longer than its timeout")
	t.Logf("%s: the longest Take %v, errors %v", what, c.longest, c.errors)
}

// The race detector finds nothing while a test waits for other processes.
func slowFailover(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it waits for other processes, most of the time")
	}
	t.Parallel()
}

func nodeKeys(t *testing.T, l *redislimit.Limiter, node *redistest.Server, n int) []string {
	t.Helper()
	for i := range 100 {
		require.True(t, take(t, l, "key"+strconv.Itoa(i), 1).Allowed)
	}
	var names []string
	for _, name := range keysOf(node) {
		names = append(names, name[strings.LastIndex(name, ":=")+2:])
	}
	require.GreaterOrEqual(t, len(names), n)
	return names[:n]
}

func TestClusterFailover(t *testing.T) {
	slowFailover(t)
	cluster := redistest.StartCluster(t)
	replica, master := cluster.AddReplica(0), cluster.Nodes[0]
	sure := limiter(t, patient(t, cluster.URL()), slow(), redislimit.OnLoss(redislimit.FailClosed))
	here, there := nodeKeys(t, sure, master, 3), nodeKeys(t, sure, cluster.Nodes[1], 3)
	everywhere := append(append([]string(nil), here...), there...)

	// A caller whose calls wait long enough does not notice the failover, and no count is lost.
	steady := call(t, sure, everywhere...)
	steady.awaitServed(t, everywhere...)
	begin := time.Now()
	replica.Do("CLUSTER", "FAILOVER")
	cluster.AwaitMaster(replica)
	t.Logf("the operator's failover took %v", time.Since(begin))
	steady.awaitServed(t, everywhere...)
	for _, key := range everywhere {
		require.Eventually(t, func() bool { n, _ := steady.of(key); return n > 2*burst }, 30*time.Second, time.Millisecond)
	}
	steady.stop()
	steady.check(t, "an operator's failover")
	assert.Empty(t, steady.errors)
	for _, key := range everywhere {
		served, admitted := steady.of(key)
		assert.Equal(t, burst-2, admitted, "%s: %d asked", key, served) // nodeKeys took one token of each key, twice
	}

	// The replica that takes over has no data from the master that ends.
	store := open(t, cluster.URL())
	short := limiter(t, store, slow(), redislimit.OnLoss(redislimit.FailClosed))
	shared, err := redislimit.New(store, "shared", slow(), redislimit.OnLoss(redislimit.FailShare), redislimit.Nodes(faultNode))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, shared.Close()) })
	hit, spared := call(t, short, here...), call(t, short, there...)
	hit.awaitServed(t, here...)
	master.AwaitReplica()
	master.Forget()
	begin = time.Now()
	replica.Stop()
	require.Eventually(t, func() bool { return store.Health().Lost > 0 }, 10*time.Second, time.Millisecond, "the master is gone, and its parts are not lost")
	assert.Less(t, store.Health().Lost, store.Health().Parts, "the others' parts are lost, too")
	for range 2 * burst {
		require.NoError(t, errOf(timed(t, shared, here[0])), "a node's share is an error")
	}
	assert.Positive(t, shared.Stats().Fallbacks)
	spared.awaitServed(t, there...)
	cluster.AwaitMaster(master)
	promoted := time.Since(begin)
	hit.awaitServed(t, here...)
	t.Logf("a new master after %v, used %v later", promoted, time.Since(begin)-promoted)
	require.Eventually(t, func() bool { return store.Health().Lost == 0 }, backSoon, time.Millisecond)
	for _, key := range here {
		before, _ := hit.of(key)
		require.Eventually(t, func() bool { n, _ := hit.of(key); return n > before+burst }, 30*time.Second, time.Millisecond)
	}
	hit.stop()
	spared.stop()
	hit.check(t, "the failed master's keys")
	spared.check(t, "the others' keys")
	knowing := limiter(t, patient(t, cluster.URL()), slow(), redislimit.OnLoss(redislimit.FailClosed))
	for _, key := range here {
		_, admitted := hit.of(key)
		admitted += rest(t, knowing, key)
		assert.LessOrEqual(t, admitted, burst, "more than one burst more")
		assert.GreaterOrEqual(t, admitted+hit.missing(key), burst, "%s has no new burst, and no answer is missing", key)
	}
	_, admitted := spared.of(there...)
	assert.Zero(t, admitted)
}

// While a slot moves, neither of its two nodes answers a call for several of its keys.
func TestSlotOnItsWay(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	store, err := redislimit.Open(t.Context(), cluster.URL(), redislimit.Partitions(1), redislimit.Timeout(10*time.Second), redislimit.BreakAfter(silence))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	l := limiter(t, store, slow(), redislimit.OnLoss(redislimit.FailClosed))
	const keys = 200
	round := func(remaining uint64) {
		t.Helper()
		// All requests come at once, so that calls carry several keys.
		var all sync.WaitGroup
		answers, errs := make([]engine.Decision, keys), make([]error, keys)
		for i := range keys {
			all.Go(func() { answers[i], errs[i] = l.Take(t.Context(), strconv.Itoa(i), 1) })
		}
		all.Wait()
		require.NoError(t, errors.Join(errs...))
		for i, d := range answers {
			require.True(t, d.Allowed)
			if i < keys/2 {
				require.Equal(t, remaining, d.Remaining, i)
			}
		}
	}
	for i := range keys / 2 { // the other half are new when the slot moves
		require.True(t, take(t, l, strconv.Itoa(i), 1).Allowed)
	}
	slot := 0
	for _, node := range cluster.Nodes {
		if names := keysOf(node); len(names) > 0 {
			slot = cluster.Slot(names[0])
		}
	}
	to := (cluster.Owner(slot) + 1) % len(cluster.Nodes)
	calls := store.Health()
	round(burst - 2)
	require.Less(t, store.Health().Calls-calls.Calls, int64(keys), "no call had several keys")
	cluster.BeginMove(slot, to)
	round(burst - 3)
	require.Equal(t, keys/3, cluster.MoveKeys(slot, to, keys/3))
	round(burst - 4)
	for cluster.MoveKeys(slot, to, keys) > 0 {
	}
	round(burst - 5)
	cluster.EndMove(slot, to)
	round(burst - 6)
	assert.Zero(t, store.Health().Failures)
}

func sentinelSet(t *testing.T) (master, replica *redistest.Server, sentinels *redistest.Sentinels) {
	t.Helper()
	master = redistest.Start(t)
	replica = redistest.StartReplica(t, master)
	return master, replica, redistest.StartSentinels(t, master, replica)
}

func TestSentinelMasterKilled(t *testing.T) {
	slowFailover(t)
	master, replica, sentinels := sentinelSet(t)
	store := open(t, sentinels.URL())
	require.Equal(t, 1, store.Health().Parts)
	l := limiter(t, store, slow(), redislimit.OnLoss(redislimit.FailClosed))
	shared, err := redislimit.New(store, "shared", slow(), redislimit.OnLoss(redislimit.FailShare), redislimit.Nodes(faultNode))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, shared.Close()) })
	leased, err := redislimit.New(store, "leased", engine.TokenBucket(engine.PerSecond(1000), 2000), redislimit.OnLoss(redislimit.FailClosed))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, leased.Close()) })
	require.Equal(t, redislimit.Leased, leased.Mode())
	require.Eventually(t, func() bool { _ = leased.Allow("k"); return leased.Stats().Held > 0 }, 10*time.Second, time.Millisecond)

	c := call(t, l, "k")
	require.Eventually(t, func() bool { n, _ := c.of("k"); return n > 2*burst }, 10*time.Second, time.Millisecond)
	_, first := c.of("k")
	require.LessOrEqual(t, first, burst)
	require.GreaterOrEqual(t, first+c.missing("k"), burst, "less than the burst, and no answer is missing")
	replica.Forget() // the writes that the master did not send before it died
	begin := time.Now()
	master.Stop()
	require.Eventually(t, func() bool { return store.Health().Lost == 1 }, 10*time.Second, time.Millisecond)
	allowed := 0
	for range 100 {
		d, err := timed(t, shared, "k")
		require.NoError(t, err, "a node's share is an error")
		if d.Allowed && store.Health().Lost == 1 {
			allowed++
		}
	}
	assert.LessOrEqual(t, allowed, burst/faultNode)
	sentinels.AwaitMaster(replica)
	promoted := time.Since(begin)
	c.awaitServed(t, "k")
	t.Logf("a new master after %v, used %v later", promoted, time.Since(begin)-promoted)
	require.Eventually(t, func() bool { return store.Health().Lost == 0 }, backSoon, time.Millisecond)
	before, _ := c.of("k")
	require.Eventually(t, func() bool { n, _ := c.of("k"); return n > before+burst }, 30*time.Second, time.Millisecond)
	c.stop()
	c.check(t, "a master that was killed")
	_, admitted := c.of("k")
	admitted += rest(t, limiter(t, patient(t, sentinels.URL()), slow(), redislimit.OnLoss(redislimit.FailClosed)), "k")
	assert.LessOrEqual(t, admitted, first+burst, "more than one burst more")
	assert.GreaterOrEqual(t, admitted+c.missing("k"), first+burst, "no new burst, and no answer is missing")
	require.Eventually(t, func() bool { return leased.Allow("k") }, backSoon, time.Millisecond, "leases do not resume")
	assert.Positive(t, evaluations(t, replica))
}

// The client follows a failover that an operator starts.
func TestSentinelByAnOperator(t *testing.T) {
	slowFailover(t)
	_, replica, sentinels := sentinelSet(t)
	store := open(t, sentinels.URL())
	l := limiter(t, store, slow(), redislimit.OnLoss(redislimit.FailClosed))
	c := call(t, l, "k")
	require.Eventually(t, func() bool { n, _ := c.of("k"); return n > burst }, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return len(keysOf(replica)) == 1 }, 10*time.Second, time.Millisecond)
	begin := time.Now()
	sentinels.Failover()
	sentinels.AwaitMaster(replica)
	t.Logf("the failover took %v", time.Since(begin))
	asked := evaluations(t, replica)
	require.Eventually(t, func() bool { return evaluations(t, replica) > asked }, 30*time.Second, time.Millisecond, "the new master is not asked")
	c.awaitServed(t, "k")
	require.Eventually(t, func() bool { return store.Health().Lost == 0 }, backSoon, time.Millisecond)

	other := redistest.Start(t)
	begin = time.Now()
	sentinels.Replace(other)
	require.Eventually(t, func() bool { return evaluations(t, other) > 0 }, 30*time.Second, time.Millisecond, "the limiter stays at a server that is no master any more")
	t.Logf("a replaced master is used after %v", time.Since(begin))
	c.awaitServed(t, "k")
	c.stop()
	c.check(t, "an operator's failover")
	_, admitted := c.of("k")
	assert.LessOrEqual(t, admitted, 2*burst)
	assert.GreaterOrEqual(t, admitted, burst)
}

// The sentinel that the client listens to falls silent before the master dies.
func TestSentinelSilent(t *testing.T) {
	slowFailover(t)
	master, replica, sentinels := sentinelSet(t)
	proxy := redistest.StartProxy(t, sentinels.Nodes[0].Addr())
	store := open(t, redistest.SentinelURL(proxy.Addr()))
	l := limiter(t, store, slow(), redislimit.OnLoss(redislimit.FailClosed))
	c := call(t, l, "k")
	c.awaitServed(t, "k")
	proxy.BlackHole()
	begin := time.Now()
	master.Stop()
	sentinels.AwaitMaster(replica)
	promoted := time.Since(begin)
	c.awaitServed(t, "k")
	t.Logf("a new master after %v, used %v later", promoted, time.Since(begin)-promoted)
	c.stop()
	c.check(t, "a silent sentinel")
}

// A server that becomes a replica counts as lost until it is a master again.
func TestReadOnly(t *testing.T) {
	server := redistest.Start(t)
	store := open(t, server.URL())
	limiters := map[redislimit.FailurePolicy]*redislimit.Limiter{}
	for _, policy := range []redislimit.FailurePolicy{redislimit.FailShare, redislimit.FailClosed, redislimit.FailOpen} {
		l, err := redislimit.New(store, policy.String(), slow(), redislimit.OnLoss(policy), redislimit.Nodes(faultNode))
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, l.Close()) })
		limiters[policy] = l
	}
	closed := limiters[redislimit.FailClosed]
	require.Eventually(t, func() bool { return errOf(closed.Take(t.Context(), "k", 1)) == nil }, 10*time.Second, time.Millisecond)
	for _, policy := range []redislimit.FailurePolicy{redislimit.FailShare, redislimit.FailOpen} {
		require.Eventually(t, func() bool {
			lost := limiters[policy].Stats().Fallbacks
			_, err := limiters[policy].Take(t.Context(), "k", 1)
			return err == nil && limiters[policy].Stats().Fallbacks == lost
		}, 10*time.Second, time.Millisecond)
	}

	server.Do("REPLICAOF", "127.0.0.1", "1") // no server is at this address, so the replica keeps its data
	_, err := timed(t, closed, "k")
	require.ErrorContains(t, err, "READONLY")
	require.Eventually(t, func() bool {
		_, err := timed(t, closed, "k")
		require.ErrorIs(t, err, redislimit.ErrStore)
		return store.Health().Lost == 1
	}, backSoon, time.Millisecond, "nothing but errors, and the store does not count as lost")
	calls, begin := store.Health().Calls, time.Now()
	allowed := map[redislimit.FailurePolicy]int{}
	for range 100 {
		for policy, l := range limiters {
			d, err := timed(t, l, "k")
			assert.Equal(t, policy == redislimit.FailClosed, err != nil, policy)
			if d.Allowed {
				allowed[policy]++
			}
		}
	}
	assert.Equal(t, map[redislimit.FailurePolicy]int{redislimit.FailShare: burst / faultNode, redislimit.FailOpen: 100}, allowed)
	assert.LessOrEqual(t, store.Health().Calls-calls, int64(time.Since(begin)/(250*time.Millisecond))+1, "calls to a store that is lost")
	assert.Equal(t, 1, store.Health().Lost)

	server.Do("REPLICAOF", "NO", "ONE")
	begin = time.Now()
	require.Eventually(t, func() bool { _, _ = timed(t, closed, "probe"); return store.Health().Lost == 0 }, backSoon, time.Millisecond)
	t.Logf("used again after %v", time.Since(begin))
	admitted := 0
	for range 3 * burst {
		if d, err := closed.Take(t.Context(), "k", 1); err == nil && d.Allowed {
			admitted++
		}
	}
	assert.LessOrEqual(t, admitted, burst-1, fmt.Sprint("what was taken before is forgotten: ", store.Health()))
}
