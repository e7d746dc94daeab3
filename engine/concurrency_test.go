package engine

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

	"github.com/weir-go/weir/internal/testalloc"
)

// TestNeverMoreInside: under concurrent takes and releases, a key never has more tokens in flight than its limit, and
// none at the end.
func TestNeverMoreInside(t *testing.T) {
	const keys, limit = 3, 4
	l, err := New(Concurrency(limit, time.Hour), MaxKeys(50), Tiers(Concurrency(2, time.Hour)))
	require.NoError(t, err)
	defer l.Close()
	var inside [keys]atomic.Int64
	var refused atomic.Int64
	var all sync.WaitGroup
	for seed := range uint64(12) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for range 3000 {
				i := random.IntN(keys)
				k := l.Key(fmt.Sprint(i))
				if random.IntN(4) == 0 {
					k = k.Tier(1)
				}
				n := 1 + random.Uint64N(2)
				d, e := l.TakeReceipt(k, n)
				if !d.Allowed {
					refused.Add(1)
					continue
				}
				most := inside[i].Add(int64(n))
				if most > limit {
					t.Errorf("%d are inside", most)
				}
				if random.IntN(2) == 0 {
					time.Sleep(time.Duration(random.Int64N(int64(20 * time.Microsecond))))
				}
				inside[i].Add(-int64(n))
				var releases sync.WaitGroup
				if random.IntN(20) == 0 {
					releases.Go(func() { e.Release() })
				}
				e.Release()
				releases.Wait()
				if random.IntN(500) == 0 {
					l.Sweep()
				}
			}
		})
	}
	all.Wait()
	assert.Positive(t, refused.Load())
	for i := range keys {
		assert.EqualValues(t, limit, l.Peek(l.Key(fmt.Sprint(i)), 0).Remaining)
	}
	l.Sweep()
	assert.Zero(t, l.Stats().Keys)
	assert.Zero(t, l.Stats().Forgotten)
}

// TestAnEntryThatNeverComesBack: a take that is never released is forgotten after one to two periods.
func TestAnEntryThatNeverComesBack(t *testing.T) {
	l, h := newLimiter(t, Concurrency(3, time.Minute), SweepInterval(24*time.Hour))
	d, lost := l.TakeReceipt(l.Key("k"), 2)
	assert.Equal(t, Decision{Allowed: true, Limit: 3, Remaining: 1, ResetAfter: 100 * time.Second}, d)
	h.advance(90 * time.Second)
	d, kept := l.TakeReceipt(l.Key("k"), 1)
	assert.Equal(t, Decision{Allowed: true, Limit: 3, ResetAfter: 70 * time.Second}, d)
	d, _ = l.TakeReceipt(l.Key("k"), 1)
	assert.Equal(t, Decision{Limit: 3, RetryAfter: 10 * time.Second, ResetAfter: 70 * time.Second}, d)
	h.advance(10*time.Second - 1)
	assert.False(t, l.Peek(l.Key("k"), 1).Allowed)
	h.advance(1)
	assert.Zero(t, l.Stats().Forgotten, "the record has not moved on")
	d, more := l.TakeReceipt(l.Key("k"), 2)
	assert.True(t, d.Allowed)
	assert.EqualValues(t, 2, l.Stats().Forgotten)
	lost.Release()
	assert.Zero(t, l.Peek(l.Key("k"), 1).Remaining, "what was forgotten is not given back again")
	kept.Release()
	assert.EqualValues(t, 1, l.Peek(l.Key("k"), 1).Remaining)
	h.advance(5 * time.Minute)
	l.Sweep()
	assert.EqualValues(t, 4, l.Stats().Forgotten)
	assert.Zero(t, l.Stats().Keys)
	more.Release()
	assert.EqualValues(t, 3, l.Peek(l.Key("k"), 1).Remaining)
	l.Sweep()
	assert.EqualValues(t, 4, l.Stats().Forgotten)
}

