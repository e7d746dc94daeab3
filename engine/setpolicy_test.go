package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAChangeOfOneTierLeavesTheOthers (I1): a debt under a tier or quota changes only with the numbers of that tier or
// quota.
func TestAChangeOfOneTierLeavesTheOthers(t *testing.T) {
	for name, change := range map[string]struct{ from, to Policy }{
		"a smaller burst": {TokenBucket(PerSecond(1), 1000), TokenBucket(PerSecond(1), 10)},
		"a larger burst":  {TokenBucket(PerSecond(1), 10), TokenBucket(PerSecond(1), 1000)},
		"a slower rate":   {TokenBucket(PerSecond(10), 10), TokenBucket(PerSecond(1), 10)},
		"a faster rate":   {TokenBucket(PerSecond(1), 10), TokenBucket(PerSecond(10), 10)},
		"blocked":         {TokenBucket(PerSecond(1), 10), Blocked()},
	} {
		t.Run(name, func(t *testing.T) {
			plan := TokenBucket(Per(100, time.Hour), 100)
			l, h := newLimiter(t, change.from, Tiers(plan, change.from))
			drained, half := l.Key("drained").Tier(1), l.Key("half").Tier(1)
			require.True(t, l.TakeKey(drained, 100).Allowed)
			require.True(t, l.TakeKey(half, 50).Allowed)
			var before [2]Decision
			for i, k := range []Key{drained, half} {
				before[i] = l.Peek(k, 100)
			}
			for range 5 {
				require.NoError(t, l.SetPolicy(change.to, plan, change.to))
				require.NoError(t, l.SetPolicy(change.from, plan, change.from))
				require.NoError(t, l.SetPolicy(change.to, plan, change.from))
				l.Sweep()
			}
			for i, k := range []Key{drained, half} {
				assert.Equal(t, before[i], l.Peek(k, 100))
			}
			h.advance(36 * time.Second)
			assert.True(t, l.AllowKey(drained))
			assert.False(t, l.AllowKey(drained))
		})
	}
}

// TestAChangeLeavesQuotas (I1): a debt under a quota keeps its price when the policy changes.
func TestAChangeLeavesQuotas(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(Per(1, time.Hour), 1), MaxQuota(1))
	quota := func() Quota {
		q, err := l.Quota(TokenBucket(Per(1, time.Hour), 1))
		require.NoError(t, err)
		return q
	}
	require.True(t, l.TakeKey(l.Key("k").With(quota()), 1).Allowed)
	for _, rate := range []Rate{Per(1000, time.Hour), Per(10, time.Hour), PerSecond(3), Per(1000, time.Hour)} {
		require.NoError(t, l.SetPolicy(TokenBucket(rate, 1)))
	}
	h.advance(time.Hour - time.Second)
	require.False(t, l.TakeKey(l.Key("k").With(quota()), 1).Allowed)
	h.advance(time.Second + 4*time.Nanosecond)
	require.True(t, l.TakeKey(l.Key("k").With(quota()), 1).Allowed)

	l, _ = newLimiter(t, FixedWindow(10, time.Minute))
	window := func() Quota {
		q, err := l.Quota(l.Policy(0))
		require.NoError(t, err)
		return q
	}
	require.True(t, l.TakeKey(l.Key("k").With(window()), 10).Allowed)
	require.NoError(t, l.SetPolicy(FixedWindow(10, time.Hour)))
	require.Equal(t, time.Hour, l.TakeKey(l.Key("k").With(window()), 1).RetryAfter)
}

// TestAChangeToAndFro (I1): tokens of a high limit count when that limit returns, however low the limit was in between.
func TestAChangeToAndFro(t *testing.T) {
	for name, policy := range map[string]func(n uint64) Policy{
		"token bucket":   func(n uint64) Policy { return TokenBucket(PerSecond(100), n) },
		"per hour":       func(n uint64) Policy { return TokenBucket(Per(float64(n), time.Hour), n) },
		"batch refill":   func(n uint64) Policy { return BatchRefill(1, 10*time.Millisecond, n) },
		"fixed window":   func(n uint64) Policy { return FixedWindow(n, time.Minute) },
		"sliding window": func(n uint64) Policy { return SlidingWindow(n, time.Minute) },
		"sliding log":    func(n uint64) Policy { return SlidingLog(n, time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, sweeps := range []bool{false, true} {
				l, h := newLimiter(t, policy(1000))
				require.True(t, l.Take("k", 1000).Allowed)
				require.NoError(t, l.SetPolicy(policy(10)))
				h.advance(200 * time.Millisecond)
				if sweeps {
					l.Sweep()
					require.False(t, l.Allow("k"))
				}
				require.NoError(t, l.SetPolicy(policy(1000)))
				assert.LessOrEqual(t, l.Peek(l.Key("k"), 0).Remaining, uint64(20))
				assert.EqualValues(t, 1000, l.Peek(l.Key("other"), 0).Remaining, "a raised limit is there at once")
			}
		})
	}
}

