//go:build unix

package redislimit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

func lose(t *testing.T, server *redistest.Server, q Quota) {
	t.Helper()
	server.Pause()
	require.Eventually(t, func() bool { _, _ = q.Peek(t.Context(), "elsewhere", 1); return q.limiter.isLost("k") }, 20*time.Second, time.Millisecond)
}

// admittedOf returns how many of n requests are admitted.
func admittedOf(t *testing.T, q Quota, key string, n int) (admitted uint64) {
	t.Helper()
	for range n {
		if d, err := q.Take(t.Context(), key, 1); assert.NoError(t, err) && d.Allowed {
			admitted++
		}
	}
	return admitted
}

// The share of a limiter that replaces another one has only the tokens that the old share has left.
func TestAReloadHandsOutNoSecondShare(t *testing.T) {
	for name, c := range map[string]struct {
		policy, quota, next engine.Policy
		options             []Option
		more                uint64 // tokens that the next share has in addition
	}{
		"token bucket":      {policy: engine.TokenBucket(engine.Per(1, time.Hour), 40)},
		"other numbers":     {policy: engine.FixedWindow(40, time.Hour), next: engine.FixedWindow(60, time.Hour), more: 10},
		"less":              {policy: engine.FixedWindow(80, time.Hour), next: engine.FixedWindow(40, time.Hour)},
		"another bucket":    {policy: engine.TokenBucket(engine.Per(1, time.Hour), 40), next: engine.TokenBucket(engine.Per(2, time.Hour), 60), more: 10},
		"quota":             {policy: engine.TokenBuckets(100 * time.Hour), quota: engine.TokenBucket(engine.Per(1, time.Hour), 40)},
		"quota of others":   {policy: engine.TokenBuckets(100 * time.Hour), quota: engine.TokenBucket(engine.Per(1, time.Hour), 40), next: engine.TokenBuckets(300 * time.Hour)},
		"another quota":     {policy: engine.FixedWindow(400, time.Hour), quota: engine.FixedWindow(40, time.Hour), next: engine.FixedWindow(500, time.Hour)},
		"quota of a bucket": {policy: engine.TokenBucket(engine.Per(1, time.Hour), 400), quota: engine.TokenBucket(engine.Per(1, time.Hour), 40)},
		"tier":              {policy: engine.FixedWindow(400, time.Hour), options: []Option{Tiers(engine.Unlimited(), engine.FixedWindow(40, time.Hour))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			client, err := Open(t.Context(), server.URL())
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, client.Close()) })
			begin := func(policy engine.Policy) (*Limiter, Quota) {
				l, err := New(client, "shares", policy, append([]Option{Nodes(2), InMode(Strict)}, c.options...)...)
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, l.Close()) })
				q := l.ownQuota
				if len(l.tiers) > 0 {
					q = l.tiers[0].ownQuota
				}
				if c.quota != (engine.Policy{}) {
					q, err = l.Quota(c.quota)
					require.NoError(t, err)
				}
				return l, q
			}
			if c.next == (engine.Policy{}) {
				c.next = c.policy
			}
			old, q := begin(c.policy)
			lose(t, server, q)
			share := q.policy.Limit() / 2
			admitted := map[string]uint64{"all": admittedOf(t, q, "all", 60), "some": admittedOf(t, q, "some", 12), "few": admittedOf(t, q, "few", 12)}
			require.Equal(t, map[string]uint64{"all": share, "some": 12, "few": 12}, admitted)

			failed, r := begin(c.next) // a reload that fails
			assert.Equal(t, c.more, admittedOf(t, r, "all", 60))
			assert.EqualValues(t, 3, admittedOf(t, r, "few", 3))
			require.NoError(t, failed.Close())
			assert.Zero(t, admittedOf(t, q, "all", 60))
			admitted["few"] += 3 + admittedOf(t, q, "few", 60)
			assert.Equal(t, share, admitted["few"])

			next, r := begin(c.next)
			assert.Zero(t, admittedOf(t, r, "all", 60), "what the one before had of it is owed")
			assert.EqualValues(t, 2, admittedOf(t, r, "some", 2))
			assert.EqualValues(t, 3, admittedOf(t, q, "some", 2)+admittedOf(t, q, "some", 1))
			require.NoError(t, old.Close())
			assert.EqualValues(t, 1, admittedOf(t, q, "some", 1), "a request that is under way")
			admitted["all"] += c.more + admittedOf(t, r, "all", 60)
			admitted["few"] += admittedOf(t, r, "few", 60)
			admitted["some"] += 2 + 3 + 1 + admittedOf(t, r, "some", 60)
			for key, n := range admitted {
				most := r.policy.Limit() / 2
				if key != "some" {
					most = max(share, most) // the old limiter had all of its share
				}
				assert.Equal(t, most, n, key)
			}

			server.Resume()
			require.NoError(t, next.Settle(t.Context()))
			for key, n := range admitted {
				d, err := r.Peek(t.Context(), key, 1)
				require.NoError(t, err)
				assert.LessOrEqual(t, d.Remaining, r.policy.Limit()-min(n, r.policy.Limit()), key)
				if client.Health().Timeouts == 0 {
					assert.Equal(t, r.policy.Limit()-min(n, r.policy.Limit()), d.Remaining, "%s: no answer was lost", key)
				}
			}
			require.NoError(t, next.Close())
			require.Eventually(t, func() bool {
				client.limiters.registry.mu.RLock()
				defer client.limiters.registry.mu.RUnlock()
				return len(client.limiters.registry.limiters) == 0
			}, 20*time.Second, time.Millisecond)
		})
	}
}

