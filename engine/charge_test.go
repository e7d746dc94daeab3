package engine_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testalloc"
)

// TestChargeTakesWhatHasHappened (I1, I2): a key in debt is admitted again when enough has come back, to the
// nanosecond.
func TestChargeTakesWhatHasHappened(t *testing.T) {
	for name, c := range map[string]struct {
		policy engine.Policy
		wait   time.Duration // after a charge of 25 tokens, with a limit of 10, at a multiple of the window
		lost   uint64
	}{
		"token bucket":   {engine.TokenBucket(engine.PerSecond(1), 10), 16 * time.Second, 0},
		"batch refill":   {engine.BatchRefill(5, 5*time.Second, 10), 20 * time.Second, 0},
		"fixed window":   {engine.FixedWindow(10, 10*time.Second), 10 * time.Second, 0},
		"sliding window": {engine.SlidingWindow(10, 10*time.Second), 16*time.Second + 1, 0},
		"sliding log":    {engine.SlidingLog(10, 10*time.Second), 10 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l, now := limiterOf(t, c.policy, engine.MaxDebt(3))
			d, lost := l.Charge(l.Key("anna"), 25)
			require.Equal(t, c.lost, lost)
			require.Equal(t, engine.Decision{Limit: 10, RetryAfter: c.wait, ResetAfter: d.ResetAfter}, d)
			require.Equal(t, d, l.Peek(l.Key("anna"), 1))
			require.False(t, l.Allow("anna"))
			d, lost = l.Charge(l.Key("anna"), 25)
			require.Equal(t, uint64(20), lost, "three limits are 30")
			require.GreaterOrEqual(t, d.RetryAfter, c.wait)
			*now = now.Add(d.RetryAfter - 1)
			require.False(t, l.Allow("anna"))
			*now = now.Add(1)
			require.True(t, l.Allow("anna"))
		})
	}
}

// TestChargeWithoutMaxDebt: the default bound is ten limits for buckets, and one limit for all other algorithms.
func TestChargeWithoutMaxDebt(t *testing.T) {
	for policy, owed := range map[engine.Policy]uint64{
		engine.TokenBucket(engine.PerSecond(1), 7):          70,
		engine.BatchRefill(5, time.Second, 7):               70,
		engine.FixedWindow(7, time.Second):                  7,
		engine.FixedWindow(7, time.Second).Aligned():        7,
		engine.SlidingWindow(7, time.Second):                7,
		engine.SlidingLog(7, time.Second):                   7,
		engine.Concurrency(7, time.Minute):                  7,
		engine.TokenBucket(engine.Per(1, 24*time.Hour), 26): 26, // 2^51 ticks, each a nanosecond
		engine.TokenBucket(engine.PerSecond(97), 1000):      10000,
	} {
		l, err := engine.New(policy, engine.MaxKeys(1),
			engine.ClockFunc(func() time.Time { return time.Unix(1_800_000_000, 0) }))
		require.NoError(t, err)
		for _, n := range []uint64{math.MaxUint64, 1, math.MaxUint64} {
			_, lost := l.Charge(l.Key("anna"), n)
			require.Equal(t, n-min(n, owed), lost, policy)
			owed = 0
		}
		l.Close()
	}
}

