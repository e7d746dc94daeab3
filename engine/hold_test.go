package engine

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testalloc"
)

func left(l *Limiter, key string) uint64 { return l.Peek(l.Key(key), 0).Remaining }

// TestAHoldCostsWhatItIsSettledFor (I2): the key pays exactly the cost of the first settlement, or the estimate without
// a settlement.
func TestAHoldCostsWhatItIsSettledFor(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, _ *hand) {
		d, less := l.Hold(l.Key("k"), 30)
		require.Equal(t, l.Peek(l.Key("k"), 0).Remaining, d.Remaining)
		require.True(t, d.Allowed)
		d, more := l.Hold(l.Key("k"), 30)
		require.True(t, d.Allowed)
		d, _ = l.Hold(l.Key("k"), 10)
		require.True(t, d.Allowed)
		require.EqualValues(t, 30, left(l, "k"))
		d, refused := l.Hold(l.Key("k"), 31)
		require.False(t, d.Allowed)
		require.Positive(t, d.RetryAfter)
		require.Zero(t, less.Settle(5))
		require.EqualValues(t, 55, left(l, "k"))
		require.Zero(t, more.Settle(40))
		require.EqualValues(t, 45, left(l, "k"))
		for _, again := range []*Receipt{&less, &more, &refused, {}} {
			require.Zero(t, again.Settle(0))
			require.Zero(t, again.Settle(100))
		}
		d, nothing := l.Hold(l.Key("k"), 0)
		require.True(t, d.Allowed)
		require.Zero(t, nothing.Settle(5))
		require.EqualValues(t, 40, left(l, "k"))
		_, exact := l.Hold(l.Key("k"), 10)
		require.Zero(t, exact.Settle(10))
		require.EqualValues(t, 30, left(l, "k"))
	})
}

// TestAReceiptChargesLater: a cost above the tokens taken is charged, even after the receipt has ended.
func TestAReceiptChargesLater(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, _ *hand) {
		_, h := l.Hold(l.Key("k"), 30)
		require.EqualValues(t, 30, h.Taken())
		require.Zero(t, h.Charge(5))
		require.EqualValues(t, 65, left(l, "k"))
		require.Zero(t, h.Settle(10))
		require.EqualValues(t, 85, left(l, "k"))
		require.Zero(t, h.Charge(20))
		require.EqualValues(t, 65, left(l, "k"))
		require.Zero(t, h.Charge(0))
		require.EqualValues(t, 30, h.Taken())
		require.Zero(t, new(Receipt).Charge(5))
		require.Zero(t, new(Receipt).Taken())
		_, most := h.Charge(40), h.Charge(math.MaxUint64)
		require.Positive(t, most, "it is bounded as any charge is")
		require.Zero(t, left(l, "k"))
	})
	s, err := NewSpread(TokenBucket(Per(60, time.Hour), 100), ClockPrecise())
	require.NoError(t, err)
	defer s.Close()
	_, r := s.TakeReceipt(10)
	require.Zero(t, r.Charge(50))
	require.EqualValues(t, 40, s.Peek(0).Remaining)
	require.EqualValues(t, 10, r.Taken())
}

// TestAnEstimateAboveTheLimit: a hold of more than the limit is admitted if the key has its complete limit.
func TestAnEstimateAboveTheLimit(t *testing.T) {
	forEach(t, nil, func(t *testing.T, a perMinute, l *Limiter, _ *hand) {
		d, h := l.Hold(l.Key("k"), math.MaxUint64)
		require.True(t, d.Allowed)
		require.Zero(t, d.Remaining)
		d, _ = l.Hold(l.Key("k"), math.MaxUint64)
		require.False(t, d.Allowed)
		require.NotEqual(t, Never, d.RetryAfter)
		lost := h.Settle(250)
		if l.table.Buckets() {
			require.Zero(t, lost)
		} else {
			require.EqualValues(t, 150, lost, "one limit")
		}
		_, other := l.Hold(l.Key("other"), 1000)
		require.Zero(t, other.Settle(60))
		require.EqualValues(t, 40, left(l, "other"))
	})
}

