package engine_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testalloc"
)

// quotasOf has, for every algorithm, a policy for a limiter and a policy for a quota of 7 tokens.
var quotasOf = map[string]struct{ own, other engine.Policy }{
	"token buckets":  {engine.TokenBuckets(time.Hour), engine.TokenBucket(engine.Per(7, time.Minute), 7)},
	"token bucket":   {engine.TokenBucket(engine.Per(3, time.Minute), 3), engine.TokenBucket(engine.Per(7, time.Minute), 7)},
	"batch refill":   {engine.BatchRefill(3, time.Minute, 3), engine.BatchRefill(3, time.Minute, 7)},
	"fixed window":   {engine.FixedWindow(3, time.Minute), engine.FixedWindow(7, time.Minute)},
	"aligned window": {engine.FixedWindow(3, time.Minute).Aligned(), engine.FixedWindow(7, time.Minute).Aligned()},
	"sliding window": {engine.SlidingWindow(3, time.Minute), engine.SlidingWindow(7, time.Minute)},
	"sliding log":    {engine.SlidingLog(3, time.Minute), engine.SlidingLog(7, time.Minute)},
	"unlimited":      {engine.Unlimited(), engine.TokenBucket(engine.Per(7, time.Minute), 7)},
	"blocked":        {engine.Blocked(), engine.TokenBucket(engine.Per(7, time.Minute), 7)},
}

func limiterOf(t testing.TB, p engine.Policy, options ...engine.Option) (*engine.Limiter, *time.Time) {
	now := time.Unix(1_800_000_000, 0)
	options = append([]engine.Option{engine.MaxKeys(100), engine.MaxQuota(10), engine.ClockFunc(func() time.Time { return now })}, options...)
	l, err := engine.New(p, options...)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l, &now
}

func quotaOf(t testing.TB, l *engine.Limiter, p engine.Policy) engine.Quota {
	q, err := l.Quota(p)
	require.NoError(t, err)
	return q
}

// TestQuotaThroughEveryVerb (I1): a key has only one record, and every verb compares it with the limit of the call.
func TestQuotaThroughEveryVerb(t *testing.T) {
	for name, c := range quotasOf {
		t.Run(name, func(t *testing.T) {
			l, now := limiterOf(t, c.own)
			q := quotaOf(t, l, c.other)
			require.Equal(t, q, quotaOf(t, l, c.other), "quotas are comparable")
			k := l.Key("anna").With(q)

			require.Equal(t, uint64(7), l.Peek(k, 1).Limit)
			require.Equal(t, uint64(7), l.Peek(k, 1).Remaining)
			d := l.TakeKey(l.Key("anna").With(q), 2)
			require.True(t, d.Allowed)
			require.Equal(t, [2]uint64{7, 5}, [2]uint64{d.Limit, d.Remaining})
			require.True(t, l.AllowKey(l.Key("anna").With(q)))
			d, receipt := l.TakeReceipt(k, 1)
			require.Equal(t, uint64(3), d.Remaining)
			receipt.Refund(1)
			require.Equal(t, uint64(4), l.Peek(k, 1).Remaining)
			decisions := make([]engine.Decision, 2)
			require.NoError(t, l.TakeBatch([]engine.Key{k, k}, 1, decisions))
			require.Equal(t, uint64(2), decisions[1].Remaining)
			l.Refund(k, 1)
			answers := make([]engine.Answer, 2)
			_, err := engine.TakeAll([]engine.Request{{Limiter: l, Key: k, N: 1}}, answers)
			require.NoError(t, err)
			require.Equal(t, uint64(2), answers[0].Decision.Remaining)
			require.True(t, l.TakeAt(k, 1, *now).Allowed)
			require.NoError(t, l.WaitKey(context.Background(), k, 1))
			d = l.TakeKey(k, 1)
			require.False(t, d.Allowed)
			require.Equal(t, [2]uint64{7, 0}, [2]uint64{d.Limit, d.Remaining})
			require.False(t, l.AllowKey(k))
			require.Equal(t, engine.Never, l.TakeKey(k, 8).RetryAfter)

			// The key has only one record, so it has no tokens left under the limiter's own policy either.
			if own := c.own.Limit(); own > 0 && own < math.MaxUint64 {
				require.False(t, l.AllowKey(k.With(engine.Quota{})))
			}

			wait := d.RetryAfter
			require.Positive(t, wait)
			*now = now.Add(wait - 1)
			require.False(t, l.AllowKey(k))
			*now = now.Add(1)
			require.True(t, l.AllowKey(k))

			if _, _, err := l.Reserve(k, 1, time.Hour); err != nil {
				require.ErrorIs(t, err, engine.ErrNotTokenBucket)
			}
			l.Reset(k)
			require.Equal(t, uint64(7), l.Peek(k, 1).Remaining)
		})
	}
}

