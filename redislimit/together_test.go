//go:build unix

package redislimit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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

// An errand is a request: the key of each limit that applies, by the name of the limit.
type errand map[string]string

func together(t *testing.T, store *redislimit.Client, policies map[string]engine.Policy, options ...redislimit.Option) (*limits.Set[errand], map[string]*redislimit.Limiter) {
	t.Helper()
	all, list := map[string]*redislimit.Limiter{}, []limits.Limit[errand]{}
	for name, policy := range policies {
		l, err := redislimit.New(store, name, policy, append([]redislimit.Option{
			redislimit.InMode(redislimit.Strict), redislimit.OnLoss(redislimit.FailClosed)}, options...)...)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, l.Close()) })
		all[name], list = l, append(list, limitOf(name, l))
	}
	set, err := limits.New(list, limits.Options[errand]{})
	require.NoError(t, err)
	return set, all
}

func limitOf(name string, l *redislimit.Limiter) limits.Limit[errand] {
	return limits.Limit[errand]{
		Name: name, Source: l.Source(), OnLoss: limits.Closed,
		Match:  func(e errand) bool { return e[name] != "" },
		Key:    func(h limits.Hasher, e errand) (engine.Key, bool) { return h.Key(e[name]), true },
		Refund: func(_ errand, outcome int) bool { return outcome == 1 },
	}
}

func textOf(key string) string { return "text:" + key }

func used(t *testing.T, l *redislimit.Limiter, key string) uint64 {
	d, err := l.Peek(t.Context(), textOf(key), 1)
	require.NoError(t, err)
	return d.Limit - d.Remaining
}

// A request with limits of every algorithm needs one call, and so does its refund.
func TestARequestIsOneScript(t *testing.T) {
	_, store := miniAs(t, true)
	set, all := together(t, store, map[string]engine.Policy{
		"bucket": engine.TokenBucket(engine.Per(1, time.Hour), 9), "fixed": engine.FixedWindow(2, time.Hour),
		"sliding": engine.SlidingWindow(9, time.Hour), "log": engine.SlidingLog(9, time.Hour),
	})
	e := errand{"bucket": "b", "fixed": "f", "sliding": "s", "log": "l"}
	calls := func() int64 { return store.Health().Calls }
	decide := func(want limits.Verdict, scripts int64) *limits.Result[errand] {
		t.Helper()
		before := calls()
		res := set.Decide(t.Context(), e)
		require.Equal(t, want, res.Verdict())
		assert.Equal(t, scripts, calls()-before, "scripts")
		return &res
	}
	decide(limits.Admitted, 1)
	res := decide(limits.Admitted, 1)
	refused := decide(limits.Limited, 1)
	assert.Equal(t, time.Hour, refused.RetryAfter())
	decide(limits.Limited, 0)
	for name, key := range e {
		assert.EqualValues(t, 2, used(t, all[name], key), name)
	}
	before := calls()
	res.Finish(t.Context(), e, 1)
	assert.EqualValues(t, 1, calls()-before)
	for name, key := range e {
		assert.EqualValues(t, 1, used(t, all[name], key), name)
	}
	decide(limits.Admitted, 1)
}

// The requests of refused clients never cause a refusal for other clients.
func TestRefusedClientsHinderNoOther(t *testing.T) {
	_, store := miniAs(t, true)
	const victims = 300
	set, all := together(t, store, map[string]engine.Policy{
		"all": engine.FixedWindow(victims, time.Hour), "client": engine.FixedWindow(1, time.Hour),
	}, redislimit.TrustRefusals(0))
	require.True(t, take(t, all["client"], textOf("spent"), 1).Allowed)
	var stop atomic.Bool
	var attackers sync.WaitGroup
	for range 8 {
		attackers.Go(func() {
			for !stop.Load() {
				res := set.Decide(context.Background(), errand{"all": "x", "client": "spent"})
				assert.NotEqual(t, limits.Admitted, res.Verdict())
			}
		})
	}
	for i := range victims {
		res := set.Decide(t.Context(), errand{"all": "x", "client": fmt.Sprint(i)})
		if !assert.Equal(t, limits.Admitted, res.Verdict(), "victim %d", i) {
			break
		}
	}
	stop.Store(true)
	attackers.Wait()
	assert.EqualValues(t, victims, used(t, all["all"], "x"))
}