// TestTimeOwedIsNoShareOfASlowerRate (I1): a key that owes a hundred tokens at 100/s still owes a hundred at 1/s.
func TestTimeOwedIsNoShareOfASlowerRate(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(100), 100), Tiers(TokenBucket(PerSecond(100), 100)))
	keys := []Key{l.Key("own"), l.Key("tier").Tier(1)}
	for _, k := range keys {
		require.True(t, l.TakeKey(k, 100).Allowed)
	}
	require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(1), 100), TokenBucket(PerSecond(1), 100)))
	for _, k := range keys {
		assert.Equal(t, Decision{Limit: 100, RetryAfter: time.Second, ResetAfter: 100 * time.Second}, l.TakeKey(k, 1))
	}
	require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(100), 100), TokenBucket(PerSecond(1000), 100)))
	assert.Equal(t, 10*time.Millisecond, l.TakeKey(keys[0], 1).RetryAfter, "a raised rate is there at once")
	assert.Equal(t, time.Millisecond, l.TakeKey(keys[1], 1).RetryAfter)
	h.advance(10 * time.Millisecond)
	assert.True(t, l.TakeKey(keys[0], 1).Allowed)
	assert.True(t, l.TakeKey(keys[1], 10).Allowed)
}

// TestAFasterRateWhileSomeWait (I1): with a faster rate, a waiting reservation stays due at the same time, and there is
// no additional burst.
func TestAFasterRateWhileSomeWait(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 10))
	require.True(t, l.Take("k", 10).Allowed)
	r, err := l.ahead(l.Key("k"), 10, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, r.delay)
	require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(100), 10)))
	h.advance(9900 * time.Millisecond)
	assert.False(t, l.Allow("k"), "ten go in a tenth of a second")
	h.advance(100 * time.Millisecond)
	assert.False(t, l.Allow("k"))
	h.advance(10 * time.Millisecond)
	assert.True(t, l.Allow("k"))
}

// TestWhatAnotherLimitGrantedIsKept (I1): a lower rate does not change a debt from a higher limit.
func TestWhatAnotherLimitGrantedIsKept(t *testing.T) {
	bucket := func(seconds int, n uint64) Policy { return TokenBucket(Per(1, time.Duration(seconds)*time.Second), n) }
	batch := func(seconds int, n uint64) Policy { return BatchRefill(1, time.Duration(seconds)*time.Second, n) }
	quota := func(t *testing.T, l *Limiter, p Policy) func(Key) Key {
		q, err := l.Quota(p)
		require.NoError(t, err)
		return func(k Key) Key { return k.With(q) }
	}
	tier := func(*testing.T, *Limiter, Policy) func(Key) Key { return func(k Key) Key { return k.Tier(1) } }
	for name, c := range map[string]struct {
		policy func(seconds int, n uint64) Policy
		high   func(*testing.T, *Limiter, Policy) func(Key) Key
		tiers  func(seconds int) []Policy
	}{
		"a quota of a bucket": {bucket, quota, func(int) []Policy { return nil }},
		"a quota of batches":  {batch, quota, func(int) []Policy { return nil }},
		"a tier of batches":   {batch, tier, func(seconds int) []Policy { return []Policy{batch(seconds, 1000)} }},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := newLimiter(t, c.policy(1, 5), Tiers(c.tiers(1)...))
			k := l.Key("k")
			require.True(t, l.TakeKey(c.high(t, l, c.policy(1, 1000))(k), 1000).Allowed)
			_, err := l.ahead(k, 1, time.Hour)
			require.NoError(t, err)
			require.NoError(t, l.SetPolicy(c.policy(100, 5), c.tiers(100)...))
			d := l.Peek(c.high(t, l, c.policy(100, 1000))(k), 1)
			assert.Zero(t, d.Remaining)
			assert.GreaterOrEqual(t, d.RetryAfter, 100*time.Second)
		})
	}
}