// TestQuotaOfAnother (I1): a quota of another limiter, or from before a change of the units, grants nothing.
func TestQuotaOfAnother(t *testing.T) {
	refusesAll := func(t *testing.T, l *engine.Limiter, k engine.Key) {
		t.Helper()
		for range 2 {
			require.False(t, l.AllowKey(k))
			require.Equal(t, engine.Decision{RetryAfter: engine.Never}, l.TakeKey(k, 1))
			require.Equal(t, engine.Decision{RetryAfter: engine.Never}, l.Peek(k, 1))
			require.Error(t, l.WaitKey(context.Background(), k, 1))
			l.Refund(k, 1)
			require.True(t, l.TakeKey(k, 0).Allowed)
			l.TakeKey(k.With(engine.Quota{}), 1)
		}
		_, _, err := l.Reserve(k, 1, engine.Never)
		require.Error(t, err)
	}
	for name, c := range quotasOf {
		l, _ := limiterOf(t, c.own)
		twin, _ := limiterOf(t, c.own)
		t.Run(name, func(t *testing.T) { refusesAll(t, l, l.Key("anna").With(quotaOf(t, twin, c.other))) })
	}
	t.Run("another rate", func(t *testing.T) {
		l, _ := limiterOf(t, engine.TokenBucket(engine.PerSecond(97), 5))
		k := l.Key("anna").With(quotaOf(t, l, engine.TokenBucket(engine.PerSecond(97), 7)))
		require.True(t, l.AllowKey(k))
		require.NoError(t, l.SetPolicy(engine.TokenBucket(engine.PerSecond(100), 5)))
		refusesAll(t, l, k)
	})
}

// TestQuotasLast: a quota from before a change of the policy stays valid if the units stay the same.
func TestQuotasLast(t *testing.T) {
	for name, c := range map[string]struct{ own, other, next engine.Policy }{
		"token buckets":  {engine.TokenBuckets(time.Hour), engine.TokenBucket(engine.Per(7, time.Minute), 7), engine.TokenBuckets(2 * time.Hour)},
		"another burst":  {engine.TokenBucket(engine.PerSecond(100), 5), engine.TokenBucket(engine.Per(7, time.Minute), 7), engine.TokenBucket(engine.PerSecond(100), 50)},
		"a lower limit":  {engine.FixedWindow(1000, time.Minute), engine.FixedWindow(7, time.Minute), engine.FixedWindow(5, time.Minute)},
		"another window": {engine.FixedWindow(5, time.Minute), engine.FixedWindow(7, time.Minute), engine.FixedWindow(6, time.Hour)},
		"a log":          {engine.SlidingLog(5, time.Minute), engine.SlidingLog(7, time.Minute), engine.SlidingLog(3, time.Minute)},
		"unlimited":      {engine.SlidingWindow(5, time.Minute), engine.SlidingWindow(7, time.Minute), engine.Unlimited()},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := limiterOf(t, c.own)
			k := l.Key("anna").With(quotaOf(t, l, c.other))
			require.Equal(t, uint64(6), l.TakeKey(k, 1).Remaining)
			require.NoError(t, l.SetPolicy(c.next))
			require.Equal(t, uint64(7), l.TakeKey(k, 1).Limit)
			require.NoError(t, l.SetPolicy(c.own))
			require.True(t, l.TakeKey(k, 4).Allowed)
		})
	}
}

