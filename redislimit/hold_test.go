//go:build unix

package redislimit_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

func slowly(limit uint64) map[string]engine.Policy {
	return map[string]engine.Policy{
		"token bucket":   engine.TokenBucket(engine.Per(1, time.Hour), limit),
		"fixed window":   engine.FixedWindow(limit, time.Hour),
		"sliding window": engine.SlidingWindow(limit, 365*24*time.Hour),
		"sliding log":    engine.SlidingLog(limit, time.Hour),
	}
}

func usedOf(t *testing.T, l *redislimit.Limiter, key string) uint64 {
	t.Helper()
	d, err := l.Peek(t.Context(), key, 1)
	require.NoError(t, err)
	return d.Limit - d.Remaining
}

func becomes(t *testing.T, l *redislimit.Limiter, key string, tokens uint64) {
	t.Helper()
	require.Eventually(t, func() bool { return usedOf(t, l, key) == tokens }, backSoon, time.Millisecond, "want %d", tokens)
}

func hold(t *testing.T, l *redislimit.Limiter, key string, estimate uint64) *redislimit.Hold {
	t.Helper()
	h, d, err := l.Hold(t.Context(), key, estimate)
	require.NoError(t, err)
	require.True(t, d.Allowed)
	return h
}

// Any node may settle a hold, which then costs the settled amount, once.
func TestAHoldCostsWhatItIsSettledFor(t *testing.T) {
	server := redistest.Start(t)
	for name, policy := range slowly(100) {
		t.Run(name, func(t *testing.T) {
			make := func() *redislimit.Limiter {
				l, err := redislimit.New(patient(t, server.URL()), "holds", policy, redislimit.InMode(redislimit.Strict), redislimit.TrustRefusals(0))
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, l.Close()) })
				return l
			}
			a, b := make(), make()
			less, more, dead := hold(t, a, "k", 30), hold(t, a, "k", 20), hold(t, a, "k", 10)
			refused, d, err := b.Hold(t.Context(), "k", 41)
			require.NoError(t, err)
			require.False(t, d.Allowed)
			require.EqualValues(t, 60, usedOf(t, b, "k"))
			require.Zero(t, less.Settle(5))
			becomes(t, b, "k", 35)
			require.Zero(t, more.Settle(35))
			becomes(t, b, "k", 50)
			require.NoError(t, a.Settle(t.Context()))
			for _, again := range []*redislimit.Hold{less, more, refused, {}} {
				require.Zero(t, again.Settle(0))
				require.Zero(t, again.Settle(100))
			}
			require.False(t, less.Release())
			_ = dead
			cancelled := hold(t, b, "k", 7)
			require.EqualValues(t, 57, usedOf(t, b, "k"))
			require.True(t, cancelled.Release())
			becomes(t, b, "k", 50)
			nothing := hold(t, b, "k", 0)
			nothing.Settle(4)
			becomes(t, b, "k", 54)
			require.Zero(t, nothing.Charge(3))
			require.Zero(t, new(redislimit.Hold).Charge(3))
			becomes(t, b, "k", 57)
			all := hold(t, b, "other", 1<<40)
			require.EqualValues(t, 100, usedOf(t, b, "other"))
			all.Settle(60)
			becomes(t, b, "other", 60)
			require.NoError(t, b.Settle(t.Context()))
			require.EqualValues(t, 57, usedOf(t, b, "k"), "what was done twice counts once")
		})
	}
}