// TestChargeBadInput: New refuses options of charges with wrong numbers, and charges of unusual numbers have defined
// answers.
func TestChargeBadInput(t *testing.T) {
	for _, limits := range []uint64{0, 1<<32 + 1, math.MaxUint64} {
		_, err := engine.New(engine.FixedWindow(1, time.Hour), engine.MaxDebt(limits))
		require.ErrorContains(t, err, "want 1 to 4294967296 limits")
	}
	_, err := engine.New(engine.FixedWindow(1, time.Hour), engine.ChargeRefusals(3))
	require.ErrorContains(t, err, "engine: ChargeRefusals(3)")
	_, err = engine.New(engine.TokenBucket(engine.Per(1, 24*time.Hour), 20), engine.MaxDebt(2))
	require.ErrorContains(t, err, "engine: token bucket 1/d burst 20: MaxDebt(2): a record has room for 1 limits")
	_, err = engine.New(engine.FixedWindow(1000, time.Microsecond), engine.MaxDebt(1<<31))
	require.ErrorContains(t, err, "want 1 to ")
	_, err = engine.New(engine.SlidingLog(1000, time.Minute), engine.MaxDebt(5))
	require.ErrorContains(t, err, "with MaxDebt(5) a key may owe 5000")

	l, _ := limiterOf(t, engine.TokenBucket(engine.Per(3, time.Minute), 3))
	d, lost := l.Charge(l.Key("anna"), 0)
	require.Zero(t, lost)
	require.Equal(t, l.Peek(l.Key("anna"), 1), d)
	l.Sweep()
	require.Zero(t, l.Stats().Keys, "a charge of nothing leaves no record")

	all := quotaOf(t, l, engine.Unlimited())
	d, lost = l.Charge(l.Key("anna").With(all), math.MaxUint64)
	require.Zero(t, lost)
	require.True(t, d.Allowed)
	d, lost = l.Charge(l.Key("anna").With(quotaOf(t, l, engine.Blocked())), 5)
	require.Equal(t, uint64(5), lost)
	require.Equal(t, engine.Decision{RetryAfter: engine.Never}, d)
	twin, _ := limiterOf(t, engine.TokenBucket(engine.Per(3, time.Minute), 3))
	_, lost = l.Charge(l.Key("anna").With(quotaOf(t, twin, engine.TokenBucket(engine.Per(5, time.Minute), 5))), 5)
	require.Equal(t, uint64(5), lost)
	require.Equal(t, uint64(3), l.Peek(l.Key("anna"), 1).Remaining)
}

// TestChargeWithoutRoom: a charge of a new key without a slot is lost and reported as lost.
func TestChargeWithoutRoom(t *testing.T) {
	for _, overflow := range []engine.OverflowPolicy{engine.Refuse, engine.Admit, engine.Evict} {
		l, _ := limiterOf(t, engine.TokenBucket(engine.Per(3, time.Minute), 3), engine.MaxKeys(1), engine.Overflow(overflow))
		lostAll := uint64(0)
		for i := range uint64(500) {
			_, lost := l.Charge(l.KeyUint64(i), 20)
			lostAll += lost
		}
		stats := l.Stats()
		require.Equal(t, 20*(stats.NoRoom+stats.Unrecorded), lostAll, overflow)
		require.Positive(t, stats.NoRoom+stats.Unrecorded+stats.Evictions)
		require.Equal(t, 20*stats.Evictions, stats.Forgiven)
	}
}

// TestRefusalsThatCost (I1): refused requests cost what ChargeRefusals says, in every algorithm.
func TestRefusalsThatCost(t *testing.T) {
	for name, policy := range map[string]engine.Policy{
		"token bucket": engine.TokenBucket(engine.Per(10, time.Hour), 10), "fixed window": engine.FixedWindow(10, time.Hour),
		"sliding window": engine.SlidingWindow(10, time.Hour), "sliding log": engine.SlidingLog(10, time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			for charge, want := range map[engine.RefusalCharge][3]uint64{
				engine.ChargeNothing: {3, 3, 3}, engine.ChargeTheRest: {0, 0, 2}, engine.ChargePenalty: {0, 0, 0},
			} {
				l, _ := limiterOf(t, policy, engine.ChargeRefusals(charge), engine.MaxDebt(4))
				require.True(t, l.Take("anna", 7).Allowed)
				d := l.Take("anna", 5)
				require.False(t, d.Allowed)
				require.Equal(t, want[0], d.Remaining, charge)
				require.Equal(t, d, l.Peek(l.Key("anna"), 5))
				require.Equal(t, want[1], l.Peek(l.Key("anna"), 1).Remaining)
				l.Refund(l.Key("anna"), 2)
				switch charge {
				case engine.ChargeNothing:
					require.Equal(t, uint64(5), l.Peek(l.Key("anna"), 1).Remaining)
				default:
					require.Equal(t, want[2], l.Peek(l.Key("anna"), 1).Remaining)
				}

				l.Take("berta", math.MaxUint64)
				left := uint64(10)
				if charge != engine.ChargeNothing {
					left = 0
				}
				require.Equal(t, left, l.Peek(l.Key("berta"), 1).Remaining, charge)
				require.True(t, l.Take("clara", 10).Allowed)
				for range 3 {
					require.False(t, l.Allow("clara"))
				}
				l.Refund(l.Key("clara"), 1)
				require.Equal(t, charge != engine.ChargePenalty, l.Allow("clara"), charge)
			}
		})
	}
}