// TestUnlimitedAndBlocked: as policies, tiers and quotas of every algorithm, Unlimited and Blocked leave no record.
func TestUnlimitedAndBlocked(t *testing.T) {
	all := engine.Decision{Allowed: true, Limit: math.MaxUint64, Remaining: math.MaxUint64}
	none := engine.Decision{RetryAfter: engine.Never}
	check := func(t *testing.T, l *engine.Limiter, unlimited, blocked engine.Key) {
		t.Helper()
		for _, n := range []uint64{1, math.MaxUint64} {
			require.Equal(t, all, l.TakeKey(unlimited, n))
			require.Equal(t, all, l.Peek(unlimited, n))
			require.Equal(t, none, l.TakeKey(blocked, n))
			require.Equal(t, none, l.Peek(blocked, n))
			require.NoError(t, l.WaitKey(context.Background(), unlimited, n))
			require.ErrorIs(t, l.WaitKey(context.Background(), blocked, n), engine.ErrNever)
		}
		require.True(t, l.AllowKey(unlimited))
		require.False(t, l.AllowKey(blocked))
		require.True(t, l.TakeKey(blocked, 0).Allowed)
		l.Refund(unlimited, 5)
		l.Refund(blocked, 5)
		d, receipt := l.TakeReceipt(unlimited, 5)
		require.Equal(t, all, d)
		receipt.Refund(5)
		allowed, err := engine.TakeAll([]engine.Request{{Limiter: l, Key: unlimited, N: 1}, {Limiter: l, Key: l.Key("other").With(engine.Quota{})}}, make([]engine.Answer, 2))
		require.NoError(t, err)
		require.True(t, allowed)
		l.Sweep()
		require.Zero(t, l.Stats().Keys)
	}
	for name, c := range quotasOf {
		t.Run(name, func(t *testing.T) {
			l, _ := limiterOf(t, c.own, engine.Tiers(engine.Unlimited(), engine.Blocked()))
			k := l.Key("anna")
			check(t, l, k.With(quotaOf(t, l, engine.Unlimited())), k.With(quotaOf(t, l, engine.Blocked())))
			check(t, l, k.Tier(1), k.Tier(2))
			require.Equal(t, engine.Unlimited(), l.Policy(1))

			q := quotaOf(t, l, c.other)
			require.True(t, l.TakeKey(l.Key("anna").With(q), 5).Allowed)
			require.NoError(t, l.SetPolicy(engine.Unlimited(), engine.Unlimited(), c.other))
			require.Equal(t, all, l.TakeKey(k, 9))
			require.NoError(t, l.SetPolicy(engine.Blocked(), engine.Unlimited(), c.other))
			require.Equal(t, none, l.TakeKey(k, 1))
			require.False(t, l.AllowKey(k))
			require.Equal(t, uint64(2), l.Peek(k.With(q), 0).Remaining)
			require.Equal(t, uint64(2), l.Peek(k.Tier(2), 0).Remaining)
			require.NoError(t, l.SetPolicy(c.own, engine.Unlimited(), engine.Blocked()))
			require.Equal(t, uint64(2), l.Peek(k.With(q), 0).Remaining)
		})
	}
	require.Equal(t, uint64(math.MaxUint64), engine.Unlimited().Limit())
	require.Zero(t, engine.Blocked().Limit())
	for _, p := range []engine.Policy{engine.Unlimited(), engine.Blocked(), engine.TokenBuckets(time.Hour)} {
		require.NoError(t, p.Check())
		require.Zero(t, p.Window())
		require.Equal(t, engine.Rate{}, p.Rate())
		require.NotEqual(t, "no policy", p.String())
	}
}