// After concurrent requests, each limit has taken exactly what the admitted requests cost.
func TestConcurrentRequestsAreCountedExactly(t *testing.T) {
	_, store := miniAs(t, true)
	policies := map[string]engine.Policy{
		"bucket": engine.TokenBucket(engine.Per(1, time.Hour), 40), "fixed": engine.FixedWindow(50, time.Hour),
		"sliding": engine.SlidingWindow(60, time.Hour), "log": engine.SlidingLog(70, time.Hour),
	}
	set, all := together(t, store, policies, redislimit.TrustRefusals(time.Millisecond))
	var mu sync.Mutex
	want := map[[2]string]uint64{}
	admitted, refused := 0, 0
	var workers sync.WaitGroup
	for seed := range uint64(8) {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(seed, 3))
			for range 60 {
				e := errand{}
				for name := range policies {
					if random.IntN(3) > 0 {
						e[name] = string(rune('a' + random.IntN(2)))
					}
				}
				res := set.Decide(context.Background(), e)
				isBack := random.IntN(4) == 0
				if isBack {
					res.Finish(context.Background(), e, 1)
				}
				mu.Lock()
				switch res.Verdict() {
				case limits.Admitted:
					admitted++
					for name, key := range e {
						if !isBack {
							want[[2]string{name, key}]++
						}
					}
				case limits.Limited:
					refused++
				default:
					t.Errorf("verdict %v", res.Verdict())
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	for name := range policies {
		for _, key := range []string{"a", "b"} {
			assert.Equal(t, want[[2]string{name, key}], used(t, all[name], key), "%s of %s", key, name)
		}
	}
	assert.Greater(t, admitted, 50)
	assert.Greater(t, refused, 50)
}

// If a strict limit refuses, a leased limit puts its tokens back into the node's hand.
func TestLeasesJoinAGroup(t *testing.T) {
	_, store := miniAs(t, true)
	leased, err := redislimit.New(store, "leased", engine.TokenBucket(engine.PerSecond(1000), 1000), redislimit.InMode(redislimit.Leased))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, leased.Close()) })
	strict := limiter(t, store, engine.FixedWindow(20, time.Hour), redislimit.TrustRefusals(0))
	set, err := limits.New([]limits.Limit[errand]{limitOf("leased", leased), limitOf("test", strict)}, limits.Options[errand]{})
	require.NoError(t, err)
	e := errand{"leased": "k", "test": "k"}
	for range 20 {
		res := set.Decide(t.Context(), e)
		require.Equal(t, limits.Admitted, res.Verdict())
	}
	for range 2000 {
		res := set.Decide(t.Context(), e)
		require.Equal(t, limits.Limited, res.Verdict())
	}
	assert.Eventually(t, func() bool { return used(t, leased, "k") == 20 }, 10*time.Second, time.Millisecond,
		"of the leased limit %d", used(t, leased, "k"))
	assert.EqualValues(t, 20, used(t, strict, "k"))
}

// While the store is lost, each limit decides by its failure policy.
func TestLimitsThatDifferInTheirPolicyWhileTheStoreIsLost(t *testing.T) {
	server, store := miniAs(t, true, redislimit.Timeout(100*time.Millisecond), redislimit.BreakAfter(time.Millisecond))
	list := []limits.Limit[errand]{}
	for name, options := range map[string][]redislimit.Option{
		"open": {redislimit.OnLoss(redislimit.FailOpen)}, "closed": {redislimit.OnLoss(redislimit.FailClosed)},
		"share of 2": {redislimit.OnLoss(redislimit.FailShare), redislimit.Nodes(4)},
		"share of 8": {redislimit.OnLoss(redislimit.FailShare), redislimit.Nodes(1)},
	} {
		l, err := redislimit.New(store, name, engine.TokenBucket(engine.Per(1, time.Hour), 8), options...)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, l.Close()) })
		list = append(list, limitOf(name, l))
	}
	set, err := limits.New(list, limits.Options[errand]{})
	require.NoError(t, err)
	decide := func(key string, names ...string) limits.Verdict {
		e := errand{}
		for _, name := range names {
			e[name] = key
		}
		res := set.Decide(t.Context(), e)
		return res.Verdict()
	}
	require.Equal(t, limits.Admitted, decide("k", "share of 2", "share of 8", "open", "closed"))
	server.Close()
	require.Eventually(t, func() bool { decide("other", "open"); return store.Health().Lost > 0 }, 10*time.Second, time.Millisecond)
	for range 5 {
		assert.Equal(t, limits.Unavailable, decide("k", "share of 2", "share of 8", "open", "closed"))
	}
	for i, want := range []limits.Verdict{limits.Admitted, limits.Admitted, limits.Limited, limits.Limited} {
		assert.Equal(t, want, decide("k", "share of 2", "share of 8", "open"), "%d", i)
	}
	for i := range 7 {
		want := limits.Admitted
		if i == 6 {
			want = limits.Limited
		}
		assert.Equal(t, want, decide("k", "share of 8", "open"), "%d: refused requests took nothing of this share", i)
	}
}