// A hold gives back no tokens that have come back with time before it is settled.
func TestAHoldFreesNoOther(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]engine.Policy{
		"token bucket": engine.TokenBucket(engine.PerSecond(1), 100), "fixed window": engine.FixedWindow(100, 100*time.Second),
		"aligned window": engine.FixedWindow(100, 100*time.Second).Aligned(), "sliding window": engine.SlidingWindow(100, 50*time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			server, store := miniAs(t, true)
			l := limiter(t, store, policy, redislimit.InMode(redislimit.Strict))
			old, long := hold(t, l, "k", 60), hold(t, l, "k", 20)
			server.SetTime(time.Unix(1_000_000_000, 0).Add(101 * time.Second))
			server.FastForward(101 * time.Second)
			require.True(t, take(t, l, "k", 40).Allowed)
			old.Settle(10)
			long.Settle(25)
			require.NoError(t, l.Settle(t.Context()))
			require.EqualValues(t, 45, usedOf(t, l, "k"))
		})
	}
	server, store := miniAs(t, true)
	l := limiter(t, store, engine.TokenBucket(engine.PerSecond(1), 100), redislimit.InMode(redislimit.Strict))
	half := hold(t, l, "k", 80)
	server.SetTime(time.Unix(1_000_000_000, 0).Add(40 * time.Second))
	require.True(t, take(t, l, "k", 50).Allowed)
	half.Settle(0)
	becomes(t, l, "k", 50)
	// A sliding log removes the tokens of the hold, and no others.
	log := limiter(t, patient(t, redistest.Start(t).URL()), engine.SlidingLog(100, 2*time.Second))
	first := hold(t, log, "k", 40)
	time.Sleep(1200 * time.Millisecond) // the tokens that are left at the end must not be the first ones
	require.True(t, take(t, log, "k", 30).Allowed)
	first.Settle(10)
	becomes(t, log, "k", 40)
	time.Sleep(time.Second)
	require.EqualValues(t, 30, usedOf(t, log, "k"), "what was taken later was given back")
}

// If an answer or the store is lost, a difference is given back at most once, and charged at least once.
func TestSettleWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	for name, policy := range slowly(100) {
		t.Run(name, func(t *testing.T) {
			node, err := redislimit.New(open(t, proxy.URL()), name, policy, redislimit.InMode(redislimit.Strict), redislimit.OnLoss(redislimit.FailClosed))
			require.NoError(t, err)
			t.Cleanup(func() { _ = node.Close() })
			straight, err := redislimit.New(patient(t, server.URL()), name, policy, redislimit.InMode(redislimit.Strict))
			require.NoError(t, err)
			t.Cleanup(func() { _ = straight.Close() })
			var less, more *redislimit.Hold
			take := func(key string) (h *redislimit.Hold) {
				require.Eventually(t, func() bool {
					var d engine.Decision
					h, d, err = node.Hold(t.Context(), key, 20)
					return err == nil && d.Allowed
				}, backSoon, 10*time.Millisecond)
				return h
			}
			less, more = take("less"), take("more")
			before := [...]uint64{usedOf(t, straight, "less"), usedOf(t, straight, "more")}
			proxy.LoseAnswers()
			less.Settle(5)
			more.Settle(30)
			require.Eventually(t, func() bool { return usedOf(t, straight, "more") >= before[1]+10 }, backSoon, time.Millisecond)
			require.Error(t, errOfSettle(t, node, 50*time.Millisecond), "it is charged until that is known")
			proxy.Clear()
			require.NoError(t, errOfSettle(t, node, backSoon))
			assert.GreaterOrEqual(t, usedOf(t, straight, "more"), before[1]+10)
			assert.GreaterOrEqual(t, usedOf(t, straight, "less"), before[0]-15)
			less, more = take("less 2"), take("more 2")
			server.Pause()
			require.Eventually(t, func() bool {
				_, _, err := node.Hold(t.Context(), "x", 1)
				return err != nil && node.Stats().Store.Lost > 0
			}, backSoon, time.Millisecond)
			less.Settle(5)
			more.Settle(30)
			server.Resume()
			require.NoError(t, errOfSettle(t, node, backSoon))
			assert.GreaterOrEqual(t, usedOf(t, straight, "less 2"), uint64(20), "what was not sent is not given back")
			assert.GreaterOrEqual(t, usedOf(t, straight, "more 2"), uint64(30))
		})
	}
}

func errOfSettle(t *testing.T, l *redislimit.Limiter, d time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return l.Settle(ctx)
}

// After FLUSHALL, holds of windows and logs give back no tokens of later requests.
func TestAHoldAfterTheStoreForgot(t *testing.T) {
	server := redistest.Start(t)
	for name, policy := range slowly(100) {
		t.Run(name, func(t *testing.T) {
			l, err := redislimit.New(patient(t, server.URL()), name, policy, redislimit.InMode(redislimit.Strict))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, l.Close()) })
			less, more := hold(t, l, "k", 40), hold(t, l, "k", 10)
			server.Do("FLUSHALL")
			require.True(t, take(t, l, "k", 50).Allowed)
			more.Settle(15)
			becomes(t, l, "k", 55)
			less.Settle(10)
			for range 50 {
				require.GreaterOrEqual(t, usedOf(t, l, "k"), uint64(25), "more than was held")
			}
			if name == "fixed window" || name == "sliding log" {
				require.EqualValues(t, 55, usedOf(t, l, "k"))
			}
		})
	}
}

