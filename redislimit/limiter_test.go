package redislimit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/redislimit"
)

var _ limits.Backend = (*redislimit.Limiter)(nil)

// mini starts a store in this process, as a cluster of one server. Its clock stands still until a test moves it.
func mini(t *testing.T, options ...redislimit.ClientOption) (*miniredis.Miniredis, *redislimit.Client) {
	return miniAs(t, false, options...)
}

func miniAs(t *testing.T, single bool, options ...redislimit.ClientOption) (*miniredis.Miniredis, *redislimit.Client) {
	server := miniredis.RunT(t)
	server.SetTime(time.Unix(1_000_000_000, 0))
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, DisableCache: true, ForceSingleClient: single,
	})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	store, err := redislimit.NewClient(client, append([]redislimit.ClientOption{redislimit.Timeout(10 * time.Second)}, options...)...)
	require.NoError(t, err)
	return server, store
}

func limiter(t *testing.T, store *redislimit.Client, policy engine.Policy, options ...redislimit.Option) *redislimit.Limiter {
	l, err := redislimit.New(store, "test", policy, options...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

func miniKeys(server *miniredis.Miniredis) []string {
	return slices.DeleteFunc(server.Keys(), func(name string) bool { return !strings.HasPrefix(name, "weir:{") })
}

func take(t *testing.T, l *redislimit.Limiter, key string, n uint64) engine.Decision {
	d, err := l.Take(t.Context(), key, n)
	require.NoError(t, err)
	return d
}

// fives returns policies with a limit of 5. The sliding log is missing, because package script tests it with a real
// server.
func fives() map[string]engine.Policy {
	return map[string]engine.Policy{
		"token bucket":   engine.TokenBucket(engine.PerSecond(1), 5),
		"fixed window":   engine.FixedWindow(5, 5*time.Second),
		"sliding window": engine.SlidingWindow(5, 5*time.Second),
	}
}

func TestStrictIsTheLimit(t *testing.T) {
	for name, policy := range fives() {
		t.Run(name, func(t *testing.T) {
			server, store := mini(t)
			l := limiter(t, store, policy, redislimit.OnLoss(redislimit.FailClosed), redislimit.TrustRefusals(0))
			assert.Equal(t, redislimit.Strict, l.Mode())
			for i := range 5 {
				d := take(t, l, "k", 1)
				require.True(t, d.Allowed)
				require.EqualValues(t, 4-i, d.Remaining)
			}
			for range 100 {
				d := take(t, l, "k", 2)
				require.False(t, d.Allowed)
				require.Positive(t, d.RetryAfter)
			}
			server.SetTime(time.Unix(1_000_000_000, 0).Add(take(t, l, "k", 1).RetryAfter))
			assert.True(t, take(t, l, "k", 1).Allowed, "RetryAfter is exact")
			require.NoError(t, l.Refund(t.Context(), "k", 1))
			assert.True(t, take(t, l, "k", 1).Allowed, "a refund is there again")
			d := take(t, l, "k", 6)
			assert.Equal(t, engine.Never, d.RetryAfter)
			assert.True(t, take(t, l, "other", 5).Allowed)
		})
	}
}

// Leased limiters on two nodes together admit at most the bound.
func TestLeasesOfTwoNodesAreWithinTheBound(t *testing.T) {
	_, store := mini(t)
	policy := engine.TokenBucket(engine.PerSecond(1000), 400)
	a, b := limiter(t, store, policy, redislimit.Nodes(2)), limiter(t, store, policy, redislimit.Nodes(2))
	require.Equal(t, redislimit.Leased, a.Mode())
	admitted := 0
	ask := func() (refused int) {
		for _, l := range []*redislimit.Limiter{a, b} {
			if l.Allow("k") {
				admitted++
			} else {
				refused++
			}
		}
		return refused
	}
	// No tokens come back, so exactly the burst must be admitted.
	require.Eventually(t, func() bool {
		for refused := 0; refused < 100; refused += ask() {
		}
		return admitted >= 380
	}, 30*time.Second, time.Millisecond)
	for refused := 0; refused < 1000; refused += ask() {
	}
	assert.LessOrEqual(t, admitted, 400+2*8)
	assert.Less(t, a.Stats().Store.Calls, int64(admitted), "a saturated key costs few calls")
}

func TestAFloodOfKeysDoesNotTouchTheStore(t *testing.T) {
	_, store := mini(t)
	l := limiter(t, store, engine.TokenBucket(engine.PerSecond(1000), 400))
	for i := range 50_000 {
		key := [4]byte{byte(i), byte(i >> 8), byte(i >> 16)}
		require.True(t, l.Allow(string(key[:])))
	}
	assert.Zero(t, store.Health().Calls)
	for range 5 {
		require.True(t, l.Allow("comes back"))
	}
	assert.Eventually(t, func() bool { return l.Stats().Debt == 0 && store.Health().Keys > 0 }, 5*time.Second, time.Millisecond)
}

func TestHeldTokensAreGivenBack(t *testing.T) {
	server, store := mini(t)
	l := limiter(t, store, engine.TokenBucket(engine.PerSecond(1000), 400))
	for range 100 {
		require.True(t, take(t, l, "k", 1).Allowed)
	}
	assert.Eventually(t, func() bool { s := l.Stats(); return s.Leases == 0 && s.Held == 0 }, 5*time.Second, time.Millisecond)
	name := miniKeys(server)[0]
	value, err := server.Get(name)
	require.NoError(t, err)
	strict, err := redislimit.New(store, "test", engine.TokenBucket(engine.PerSecond(1000), 400), redislimit.InMode(redislimit.Strict))
	require.NoError(t, err)
	defer strict.Close()
	assert.NotEmpty(t, value)
	assert.Positive(t, server.TTL(name))
}

func TestLocalDecisionsDoNotAllocate(t *testing.T) {
	_, store := mini(t)
	l := limiter(t, store, engine.TokenBucket(engine.PerSecond(1e6), 1e6))
	for range 20 {
		require.True(t, l.Allow("k"))
	}
	require.Eventually(t, func() bool { return l.Stats().Debt == 0 }, 5*time.Second, time.Millisecond)
	require.NoError(t, l.Refund(t.Context(), "k", 10_000)) // into the tokens in hand
	assert.Zero(t, testalloc.PerCall(func() { l.Allow("k") }))
}

func TestBadOptionsAreNamed(t *testing.T) {
	_, store := mini(t)
	policy := engine.TokenBucket(engine.PerSecond(1), 5)
	for want, make := range map[string]func() error{
		"Nodes(0): want 1 to 100,000": func() error { _, err := redislimit.New(store, "a", policy, redislimit.Nodes(0)); return err },
		"Overdraft(1001): want 0":     func() error { _, err := redislimit.New(store, "a", policy, redislimit.Overdraft(1001)); return err },
		"option 1 of 1 is nil":        func() error { _, err := redislimit.New(store, "a", policy, nil); return err },
		"a name of 0 characters":      func() error { _, err := redislimit.New(store, "", policy); return err },
		"New without a client":        func() error { _, err := redislimit.New(nil, "a", policy); return err },
		"leases do not suit": func() error {
			_, err := redislimit.New(store, "a", policy, redislimit.InMode(redislimit.Leased))
			return err
		},
		"the store's address is not redis": func() error { _, err := redislimit.Open(t.Context(), "http://localhost"); return err },
		`parameter "skip_verify" of the store's address: want addr or master_set`: func() error {
			_, err := redislimit.Open(t.Context(), "rediss://user:password@localhost:6379?skip_verify=1&addr=localhost:6380")
			return err
		},
		"has 2 parameters master_set: want one": func() error {
			return redislimit.CheckAddress("redis://localhost?master_set=a&master_set=b")
		},
		"addr=b in the store's address: want host:port": func() error { return redislimit.CheckAddress("redis://a:6379?addr=c:1&addr=b") },
		"addr= in the store's address: want host:port":  func() error { return redislimit.CheckAddress("redis://a:6379?addr=") },
		"in a password write %40 for @":                 func() error { return redislimit.CheckAddress("redis://:pass?word@localhost:6379") },
	} {
		assert.ErrorContains(t, make(), want)
	}
}

// TestARefundAfterTheLeaseIsForgotten: if the lease of a key was forgotten, a refund goes to the store.
func TestARefundAfterTheLeaseIsForgotten(t *testing.T) {
	_, store := miniAs(t, true)
	l := limiter(t, store, engine.TokenBucket(engine.PerSecond(1000), 1000), redislimit.InMode(redislimit.Leased))
	taken := func() uint64 {
		d, err := l.Peek(t.Context(), "k", 1)
		require.NoError(t, err)
		return d.Limit - d.Remaining
	}
	require.True(t, take(t, l, "k", 100).Allowed)
	require.Eventually(t, func() bool { return l.Stats().Leases == 0 }, 20*time.Second, time.Millisecond)
	require.EqualValues(t, 100, taken())
	require.NoError(t, l.Refund(t.Context(), "k", 1))
	require.EqualValues(t, 99, taken())

	require.True(t, take(t, l, "k", 1).Allowed, "a first request again")
	require.EqualValues(t, 100, taken())
	calls := store.Health().Calls
	require.NoError(t, l.Refund(t.Context(), "k", 1))
	assert.Equal(t, calls, store.Health().Calls, "the store was not asked")
	assert.EqualValues(t, 99, taken())
}