// TestAChangeOfTheLimitKeepsWhatIsInside: takes stay in flight through changes of the limit, and are released as
// before.
func TestAChangeOfTheLimitKeepsWhatIsInside(t *testing.T) {
	l, _ := newLimiter(t, Concurrency(5, time.Hour))
	d, many := l.TakeReceipt(l.Key("k"), 4)
	require.True(t, d.Allowed)
	d, one := l.TakeReceipt(l.Key("k"), 1)
	require.True(t, d.Allowed)
	require.NoError(t, l.SetPolicy(Concurrency(2, time.Hour)))
	assert.Equal(t, uint64(0), l.Peek(l.Key("k"), 1).Remaining)
	one.Release()
	assert.False(t, l.Allow("k"))
	many.Release()
	assert.EqualValues(t, 2, l.Peek(l.Key("k"), 1).Remaining, "all four have left a limit of two")
	for range 130 { // a version has seven bits
		d, e := l.TakeReceipt(l.Key("k"), 2)
		require.True(t, d.Allowed)
		require.NoError(t, l.SetPolicy(Concurrency(100, time.Hour)))
		require.NoError(t, l.SetPolicy(Concurrency(2, time.Hour)))
		require.False(t, l.Allow("k"))
		e.Release()
		require.EqualValues(t, 2, l.Peek(l.Key("k"), 1).Remaining)
	}
	for _, p := range []Policy{Unlimited(), Blocked()} {
		d, e := l.TakeReceipt(l.Key("k"), 1)
		require.True(t, d.Allowed)
		require.NoError(t, l.SetPolicy(p))
		d, free := l.TakeReceipt(l.Key("k"), 1)
		assert.Equal(t, p == Unlimited(), d.Allowed)
		e.Release()
		free.Release()
		require.NoError(t, l.SetPolicy(Concurrency(2, time.Hour)))
		assert.EqualValues(t, 2, l.Peek(l.Key("k"), 1).Remaining, p)
	}
	require.ErrorContains(t, l.SetPolicy(Concurrency(2, time.Minute)), "forgotten after 1m0s: want 1h0m0s, as at New")
	require.ErrorContains(t, CheckChange([]Policy{Concurrency(2, time.Hour)}, []Policy{Concurrency(2, time.Minute)}), "want 1h0m0s")
	require.NoError(t, CheckChange([]Policy{Concurrency(2, time.Hour)}, []Policy{Concurrency(1<<16-1, time.Hour)}))
}

// TestAResetForgetsWhatIsInside: the release of a take that a reset has forgotten does not release later takes.
func TestAResetForgetsWhatIsInside(t *testing.T) {
	l, _ := newLimiter(t, Concurrency(2, time.Hour))
	d, before := l.TakeReceipt(l.Key("k"), 2)
	require.True(t, d.Allowed)
	l.Reset(l.Key("k"))
	d, after := l.TakeReceipt(l.Key("k"), 2)
	require.True(t, d.Allowed)
	before.Release()
	assert.False(t, l.Allow("k"))
	after.Release()
	assert.EqualValues(t, 2, l.Peek(l.Key("k"), 1).Remaining)
}

// TestEvictionsInFlight: the key with the fewest tokens in flight is evicted for a new key, and Stats counts it.
func TestEvictionsInFlight(t *testing.T) {
	l, _ := newLimiter(t, Concurrency(2, time.Hour), MaxKeys(1), Shards(1))
	var entries []Receipt
	for i := range uint64(200) {
		d, e := l.TakeReceipt(l.KeyUint64(i), 1)
		require.True(t, d.Allowed)
		entries = append(entries, e)
	}
	s := l.Stats()
	assert.Positive(t, s.Evictions)
	assert.Equal(t, s.Evictions, s.Forgiven)
	assert.Zero(t, s.Forgotten)
	for i := range entries {
		entries[i].Release()
	}
	l.Sweep()
	assert.Zero(t, l.Stats().Keys)
}