func TestAHoldUnderOtherLimits(t *testing.T) {
	l, _ := newLimiter(t, FixedWindow(100, time.Minute), Tiers(FixedWindow(10, time.Minute), Unlimited()))
	quota, err := l.Quota(FixedWindow(50, time.Minute))
	require.NoError(t, err)
	blocked, err := l.Quota(Blocked())
	require.NoError(t, err)
	for i, c := range []struct {
		of    func(Key) Key
		taken uint64
	}{{func(k Key) Key { return k.Tier(1) }, 10}, {func(k Key) Key { return k.With(quota) }, 50}} {
		k := l.KeyUint64(uint64(i))
		d, h := l.Hold(c.of(k), 1000)
		require.True(t, d.Allowed)
		require.EqualValues(t, 100-c.taken, l.Peek(k, 0).Remaining)
		h.Settle(3)
		require.EqualValues(t, 97, l.Peek(k, 0).Remaining)
	}
	k := l.Key("k")
	d, h := l.Hold(k.Tier(2), 1000)
	require.Equal(t, unlimitedDecision, d)
	require.Zero(t, h.Settle(0))
	require.Zero(t, h.Settle(2000))
	d, h = l.Hold(k.With(blocked), 5)
	require.False(t, d.Allowed)
	require.Equal(t, Never, d.RetryAfter)
	require.Zero(t, h.Settle(0))
	require.EqualValues(t, 100, l.Peek(k, 0).Remaining)
}

// TestAHoldIsSettledInTheNextWindow (I1): a hold that is settled in the next window gives nothing back to that window.
func TestAHoldIsSettledInTheNextWindow(t *testing.T) {
	forEach(t, nil, func(t *testing.T, a perMinute, l *Limiter, h *hand) {
		h.advance(39 * time.Second)
		_, less := l.Hold(l.Key("k"), 50)
		_, more := l.Hold(l.Key("k"), 20)
		h.advance(2 * time.Minute)
		require.True(t, l.Take("k", 30).Allowed)
		less.Settle(10)
		require.EqualValues(t, 70, left(l, "k"))
		more.Settle(25)
		require.EqualValues(t, 65, left(l, "k"))
	})
	// A sliding window counter also counts the previous window, so tokens are given back to it.
	l, h := newLimiter(t, SlidingWindow(100, time.Minute))
	h.advance(40 * time.Second)
	_, hold := l.Hold(l.Key("k"), 60)
	h.advance(time.Minute)
	require.True(t, l.Take("k", 10).Allowed)
	require.EqualValues(t, 30, left(l, "k"))
	hold.Settle(20)
	require.EqualValues(t, 70, left(l, "k"))
}

// TestAHoldOutlivesMuch (I1): after a reset, an eviction or a change of the policy, a hold gives back no tokens of
// other requests.
func TestAHoldOutlivesMuch(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, l *Limiter, a perMinute)
		given  bool
	}{
		"close": {func(t *testing.T, l *Limiter, _ perMinute) { require.NoError(t, l.Close()) }, true},
		"reset": {func(t *testing.T, l *Limiter, _ perMinute) {
			l.Reset(l.Key("k"))
			require.True(t, l.Take("k", 50).Allowed)
		}, false},
		"set policy": {func(t *testing.T, l *Limiter, a perMinute) { require.NoError(t, l.SetPolicy(a.policy(100))) }, false},
	} {
		forEach(t, nil, func(t *testing.T, a perMinute, l *Limiter, _ *hand) {
			_, less := l.Hold(l.Key("k"), 40)
			_, more := l.Hold(l.Key("k"), 10)
			c.change(t, l, a)
			require.Zero(t, less.Settle(10))
			want := uint64(50)
			if c.given || name == "set policy" && (a.name == "sliding log" || a.name == "concurrency") {
				want = 80
			}
			require.Equal(t, want, left(l, "k"), name)
			require.Zero(t, more.Settle(15))
			require.Equal(t, want-5, left(l, "k"), name)
		})
	}
}

// TestTheSumChargedIsTheSumSettled (I2): a settled hold is charged exactly its cost, and a dropped hold its estimate.
func TestTheSumChargedIsTheSumSettled(t *testing.T) {
	const limit = 4000
	for _, a := range algorithms {
		t.Run(a.name, func(t *testing.T) {
			for seed := range uint64(20) {
				l, _ := newLimiter(t, a.policy(limit))
				keys := []Key{l.Key("anna"), l.Key("bert")}
				var sums [2]uint64
				var lock sync.Mutex
				var all sync.WaitGroup
				for client := range uint64(4) {
					all.Go(func() {
						random := rand.New(rand.NewPCG(seed, client))
						var settling sync.WaitGroup
						defer settling.Wait()
						for range 40 {
							key := random.IntN(2)
							d, h := l.Hold(keys[key], random.Uint64N(20))
							if !d.Allowed {
								continue
							}
							cost := random.Uint64N(25)
							if random.IntN(5) == 0 {
								cost = h.tableReceipt.Tokens()
							} else {
								for range 2 { // two goroutines settle, and one settlement counts
									settling.Go(func() { assert.Zero(t, h.Settle(cost)) })
								}
							}
							lock.Lock()
							sums[key] += cost
							lock.Unlock()
						}
					})
				}
				all.Wait()
				for key, sum := range sums {
					require.EqualValues(t, limit-sum, l.Peek(keys[key], 0).Remaining, "round %d", seed)
				}
			}
		})
	}
}