// TestQuotaBadInput: the error of Quota names a number that does not fit, and the range.
func TestQuotaBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		own, quota engine.Policy
		want       string
	}{
		"zero":             {engine.TokenBuckets(time.Hour), engine.Policy{}, "engine: Quota(no policy): the limiter's policy is token buckets of up to 1h0m0s: want that with another limit"},
		"no tokens":        {engine.TokenBuckets(time.Hour), engine.TokenBucket(engine.PerSecond(1), 0), "burst of 0 tokens: want 1 to 4294967296"},
		"no rate":          {engine.TokenBuckets(time.Hour), engine.TokenBucket(engine.Rate{}, 1), "the number of tokens must be above 0"},
		"negative":         {engine.TokenBuckets(time.Hour), engine.TokenBucket(engine.Per(1, -1), 1), "the period must be at least 1ns"},
		"not a number":     {engine.TokenBuckets(time.Hour), engine.TokenBucket(engine.PerSecond(math.NaN()), 1), "the number of tokens must be above 0 and finite"},
		"too fast":         {engine.TokenBuckets(time.Hour), engine.TokenBucket(engine.PerSecond(2e9), 1), "want at most 1000000000 tokens a second"},
		"too coarse":       {engine.TokenBuckets(time.Hour), engine.TokenBucket(engine.PerSecond(3e8), 1), "slower by more than a thousandth"},
		"too long":         {engine.TokenBuckets(39 * time.Hour), engine.TokenBucket(engine.Per(1, time.Hour), 41), "burst of 41 tokens at 1 tokens every 1h0m0s: on the table's clock, whose tick is 0.063 ns, want at most 39"},
		"2^64-1":           {engine.TokenBuckets(time.Hour), engine.TokenBucket(engine.PerSecond(1), math.MaxUint64), "burst of 18446744073709551615 tokens"},
		"another kind":     {engine.TokenBuckets(time.Hour), engine.FixedWindow(1, time.Hour), "engine: Quota(fixed window 1/1h0m0s): the limiter's policy is token buckets"},
		"aligned":          {engine.TokenBuckets(time.Hour), engine.TokenBucket(engine.PerSecond(1), 1).Aligned(), "want that with another limit"},
		"itself":           {engine.TokenBuckets(time.Hour), engine.TokenBuckets(time.Hour), "want that with another limit"},
		"another window":   {engine.FixedWindow(3, time.Hour), engine.FixedWindow(4, time.Minute), "the limiter's policy is fixed window 3/1h0m0s"},
		"a bucket of one":  {engine.FixedWindow(3, time.Hour), engine.TokenBucket(engine.PerSecond(1), 1), "the limiter's policy is fixed window 3/1h0m0s"},
		"no batches":       {engine.BatchRefill(3, time.Hour, 3), engine.TokenBucket(engine.PerSecond(1), 1), "the limiter's policy is batch refill"},
		"a window of 0":    {engine.FixedWindow(3, time.Hour), engine.FixedWindow(0, time.Hour), "limit of 0 tokens: this limiter has room for 1 to 15"},
		"a window of much": {engine.FixedWindow(3, time.Hour), engine.FixedWindow(16, time.Hour), "limit of 16 tokens: this limiter has room for 1 to 15 (engine.MaxQuota)"},
		"a log of much":    {engine.SlidingLog(3, time.Hour), engine.SlidingLog(11, time.Hour), "limit of 11 tokens: this limiter has room for 1 to 10"},
		"a batch of much":  {engine.BatchRefill(3, time.Hour, 3), engine.BatchRefill(3, time.Hour, 1<<32+1), "limit of 4294967297 tokens: this limiter has room for 1 to 4294967296"},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := limiterOf(t, c.own)
			q, err := l.Quota(c.quota)
			require.ErrorContains(t, err, c.want)
			require.Zero(t, q)
		})
	}
	for _, c := range []struct{ own, most engine.Policy }{
		{engine.FixedWindow(3, time.Hour), engine.FixedWindow(15, time.Hour)},
		{engine.SlidingLog(3, time.Hour), engine.SlidingLog(10, time.Hour)},
		{engine.BatchRefill(3, time.Hour, 3), engine.BatchRefill(3, time.Hour, 1<<32)},
	} {
		l, _ := limiterOf(t, c.own)
		_, err := l.Quota(c.most)
		require.NoError(t, err, c.most)
	}
	for _, longest := range []time.Duration{-1, 0, 366 * 24 * time.Hour} {
		_, err := engine.New(engine.TokenBuckets(longest))
		require.ErrorContains(t, err, "want 1ns to 8760h0m0s")
	}
	for _, n := range []uint64{0, 1<<32 + 1, math.MaxUint64} {
		_, err := engine.New(engine.FixedWindow(1, time.Hour), engine.MaxQuota(n))
		require.ErrorContains(t, err, fmt.Sprintf("engine: MaxQuota(%d): want 1 to 4294967296", n))
	}
	_, err := engine.New(engine.FixedWindow(1, time.Microsecond), engine.MaxQuota(1<<32))
	require.ErrorContains(t, err, "does not fit into a word")

	l, _ := limiterOf(t, engine.TokenBuckets(time.Hour))
	require.Error(t, l.SetPolicy(engine.TokenBucket(engine.PerSecond(1), 1)))
	l, _ = limiterOf(t, engine.TokenBucket(engine.PerSecond(1), 1))
	require.Error(t, l.SetPolicy(engine.TokenBuckets(time.Hour)))
	l, _ = limiterOf(t, engine.Unlimited())
	require.Error(t, l.SetPolicy(engine.FixedWindow(1, time.Hour)))
	require.NoError(t, l.SetPolicy(engine.TokenBuckets(365*24*time.Hour)))
	require.NoError(t, l.SetPolicy(engine.TokenBuckets(time.Hour)))
}