// If another limit refuses, a share that decided for a late answer gets its tokens back.
func TestAShareHasItsTokensBackBeforeTheStoreIsLost(t *testing.T) {
	server, store := miniAs(t, true, redislimit.Timeout(100*time.Millisecond), redislimit.BreakAfter(time.Minute))
	set, _ := together(t, store, map[string]engine.Policy{
		"small": engine.TokenBucket(engine.Per(1, time.Hour), 2), "large": engine.TokenBucket(engine.Per(1, time.Hour), 8),
	}, redislimit.OnLoss(redislimit.FailShare), redislimit.Nodes(1))
	decide := func(e errand) limits.Verdict {
		res := set.Decide(t.Context(), e)
		return res.Verdict()
	}
	server.Close()
	for i, want := range []limits.Verdict{limits.Admitted, limits.Admitted, limits.Limited, limits.Limited} {
		assert.Equal(t, want, decide(errand{"small": "k", "large": "k"}), "%d", i)
	}
	for i := range 7 {
		want := limits.Admitted
		if i == 6 {
			want = limits.Limited
		}
		assert.Equal(t, want, decide(errand{"large": "k"}), "%d: refused requests took nothing of this share", i)
	}
	assert.Zero(t, store.Health().Lost)
}

// In a cluster, limits in different slots get their tokens back if one refuses, even while slots move.
func TestGroupsInACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	store := patient(t, c.URL())
	set, all := together(t, store, map[string]engine.Policy{
		"all": engine.FixedWindow(500, time.Hour), "user": engine.FixedWindow(3, time.Hour), "team": engine.SlidingWindow(100, time.Hour),
	}, redislimit.TrustRefusals(0))
	admitted := map[string]uint64{}
	for i := range 200 {
		user := fmt.Sprintf("user%d", i%25)
		// Keys with the same text are in the same slot, so one call asks about them.
		res := set.Decide(t.Context(), errand{"all": "x", "user": user, "team": user})
		if res.Verdict() == limits.Admitted {
			admitted[user]++
			continue
		}
		require.Equal(t, limits.Limited, res.Verdict())
	}
	for user, n := range admitted {
		assert.EqualValues(t, 3, n, user)
		assert.EqualValues(t, 3, used(t, all["team"], user))
	}
	assert.EqualValues(t, 75, used(t, all["all"], "x"))
}

// While the slot of a request's limits moves, no request fails.
func TestGroupsWhoseSlotMoves(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	store := open(t, c.URL(), redislimit.Partitions(1), redislimit.Timeout(10*time.Second), redislimit.BreakAfter(silence))
	set, all := together(t, store, map[string]engine.Policy{
		"user": engine.FixedWindow(100, time.Hour), "team": engine.SlidingWindow(100, time.Hour), "small": engine.FixedWindow(6, time.Hour),
	})
	e := errand{"user": "u", "team": "t", "small": "s"}
	admitted := 0
	round := func(scripts int64) {
		t.Helper()
		before := store.Health().Calls
		res := set.Decide(t.Context(), e)
		require.Equal(t, limits.Admitted, res.Verdict())
		require.Equal(t, scripts, store.Health().Calls-before)
		admitted++
	}
	round(1)
	slot := 0
	for _, node := range c.Nodes {
		if names := keysOf(node); len(names) > 0 {
			slot = c.Slot(names[0])
		}
	}
	to := (c.Owner(slot) + 1) % len(c.Nodes)
	c.BeginMove(slot, to)
	require.Equal(t, 1, c.MoveKeys(slot, to, 1))
	round(1 + 3)
	round(1 + 3)
	for c.MoveKeys(slot, to, 9) > 0 {
	}
	c.EndMove(slot, to)
	round(1)
	for name, key := range e {
		assert.EqualValues(t, admitted, used(t, all[name], key), name)
	}
	assert.Zero(t, store.Health().Failures)
}

func setOf(t *testing.T, l limits.Limit[errand], tier bool) *limits.Set[errand] {
	t.Helper()
	if tier {
		l.Tier = func(errand) int { return 1 }
	}
	set, err := limits.New([]limits.Limit[errand]{l}, limits.Options[errand]{})
	require.NoError(t, err)
	return set
}