func TestQuotasInFlight(t *testing.T) {
	l, _ := newLimiter(t, Concurrency(1, time.Hour))
	three, err := l.Quota(Concurrency(3, time.Hour))
	require.NoError(t, err)
	k := l.Key("k")
	d, e := l.TakeReceipt(k.With(three), 2)
	assert.Equal(t, []any{true, uint64(3), uint64(1)}, []any{d.Allowed, d.Limit, d.Remaining})
	assert.False(t, l.AllowKey(k))
	require.NoError(t, l.SetPolicy(Concurrency(2, time.Hour)))
	d, again := l.TakeReceipt(k.With(three), 1)
	assert.True(t, d.Allowed, "the quota is still good")
	e.Release()
	again.Release()
	assert.EqualValues(t, 2, l.Peek(k, 1).Remaining)
	_, err = l.Quota(Concurrency(3, time.Minute))
	require.Error(t, err)
}

// TestWhatALimitInFlightCannot: calls that make no sense for a limit in flight return errors.
func TestWhatALimitInFlightCannot(t *testing.T) {
	l, _ := newLimiter(t, Concurrency(1, time.Hour))
	_, err := l.ahead(l.Key("k"), 1, time.Minute)
	require.ErrorIs(t, err, errInFlight)
	require.ErrorIs(t, l.Wait(context.Background(), "k", 1), errInFlight)
	_, err = New(Concurrency(1, time.Hour), ChargeRefusals(ChargePenalty))
	require.ErrorContains(t, err, "engine: concurrency 1, forgotten after 1h0m0s: ChargeRefusals: what a refusal would take could not be given back")
	require.ErrorContains(t, Concurrency(1, time.Hour).Aligned().Check(), "only a fixed window can be aligned")
	d, _ := l.TakeReceipt(l.Key("k"), 2)
	assert.Equal(t, Never, d.RetryAfter)
}

// TestEntriesOfOtherPolicies: in all other algorithms, Release gives back the tokens of the take.
func TestEntriesOfOtherPolicies(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, _ *hand) {
		d, e := l.TakeReceipt(l.Key("k"), 40)
		assert.True(t, d.Allowed)
		assert.EqualValues(t, 60, l.Peek(l.Key("k"), 0).Remaining)
		e.Release()
		e.Release()
		assert.EqualValues(t, 100, l.Peek(l.Key("k"), 0).Remaining)
		var none Receipt
		none.Release()
	})
}

func TestEnteringDoesNotAllocate(t *testing.T) {
	l, _ := newLimiter(t, Concurrency(3, time.Hour))
	k := l.Key("k")
	assert.Zero(t, testalloc.PerCall(func() {
		_, e := l.TakeReceipt(k, 2)
		_, f := l.TakeReceipt(l.Key("some key of ordinary length"), 1)
		e.Release()
		f.Release()
	}))
}

// TestAllWithALimitInFlight: TakeAll takes from a limit in flight and from a rate, or from neither.
func TestAllWithALimitInFlight(t *testing.T) {
	inside, _ := newLimiter(t, Concurrency(1, time.Hour))
	rate, _ := newLimiter(t, FixedWindow(2, time.Hour))
	requests := []Request{{Limiter: inside, Key: inside.Key("k"), N: 1}, {Limiter: rate, Key: rate.Key("k"), N: 1}}
	answers := make([]Answer, 2)
	take := func() bool {
		allowed, err := TakeAll(requests, answers)
		require.NoError(t, err)
		return allowed
	}
	for range 2 {
		require.True(t, take())
		first := answers[0].Receipt
		require.False(t, take(), "one is inside")
		require.Equal(t, uint64(1), first.tableReceipt.Tokens())
		first.Refund(1)
	}
	require.False(t, take(), "the rate is used up")
	assert.EqualValues(t, 1, inside.Peek(inside.Key("k"), 1).Remaining, "so none is inside")
}

func BenchmarkEnterRelease(b *testing.B) {
	l, err := New(Concurrency(1000, time.Hour))
	require.NoError(b, err)
	defer l.Close()
	k := l.Key("k")
	for b.Loop() {
		_, e := l.TakeReceipt(k, 1)
		e.Release()
	}
}

func BenchmarkTakeRefund(b *testing.B) {
	l, err := New(FixedWindow(1000, time.Hour))
	require.NoError(b, err)
	defer l.Close()
	k := l.Key("k")
	l.TakeKey(k, 10)
	for b.Loop() {
		_, r := l.TakeReceipt(k, 1)
		r.Refund(1)
	}
}