// TestTokenBucketsNeedAQuota: a call without a quota, or for a tier that does not exist, is refused.
func TestTokenBucketsNeedAQuota(t *testing.T) {
	l, _ := limiterOf(t, engine.TokenBuckets(time.Hour), engine.Tiers(engine.TokenBucket(engine.Per(3, time.Minute), 3)))
	require.False(t, l.Allow("anna"))
	require.Equal(t, engine.Decision{RetryAfter: engine.Never}, l.Take("anna", 1))
	require.True(t, l.AllowKey(l.Key("anna").Tier(1)))
	require.False(t, l.AllowKey(l.Key("anna").Tier(2)))
}

// TestSetPolicyOfTokenBucketsKeepsTime: if the tick changes, a debt still takes the same time to come back.
func TestSetPolicyOfTokenBucketsKeepsTime(t *testing.T) {
	l, _ := limiterOf(t, engine.TokenBuckets(time.Hour))
	p := engine.TokenBucket(engine.Per(60, time.Minute), 60)
	require.True(t, l.TakeKey(l.Key("anna").With(quotaOf(t, l, p)), 40).Allowed)
	for _, longest := range []time.Duration{24 * time.Hour, 300 * time.Hour, 365 * 24 * time.Hour, time.Hour} {
		require.NoError(t, l.SetPolicy(engine.TokenBuckets(longest)))
		d := l.Peek(l.Key("anna").With(quotaOf(t, l, p)), 1)
		require.InDelta(t, 40*time.Second, d.ResetAfter, 100, longest)
	}
}

func TestQuotaAllocatesNothing(t *testing.T) {
	for name, c := range quotasOf {
		l, _ := limiterOf(t, c.own, engine.ClockPrecise())
		q := quotaOf(t, l, c.other)
		k := l.Key("anna").With(q)
		keys, decisions := []engine.Key{k, k.With(engine.Quota{})}, make([]engine.Decision, 2)
		requests, answers := []engine.Request{{Limiter: l, Key: k, N: 1}}, make([]engine.Answer, 1)
		for verb, f := range map[string]func(){
			"Quota":       func() { _, _ = l.Quota(c.other) },
			"Unlimited":   func() { _, _ = l.Quota(engine.Unlimited()) },
			"TakeKey":     func() { l.TakeKey(l.Key("anna").With(q), 1) },
			"AllowKey":    func() { l.AllowKey(l.Key("anna").With(q)) },
			"Peek":        func() { l.Peek(k, 1) },
			"TakeReceipt": func() { _, r := l.TakeReceipt(k, 1); r.Refund(1) },
			"TakeBatch":   func() { _ = l.TakeBatch(keys, 1, decisions) },
			"TakeAll":     func() { _, _ = engine.TakeAll(requests, answers) },
		} {
			assert.Zero(t, testalloc.PerCall(f), "%s: %s", name, verb)
		}
	}
	l, _ := limiterOf(t, engine.TokenBuckets(time.Hour))
	assert.Zero(t, testalloc.PerCall(func() { _, _ = l.Quota(engine.TokenBucket(engine.Per(0.125, time.Hour), 1)) }))
}
