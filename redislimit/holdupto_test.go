//go:build unix

package redislimit_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// HoldUpTo takes the available tokens if there are enough, and its hold is settled like any hold.
func TestHoldUpTo(t *testing.T) {
	server := redistest.Start(t)
	for name, policy := range slowly(100) {
		t.Run(name, func(t *testing.T) {
			l, err := redislimit.New(patient(t, server.URL()), "upto", policy, redislimit.InMode(redislimit.Strict), redislimit.TrustRefusals(0))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, l.Close()) })
			upTo := func(least, most uint64) (*redislimit.Hold, engine.Decision) {
				t.Helper()
				h, d, err := l.HoldUpTo(t.Context(), "k", least, most)
				require.NoError(t, err)
				return h, d
			}
			all, d := upTo(10, 60)
			require.True(t, d.Allowed)
			require.EqualValues(t, 60, all.Taken())
			part, d := upTo(10, 60)
			require.True(t, d.Allowed)
			require.EqualValues(t, 40, part.Taken(), "all that was left")
			require.Zero(t, d.Remaining)
			none, d := upTo(0, 60)
			require.False(t, d.Allowed, "a least of 0 counts as 1")
			require.Positive(t, d.RetryAfter)
			require.Zero(t, none.Taken())
			require.EqualValues(t, 100, usedOf(t, l, "k"))
			part.Settle(15)
			becomes(t, l, "k", 75)
			_, d = upTo(26, 60)
			require.False(t, d.Allowed)
			require.EqualValues(t, 75, usedOf(t, l, "k"), "a refusal takes nothing")
			after, d := upTo(25, 0)
			require.True(t, d.Allowed, "it only looks")
			require.EqualValues(t, 75, usedOf(t, l, "k"))
			after.Settle(5)
			becomes(t, l, "k", 80)
			more, d := upTo(30, 3)
			require.False(t, d.Allowed, "least is not there, whatever is wanted")
			require.Zero(t, more.Settle(50))
			all.Settle(0)
			becomes(t, l, "k", 20)
			whole, d := upTo(1<<40, 1<<40)
			require.False(t, d.Allowed)
			require.NotEqual(t, engine.Never, d.RetryAfter, "a least above the limit counts as the limit")
			require.Zero(t, whole.Taken())
		})
	}
}

// Concurrent requests never get fewer tokens than their minimum, and together no more than the limit.
func TestHoldUpToAtOnce(t *testing.T) {
	server := redistest.Start(t)
	policy := engine.FixedWindow(1000, time.Hour)
	var nodes [2]*redislimit.Limiter
	for i := range nodes {
		nodes[i] = limiter(t, patient(t, server.URL()), policy, redislimit.InMode(redislimit.Strict))
	}
	var all sync.WaitGroup
	var lock sync.Mutex
	var sum uint64
	for i := range 40 {
		all.Go(func() {
			h, d, err := nodes[i%2].HoldUpTo(t.Context(), "k", 20, 60)
			if !assert.NoError(t, err) {
				return
			}
			lock.Lock()
			defer lock.Unlock()
			sum += h.Taken()
			assert.Equal(t, d.Allowed, h.Taken() >= 20)
		})
	}
	all.Wait()
	assert.EqualValues(t, 1000, sum, "40 of 60 are more than there is, and the last one gets what is left: 1000 = 16 * 60 + 40")
}

// A leased limiter takes the tokens of a hold from those in hand and from the store.
func TestHoldUpToOfALease(t *testing.T) {
	server := redistest.Start(t)
	policy := engine.FixedWindow(40_000, time.Minute)
	l := limiter(t, patient(t, server.URL()), policy, redislimit.Nodes(2))
	require.Equal(t, redislimit.Leased, l.Mode())
	for range 200 {
		require.True(t, take(t, l, "k", 20).Allowed)
	}
	require.Eventually(t, func() bool {
		h, d, err := l.HoldUpTo(t.Context(), "k", 1, 100)
		return err == nil && d.Allowed && h.Taken() == 100 && h.Release()
	}, backSoon, time.Millisecond)
	rest, d, err := l.HoldUpTo(t.Context(), "k", 1, 1<<30)
	require.NoError(t, err)
	require.True(t, d.Allowed)
	require.GreaterOrEqual(t, rest.Taken(), uint64(25_000), "a quarter of the limit may be on its way here")
	require.LessOrEqual(t, rest.Taken(), uint64(36_000))
	_, d, err = l.HoldUpTo(t.Context(), "k", 10_001, 20_000)
	require.NoError(t, err)
	require.False(t, d.Allowed)
	rest.Release()
	require.Eventually(t, func() bool {
		used := usedOf(t, l, "k")
		return used >= 4000 && used < 5000
	}, backSoon, time.Millisecond, "the 200 takes, and a few that are in hand")
}