// TestRefusalsThatCostByALateClock: with a late coarse clock, a request that should be admitted is not charged as a
// refusal.
func TestRefusalsThatCostByALateClock(t *testing.T) {
	for _, charge := range []engine.RefusalCharge{engine.ChargeTheRest, engine.ChargePenalty} {
		l, err := engine.New(engine.TokenBucket(engine.Per(1, time.Hour), 2), engine.MaxKeys(10), engine.ClockCoarse(),
			engine.ChargeRefusals(charge))
		require.NoError(t, err)
		require.True(t, l.Allow("anna"))
		require.True(t, l.Take("anna", 1).Allowed)
		require.False(t, l.Allow("anna"))
		require.False(t, l.Take("anna", 1).Allowed)
		require.Error(t, l.Wait(expired(), "anna", 1))
		_, _, err = l.Reserve(l.Key("anna"), 1, time.Minute)
		require.ErrorIs(t, err, engine.ErrTooLong)
		l.Close()
	}
}

func expired() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestReserveCostsNoPenalty(t *testing.T) {
	l, _ := limiterOf(t, engine.TokenBucket(engine.PerSecond(1), 2), engine.ChargeRefusals(engine.ChargePenalty))
	require.True(t, l.Take("anna", 2).Allowed)
	for want := time.Second; want < 4*time.Second; want += time.Second {
		_, delay, err := l.Reserve(l.Key("anna"), 1, time.Minute)
		require.NoError(t, err)
		require.Equal(t, want, delay)
	}
	_, _, err := l.Reserve(l.Key("anna"), 1, time.Second)
	require.ErrorIs(t, err, engine.ErrTooLong)
	require.Equal(t, 4*time.Second, l.Peek(l.Key("anna"), 1).RetryAfter)
}

// TestChargesAreExact (I2): every token of concurrent charges is either charged or reported as lost.
func TestChargesAreExact(t *testing.T) {
	for name, policy := range map[string]engine.Policy{
		"token bucket":   engine.TokenBucket(engine.Per(1000, time.Hour), 1000),
		"fixed window":   engine.FixedWindow(1000, time.Hour),
		"sliding window": engine.SlidingWindow(1000, time.Hour), "sliding log": engine.SlidingLog(1000, time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := limiterOf(t, policy)
			var all sync.WaitGroup
			var losses, sums [4]uint64
			for g := range 4 {
				all.Go(func() {
					for i := range uint64(50) {
						n := i%7 + uint64(g)
						_, lost := l.Charge(l.Key("anna"), n)
						sums[g], losses[g] = sums[g]+n, losses[g]+lost
					}
				})
			}
			all.Wait()
			sum := sums[0] + sums[1] + sums[2] + sums[3]
			require.Zero(t, losses)
			require.Less(t, sum, uint64(1000))
			require.Equal(t, 1000-sum, l.Peek(l.Key("anna"), 1).Remaining)
		})
	}
}

func TestChargeAllocatesNothing(t *testing.T) {
	for name, c := range quotasOf {
		l, _ := limiterOf(t, c.own, engine.ClockPrecise(), engine.ChargeRefusals(engine.ChargePenalty))
		k := l.Key("anna").With(quotaOf(t, l, c.other))
		assert.Zero(t, testalloc.PerCall(func() { l.Charge(l.Key("anna"), 1) }), name)
		assert.Zero(t, testalloc.PerCall(func() { l.Charge(k, 1) }), name)
		assert.Zero(t, testalloc.PerCall(func() { l.TakeKey(k, 7) }), name)
		i := uint64(0)
		assert.Zero(t, testalloc.PerCall(func() {
			i++
			l.Charge(l.KeyUint64(i).With(quotaOf(t, l, c.other)),
				1)
		}), name)
	}
}