// TestATierThatWasBlocked (I1): while a tier is blocked, its keys still owe what they owed under the tier's last
// numbers.
func TestATierThatWasBlocked(t *testing.T) {
	for _, fixed := range []Policy{Blocked(), Unlimited()} {
		own := TokenBucket(PerSecond(1), 1)
		l, _ := newLimiter(t, own, Tiers(TokenBucket(Per(1000, time.Hour), 1000)))
		k := l.Key("k").Tier(1)
		require.True(t, l.TakeKey(k, 1000).Allowed)
		require.NoError(t, l.SetPolicy(own, fixed))
		require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(2), 1), fixed))
		require.NoError(t, l.SetPolicy(own, TokenBucket(Per(10, time.Hour), 600)))
		assert.Zero(t, l.Peek(k, 0).Remaining)
		require.NoError(t, l.SetPolicy(own, TokenBucket(Per(1000, time.Hour), 1000)))
		assert.Zero(t, l.Peek(k, 0).Remaining)
	}
}

// TestARecordHasRoomForWhatWasTaken: if a slower rate of the limiter leaves no room for a possible debt, SetPolicy
// makes the ticks longer.
func TestARecordHasRoomForWhatWasTaken(t *testing.T) {
	own := TokenBucket(PerSecond(1), 1)
	l, _ := newLimiter(t, own, Tiers(TokenBucket(Per(1000, time.Hour), 1000)))
	require.ErrorContains(t, l.SetPolicy(own, TokenBucket(Per(1, time.Hour), 10)),
		"tier 1, token bucket 1/h burst 10: a key may still owe 1000 tokens by earlier numbers, and a record has room for 625 at this rate")
	l, _ = newLimiter(t, TokenBucket(Per(1000, time.Hour), 1000))
	require.True(t, l.Take("k", 1000).Allowed)
	require.NoError(t, l.SetPolicy(TokenBucket(Per(1, time.Hour), 10)))
	assert.InDelta(t, 991*time.Hour, l.Peek(l.Key("k"), 1).RetryAfter, float64(time.Second))
	require.NoError(t, l.SetPolicy(TokenBucket(Per(1000, time.Hour), 1000)))
	assert.Zero(t, l.Peek(l.Key("k"), 0).Remaining)

	l, _ = newLimiter(t, SlidingWindow(1<<20, time.Hour))
	require.ErrorContains(t, l.SetPolicy(SlidingWindow(10, time.Microsecond)), "1048577 of earlier limits")
}

// TestAnyCourseOfChanges (I1): over any interval, a key gets at most the highest burst and rate of its tier.
func TestAnyCourseOfChanges(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 28))
			rates, bursts := []uint64{1, 10, 100, 1000}, []uint64{1, 7, 100, 1000}
			draw := func() (rate, burst uint64) { return rates[random.IntN(4)], bursts[random.IntN(4)] }
			policy := func(rate, burst uint64) Policy { return TokenBucket(PerSecond(float64(rate)), burst) }
			other := policy(draw())
			rate, burst := draw()
			highestRate, highestBurst := rate, burst
			l, h := newLimiter(t, other, Tiers(policy(rate, burst)))
			twin, twins := newLimiter(t, TokenBucket(PerSecond(1), 1), Tiers(policy(rate, burst)))
			k, same := l.Key("k").Tier(1), twin.Key("k").Tier(1)
			type taken struct {
				at     time.Duration
				tokens uint64
			}
			var all []taken
			now := time.Duration(0)
			for range 300 {
				switch random.IntN(6) {
				case 0:
					other = policy(draw())
					require.NoError(t, l.SetPolicy(other, policy(rate, burst)))
				case 1:
					rate, burst = draw()
					highestRate, highestBurst = max(rate, highestRate), max(burst, highestBurst)
					require.NoError(t, l.SetPolicy(other, policy(rate, burst)))
					require.NoError(t, twin.SetPolicy(TokenBucket(PerSecond(1), 1), policy(rate, burst)))
				case 2:
					step := time.Duration(random.Int64N(int64(time.Second) >> random.IntN(12)))
					now += step
					h.advance(step)
					twins.advance(step)
					if random.IntN(3) == 0 {
						l.Sweep()
					}
				default:
					n := 1 + random.Uint64N(burst)
					d := l.TakeKey(k, n)
					want := twin.TakeKey(same, n)
					require.Equal(t, want.Allowed, d.Allowed, "%v %v", d, want)
					require.InDelta(t, want.RetryAfter, d.RetryAfter, float64(want.RetryAfter)/1e6+100)
					if d.Allowed {
						all = append(all, taken{now, n})
					}
				}
			}
			for i := range all {
				got := uint64(0)
				for _, a := range all[i:] {
					got += a.tokens
					most := float64(highestBurst) + float64(highestRate)*(a.at-all[i].at).Seconds()
					require.LessOrEqual(t, float64(got), most+0.001)
				}
			}
		})
	}
}