// TestTheSumChargedUnderEviction (I2, I7): while keys evict each other, debts and forgiven tokens together are at least
// the settled costs.
func TestTheSumChargedUnderEviction(t *testing.T) {
	forEach(t, []Option{MaxKeys(1), Shards(1)}, func(t *testing.T, _ perMinute, l *Limiter, _ *hand) {
		random := rand.New(rand.NewPCG(7, 7))
		var settled, most uint64
		var open []*Receipt
		for range 3000 {
			k := l.KeyUint64(random.Uint64N(60))
			estimate := 1 + random.Uint64N(5)
			if d, h := l.Hold(k, estimate); d.Allowed {
				open = append(open, &h)
				most, settled = most+estimate, settled+estimate
			}
			if len(open) > 10 {
				h := open[random.IntN(len(open))]
				if h.ended == 0 {
					held := h.tableReceipt.Tokens()
					cost := random.Uint64N(held + 1)
					require.Zero(t, h.Settle(cost))
					settled -= held - cost
				}
			}
		}
		require.Positive(t, l.Stats().Evictions)
		owed := l.Stats().Forgiven
		for i := range uint64(60) {
			owed += 100 - l.Peek(l.KeyUint64(i), 0).Remaining
		}
		require.GreaterOrEqual(t, owed, settled)
		require.LessOrEqual(t, owed, most)
	})
}

// TestHoldAllIsAllOrNothing: TakeAll holds tokens of several limits all or nothing, and each hold is settled
// separately.
func TestHoldAllIsAllOrNothing(t *testing.T) {
	requests, _ := newLimiter(t, FixedWindow(2, time.Minute))
	tokens, _ := newLimiter(t, TokenBucket(PerSecond(10), 1000))
	ask := []Request{{Limiter: requests, Key: requests.Key("anna"), N: 1}, {Limiter: tokens, Key: tokens.Key("anna"), N: 600}, {Limiter: tokens, Key: tokens.Key("all"), N: 600}}
	holds := make([]Receipt, 3)
	d, err := holdAll(ask, holds)
	require.NoError(t, err)
	require.True(t, d.Allowed)
	require.EqualValues(t, 1, d.Remaining, "of requests")
	require.Zero(t, settleAll(holds, 1, 150, 150))
	require.Equal(t, []uint64{1, 850, 850}, []uint64{left(requests, "anna"), left(tokens, "anna"), left(tokens, "all")})

	require.True(t, tokens.Take("all", 500).Allowed)
	_, _ = holdAll(ask[1:2], holds[2:])
	tokens.Reset(tokens.Key("anna"))
	_, holds[2] = tokens.Hold(tokens.Key("anna"), 150)
	ask[1], ask[2] = ask[2], ask[1]
	d, err = holdAll(ask, holds)
	require.NoError(t, err)
	require.False(t, d.Allowed)
	require.Equal(t, 25*time.Second, d.RetryAfter, "600 of 350")
	require.Equal(t, []uint64{1, 850, 350}, []uint64{left(requests, "anna"), left(tokens, "anna"), left(tokens, "all")})
	require.Zero(t, settleAll(holds, 0, 0, 0))
	require.Equal(t, []uint64{1, 850, 350}, []uint64{left(requests, "anna"), left(tokens, "anna"), left(tokens, "all")})

	ask[1], ask[2] = ask[2], ask[1]
	ask[1].N, ask[2].N = 5000, 10 // an estimate above the limit counts as the limit
	tokens.Reset(tokens.Key("anna"))
	d, err = holdAll(ask, holds)
	require.NoError(t, err)
	require.True(t, d.Allowed)
	settleAll(holds, 1, 1200, 10)
	require.Equal(t, 20100*time.Millisecond, tokens.Peek(tokens.Key("anna"), 1).RetryAfter)
	_, err = holdAll(ask, holds[:2])
	require.ErrorContains(t, err, "3 requests and room for 2 answers")
	_, err = holdAll(append(ask, ask[0]), holds)
	require.ErrorContains(t, err, "same key")
}

func TestHoldsDoNotAllocate(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, _ *hand) {
		k := l.Key("k")
		other, _ := newLimiter(t, TokenBucket(PerSecond(1e6), 1e6))
		ask := []Request{{Limiter: l, Key: k, N: 3, Hold: true}, {Limiter: other, Key: k, N: 3, Hold: true}}
		var answers [2]Answer
		require.Zero(t, testalloc.PerCall(func() {
			_, h := l.Hold(k, 3)
			h.Settle(1)
			_, _ = TakeAll(ask, answers[:])
			answers[0].Receipt.Settle(0)
			answers[1].Receipt.Settle(7)
			l.Reset(k)
		}))
	})
}