// A limiter that replaces another one does not make a small share earn its token earlier.
func TestAReloadHandsOutNoSecondToken(t *testing.T) {
	t.Run("reload", func(t *testing.T) { handsOutNoSecondToken(t, 1) })
	t.Run("follow", func(t *testing.T) { handsOutNoSecondToken(t, 2, SharedName()) })
}

func handsOutNoSecondToken(t *testing.T, nextLimit uint64, options ...Option) {
	t.Parallel()
	server := redistest.Start(t)
	client, err := Open(t.Context(), server.URL())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	begin := func(limit uint64) Quota {
		l, err := New(client, "slow", engine.FixedWindow(limit, 500*time.Millisecond), append(options, Nodes(4), InMode(Strict))...)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, l.Close()) })
		return l.ownQuota
	}
	old := begin(1)
	lose(t, server, old)
	var at int64
	require.Eventually(t, func() bool {
		at = now()
		return admittedOf(t, old, "k", 1) == 1
	}, 20*time.Second, time.Millisecond)
	next := begin(nextLimit)
	next.limiter.Follow(old.limiter)
	require.NoError(t, old.limiter.Close())
	require.Eventually(t, func() bool { return admittedOf(t, next, "k", 1) == 1 }, 20*time.Second, time.Millisecond)
	assert.GreaterOrEqual(t, now()-at, int64(2*time.Second)/int64(nextLimit), "a token in four windows, or in two")
}

// A hold that is settled above its estimate after Close is charged later, or its tokens are reported as lost.
func TestAHoldIsSettledAfterClose(t *testing.T) {
	for _, policy := range []FailurePolicy{FailShare, FailClosed, FailOpen} {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			client, err := Open(t.Context(), server.URL(), Timeout(time.Second))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, client.Close()) })
			begin := func() *Limiter {
				l, err := New(client, "holds", engine.FixedWindow(40, time.Hour), Nodes(2), InMode(Strict), OnLoss(policy))
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, l.Close()) })
				return l
			}
			l := begin()
			var holds []*Hold
			for range 3 {
				h, d, err := l.Hold(t.Context(), "k", 2)
				require.NoError(t, err)
				require.True(t, d.Allowed)
				holds = append(holds, h)
			}
			lose(t, server, l.ownQuota)
			require.NoError(t, l.Close())
			assert.Zero(t, holds[0].Settle(12))
			next := begin()
			if policy == FailShare {
				assert.EqualValues(t, 10, next.share.Peek(next.share.Key("k"), 1).Remaining)
			}
			assert.Zero(t, holds[1].Settle(7))
			if policy == FailShare {
				assert.EqualValues(t, 5, next.share.Peek(next.share.Key("k"), 1).Remaining)
			}
			server.Resume()
			require.NoError(t, next.Settle(t.Context()))
			d, err := next.Peek(t.Context(), "k", 1)
			require.NoError(t, err)
			assert.LessOrEqual(t, d.Remaining, uint64(40-12-7-2))
			require.NoError(t, next.Close())
			require.NoError(t, client.Close())
			assert.EqualValues(t, 3, holds[2].Settle(5), "it is too late")
		})
	}
}

// A refund or a reset changes the shares of all limiters of the limit.
func TestSharesOfALimitGiveBackTogether(t *testing.T) {
	server := redistest.Start(t)
	client, err := Open(t.Context(), server.URL())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	var both [2]*Limiter
	for i := range both {
		both[i], err = New(client, "shares", engine.TokenBucket(engine.Per(1, time.Hour), 8), Nodes(2), InMode(Strict))
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, both[i].Close()) })
	}
	left := func() (n [2]uint64) {
		for i, l := range both {
			n[i] = l.share.Peek(l.share.Key("k"), 1).Remaining
		}
		return n
	}
	one := both[0]
	lose(t, server, one.ownQuota)
	require.EqualValues(t, 3, admittedOf(t, one.ownQuota, "k", 3))
	assert.Equal(t, [2]uint64{1, 1}, left())
	one.share.refund("k", &one.ownQuota, 2)
	assert.Equal(t, [2]uint64{3, 3}, left())
	assert.EqualValues(t, 1, one.Stats().Debt)
	both[1].resetShare("k")
	assert.Equal(t, [2]uint64{4, 4}, left())
	assert.Zero(t, one.Stats().Debt)
}