// A hold is settled under the numbers with which it was made.
func TestAHoldOverAChangeOfNumbers(t *testing.T) {
	server := redistest.Start(t)
	wide := slowly(200)
	for name, policy := range slowly(100) {
		t.Run(name, func(t *testing.T) {
			before, err := redislimit.New(patient(t, server.URL()), name, policy, redislimit.InMode(redislimit.Strict))
			require.NoError(t, err)
			after, err := redislimit.New(patient(t, server.URL()), name, wide[name], redislimit.InMode(redislimit.Strict))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, after.Close()) })
			less, more := hold(t, before, "k", 40), hold(t, before, "k", 40)
			require.True(t, take(t, after, "k", 100).Allowed)
			require.NoError(t, before.Close())
			less.Settle(10)
			becomes(t, after, "k", 150)
			more.Settle(50)
			becomes(t, after, "k", 160)
		})
	}
}

// The store charges the sum that was settled, even if holds are settled concurrently, twice, or never.
func TestTheSumChargedIsTheSumSettled(t *testing.T) {
	server := redistest.Start(t)
	const limit = 4000
	for name, policy := range slowly(limit) {
		t.Run(name, func(t *testing.T) {
			var nodes [2]*redislimit.Limiter
			for i := range nodes {
				l, err := redislimit.New(patient(t, server.URL()), name, policy, redislimit.InMode(redislimit.Strict), redislimit.OnLoss(redislimit.FailClosed))
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, l.Close()) })
				nodes[i] = l
			}
			var lock sync.Mutex
			sums := map[string]uint64{}
			var all sync.WaitGroup
			for client := range uint64(8) {
				all.Go(func() {
					random := rand.New(rand.NewPCG(client, 1))
					for range 40 {
						key := []string{"anna", "bert"}[random.IntN(2)]
						h, d, err := nodes[client%2].Hold(t.Context(), key, random.Uint64N(20))
						if !assert.NoError(t, err) || !d.Allowed {
							return
						}
						cost := random.Uint64N(25)
						if random.IntN(5) == 0 {
							cost = h.Taken()
						} else {
							for range 2 {
								all.Go(func() { h.Settle(cost) })
							}
						}
						lock.Lock()
						sums[key] += cost
						lock.Unlock()
					}
				})
			}
			all.Wait()
			for _, l := range nodes {
				require.NoError(t, l.Settle(t.Context()))
			}
			for key, sum := range sums {
				becomes(t, nodes[0], key, sum)
			}
		})
	}
}

// Settled tokens of leased limiters do not exceed the bound.
func TestLeasedHoldsAreWithinTheBound(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	policy := engine.TokenBucket(engine.PerSecond(500), 2000)
	begin := time.Now()
	var settled, taken uint64
	var nodes [2]*redislimit.Limiter
	for i := range nodes {
		nodes[i] = limiter(t, patient(t, server.URL()), policy, redislimit.Nodes(2))
		require.Equal(t, redislimit.Leased, nodes[i].Mode())
	}
	random := rand.New(rand.NewPCG(1, 1))
	var open []*redislimit.Hold
	isHadAgain := false // tokens that were given back were taken again
	for time.Since(begin) < 1500*time.Millisecond || (!isHadAgain || settled <= 1000) && time.Since(begin) < backSoon {
		h, d, err := nodes[random.IntN(2)].Hold(t.Context(), "k", 1+random.Uint64N(30))
		require.NoError(t, err)
		if d.Allowed {
			open, taken = append(open, h), taken+h.Taken()
			isHadAgain = isHadAgain || taken > nodes[0].Bound(time.Since(begin))
		}
		if len(open) > 20 {
			h, cost := open[0], uint64(0)
			open = open[1:]
			cost = random.Uint64N(h.Taken() + 1)
			settled += cost
			h.Settle(cost)
		}
	}
	assert.LessOrEqual(t, settled, nodes[0].Bound(time.Since(begin)))
	assert.Greater(t, settled, uint64(1000))
	assert.True(t, isHadAgain, "what is given back can be had again: %d taken", taken)
}