// If the usage is above the hold, a leased limiter charges all of it.
func TestALeaseIsChargedBeyondItsHold(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	policy := engine.FixedWindow(40_000, time.Minute)
	l := limiter(t, open(t, proxy.URL()), policy, redislimit.Nodes(2))
	straight := limiter(t, patient(t, server.URL()), policy, redislimit.InMode(redislimit.Strict))
	h := hold(t, l, "k", 10)
	require.Zero(t, h.Settle(5010))
	require.NoError(t, errOfSettle(t, l, backSoon))
	require.GreaterOrEqual(t, usedOf(t, straight, "k"), uint64(5000))
	before := usedOf(t, straight, "k")
	lost := hold(t, l, "k", 10)
	proxy.LoseAnswers()
	lost.Settle(3010)
	require.Eventually(t, func() bool { return usedOf(t, straight, "k") >= before+3000 }, backSoon, time.Millisecond)
	proxy.Clear()
	require.NoError(t, errOfSettle(t, l, backSoon))
	require.GreaterOrEqual(t, usedOf(t, straight, "k"), before+3000, "at least once")
}

// The node's share, too, never gives a request fewer tokens than least.
func TestHoldUpToWithoutTheStore(t *testing.T) {
	server := redistest.Start(t)
	l, err := redislimit.New(open(t, server.URL()), "lost", engine.FixedWindow(100, time.Hour), redislimit.InMode(redislimit.Strict), redislimit.Nodes(4))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	server.Pause()
	require.Eventually(t, func() bool {
		_, _, err := l.HoldUpTo(t.Context(), "other", 1, 1)
		return err == nil && l.Stats().Store.Lost > 0
	}, backSoon, time.Millisecond)
	_, d, err := l.HoldUpTo(t.Context(), "k", 26, 80)
	require.NoError(t, err)
	require.False(t, d.Allowed, "a share is 25")
	h, d, err := l.HoldUpTo(t.Context(), "k", 20, 80)
	require.NoError(t, err)
	require.True(t, d.Allowed)
	require.EqualValues(t, 25, h.Taken())
	h.Settle(30)
	server.Resume()
	require.NoError(t, errOfSettle(t, l, backSoon))
	require.Eventually(t, func() bool {
		d, err := l.Peek(t.Context(), "k", 1)
		return err == nil && d.Remaining == 70
	}, backSoon, time.Millisecond, "what the share admitted and the rest are charged")
}

// One script decides a limit with Least together with the other limits.
func TestLeastInAStore(t *testing.T) {
	server := redistest.Start(t)
	for _, mode := range []redislimit.Mode{redislimit.Strict, redislimit.Leased} {
		t.Run(mode.String(), func(t *testing.T) {
			client := patient(t, server.URL())
			tokens, err := redislimit.New(client, "tokens", engine.FixedWindow(40_000, time.Minute), redislimit.InMode(mode), redislimit.Nodes(2))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, tokens.Close()) })
			requests, err := redislimit.New(client, "requests", engine.FixedWindow(4, time.Hour), redislimit.InMode(redislimit.Strict))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, requests.Close()) })
			key := mode.String()
			set, err := limits.New([]limits.Limit[uint64]{
				{Name: "requests", Source: requests.Source(), Key: func(h limits.Hasher, _ uint64) (engine.Key, bool) { return h.Key(key), true }},
				{Name: "tokens", Source: tokens.Source(), Hold: true, Key: func(h limits.Hasher, _ uint64) (engine.Key, bool) { return h.Key(key), true },
					Cost: func(n uint64) uint64 { return n }, Least: func(n uint64) uint64 { return n / 10 }},
			}, limits.Options[uint64]{})
			require.NoError(t, err)
			ask := func(n uint64) (*limits.Hold, bool) {
				res := set.Decide(t.Context(), n)
				return limits.HoldFrom(res.Context(context.Background()), "tokens"), res.Allowed()
			}
			first, ok := ask(30_000)
			require.True(t, ok)
			require.EqualValues(t, 30_000, first.Taken())
			second, ok := ask(30_000)
			require.True(t, ok)
			require.LessOrEqual(t, second.Taken(), uint64(10_000))
			require.GreaterOrEqual(t, second.Taken(), uint64(3_000))
			_, ok = ask(30_000)
			require.False(t, ok)
			d, err := requests.Peek(t.Context(), requestKey(t, key), 1)
			require.NoError(t, err)
			require.EqualValues(t, 2, d.Remaining, "a refusal takes nothing of the others")
			first.Release()
			second.Settle(100)
			require.Eventually(t, func() bool {
				h, ok := ask(39_000)
				taken := h.Taken()
				h.Release()
				return ok && taken > 30_000
			}, backSoon, 10*time.Millisecond)
		})
	}
}

func requestKey(t *testing.T, key string) string {
	t.Helper()
	text, ok := limits.KeyFunc[int](func(h limits.Hasher, _ int) (engine.Key, bool) { return h.Key(key), true }).Text(0)
	require.True(t, ok)
	return text
}