// Limiters with a shared name have one share after one follows another.
func TestALimiterThatFollowsHasNoSecondShare(t *testing.T) {
	server := redistest.Start(t)
	client, err := Open(t.Context(), server.URL())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	begin := func(name string, policy engine.Policy) *Limiter {
		l, err := New(client, name, policy, SharedName(), Nodes(2), InMode(Strict))
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, l.Close()) })
		return l
	}
	bucket := func(n uint64) engine.Policy { return engine.TokenBucket(engine.Per(1, time.Hour), n) }
	ten, twenty, other := begin("shared", bucket(10)), begin("shared", bucket(20)), begin("other", bucket(10))
	lose(t, server, ten.ownQuota)
	require.EqualValues(t, 3, admittedOf(t, ten.ownQuota, "k", 3))
	require.EqualValues(t, 1, admittedOf(t, twenty.ownQuota, "another", 1))
	other.Follow(ten) // no effect: another name has other counts
	assert.EqualValues(t, 5, admittedOf(t, other.ownQuota, "k", 10))
	assert.EqualValues(t, 10, twenty.share.Peek(twenty.share.Key("k"), 1).Remaining)

	twenty.Follow(ten)
	assert.EqualValues(t, 9, twenty.share.Peek(twenty.share.Key("another"), 1).Remaining)
	assert.EqualValues(t, 1, admittedOf(t, ten.ownQuota, "k", 1), "a request that is under way")
	assert.EqualValues(t, 2, admittedOf(t, twenty.ownQuota, "k", 2))
	assert.Zero(t, admittedOf(t, ten.ownQuota, "k", 1), "of 5")
	require.NoError(t, ten.Close())
	twenty.Follow(ten)
	assert.EqualValues(t, 1, admittedOf(t, twenty.ownQuota, "k", 1))
	thirty := begin("shared", bucket(30))
	thirty.Follow(twenty)
	assert.EqualValues(t, 15-7, admittedOf(t, thirty.ownQuota, "k", 15))
	ten = begin("shared", bucket(10)) // the same numbers again; the earlier limiter with them is closed and owes
	ten.Follow(thirty)
	assert.Zero(t, admittedOf(t, ten.ownQuota, "k", 5))

	server.Resume()
	require.NoError(t, ten.Settle(t.Context()))
	require.NoError(t, twenty.Settle(t.Context()))
	require.NoError(t, thirty.Settle(t.Context()))
	d, err := thirty.Peek(t.Context(), "k", 1)
	require.NoError(t, err)
	assert.LessOrEqual(t, d.Remaining, uint64(30-15))
}

// Tokens that a share admitted come back to it only with time.
func TestAReloadBetweenLossesHandsOutNoShare(t *testing.T) {
	window := func(limit uint64) engine.Policy { return engine.FixedWindow(limit, time.Hour) }
	bucket := func(limit uint64) engine.Policy { return engine.TokenBucket(engine.Per(1, time.Hour), limit) }
	for name, c := range map[string]struct {
		policy  func(uint64) engine.Policy
		limits  []uint64
		options []Option
	}{
		"windows": {window, []uint64{41, 42, 40}, nil}, "windows, follow": {window, []uint64{41, 42, 40}, []Option{SharedName()}},
		"buckets": {bucket, []uint64{10, 30, 40}, nil}, "buckets, follow": {bucket, []uint64{10, 30, 40}, []Option{SharedName()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			client, err := Open(t.Context(), server.URL())
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, client.Close()) })
			begin := func(limit uint64) *Limiter {
				l, err := New(client, "shares", c.policy(limit), append(c.options, Nodes(2), InMode(Strict))...)
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, l.Close()) })
				return l
			}
			old := begin(40)
			lose(t, server, old.ownQuota)
			require.EqualValues(t, 20, admittedOf(t, old.ownQuota, "k", 30))
			server.Resume()
			require.NoError(t, old.Settle(t.Context()))
			for _, limit := range c.limits {
				next := begin(limit)
				next.Follow(old)
				require.NoError(t, old.Close())
				require.Eventually(t, func() bool {
					client.limiters.registry.mu.RLock()
					defer client.limiters.registry.mu.RUnlock()
					return len(client.limiters.registry.limiters[next.life.identity]) == 1
				}, 20*time.Second, time.Millisecond)
				old = next
			}
			lose(t, server, old.ownQuota)
			assert.Zero(t, admittedOf(t, old.ownQuota, "k", 30))
			assert.EqualValues(t, 20, admittedOf(t, old.ownQuota, "another", 30))
			server.Resume()
			require.NoError(t, old.Close()) // so that nothing else sweeps
			old.share.Reset(old.share.Key("k"))
			old.share.sweep(1 << 60)
			assert.Equal(t, 1, old.share.spent.Size(), "what has come back is forgotten")
		})
	}
}
