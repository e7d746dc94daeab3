package redislimit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

func (l *timed) quota(p engine.Policy) Quota {
	q, err := l.Quota(p)
	require.NoError(l.t, err)
	return q
}

// Take, Charge, Refund and Peek under random quotas decide as package engine does.
func TestQuotasAreThoseOfTheEngine(t *testing.T) {
	for _, refusals := range []engine.RefusalCharge{engine.ChargeNothing, engine.ChargeTheRest, engine.ChargePenalty} {
		base := engine.TokenBuckets(time.Minute)
		l := newTimed(t, base, MaxDebt(10), ChargeRefusals(refusals), TrustRefusals(0))
		local, err := engine.New(base, engine.ClockFunc(func() time.Time { return time.Unix(0, l.nanos.Load()) }), engine.ChargeRefusals(refusals))
		require.NoError(t, err)
		defer local.Close()
		policies := []engine.Policy{
			engine.TokenBucket(engine.PerSecond(10), 100), engine.TokenBucket(engine.PerSecond(100), 200),
			engine.TokenBucket(engine.Per(10, time.Minute), 5), engine.Unlimited(), engine.Blocked(), base,
		}
		random := rand.New(rand.NewPCG(1, uint64(refusals)))
		allowed := 0
		asks := 3000
		if testing.Short() {
			asks = 500
		}
		for i := range asks {
			policy := policies[random.IntN(len(policies))]
			q := l.quota(policy)
			var of engine.Quota // the zero Quota stands for the limiter's own policy, which grants nothing
			if policy != base {
				of, err = local.Quota(policy)
				require.NoError(t, err)
			}
			key, n := local.Key("k").With(of), 1+random.Uint64N(min(policy.Limit(), 10)+2)
			if random.IntN(3) == 0 {
				l.after(time.Duration(random.Int64N(int64(time.Second/time.Microsecond))) * time.Microsecond)
			}
			var want, got engine.Decision
			switch random.IntN(8) {
			case 0:
				want, _ = local.Charge(key, n)
				got, err = q.Charge(t.Context(), "k", n)
			case 1:
				want = local.Peek(key, n)
				got, err = q.Peek(t.Context(), "k", n)
			default:
				want = local.TakeKey(key, n)
				got, err = q.Take(t.Context(), "k", n)
				if n > policy.Limit() && refusals == engine.ChargeNothing {
					want.Remaining = 0
				}
			}
			require.NoError(t, err)
			require.Equal(t, want.Allowed, got.Allowed, "%d: %v, %d tokens", i, policy, n)
			require.Equal(t, want.Remaining, got.Remaining, "%d: %v, %d tokens", i, policy, n)
			require.Equal(t, want.Limit, got.Limit, "%d: %v, %d tokens", i, policy, n)
			if !want.Allowed && want.RetryAfter != engine.Never {
				require.InDelta(t, want.RetryAfter, got.RetryAfter, float64(time.Microsecond), "%d: %v, %d tokens", i, policy, n)
			}
			if got.Allowed {
				allowed++
			}
		}
		assert.Greater(t, allowed, asks/10)
	}
}

// Two quotas of a key share the key's debt, counted in tokens.
func TestQuotasOfAKeyShareItsDebt(t *testing.T) {
	for _, test := range []struct {
		own, large, small engine.Policy
		left              uint64 // what the small quota has left
		options           []Option
	}{
		{engine.TokenBuckets(time.Hour), engine.TokenBucket(engine.Per(60, time.Minute), 60), engine.TokenBucket(engine.Per(6, time.Minute), 7), 2, nil},
		{engine.TokenBucket(engine.Per(60, time.Minute), 60), engine.TokenBucket(engine.Per(60, time.Minute), 60), engine.TokenBucket(engine.Per(60, time.Minute), 7), 2, nil},
		{engine.FixedWindow(8, time.Hour), engine.FixedWindow(8, time.Hour), engine.FixedWindow(6, time.Hour), 1, nil},
		{engine.FixedWindow(8, time.Hour), engine.FixedWindow(60, time.Hour), engine.FixedWindow(6, time.Hour), 1, []Option{MaxQuota(60)}},
		{engine.CalendarWindow(8, engine.Day, time.UTC), engine.CalendarWindow(60, engine.Day, time.UTC), engine.CalendarWindow(6, engine.Day, time.UTC), 1, []Option{MaxQuota(60)}},
		{engine.SlidingWindow(8, time.Hour), engine.SlidingWindow(60, time.Hour), engine.SlidingWindow(6, time.Hour), 1, []Option{MaxQuota(60)}},
		{engine.SlidingLog(8, time.Hour), engine.SlidingLog(60, time.Hour), engine.SlidingLog(6, time.Hour), 1, []Option{MaxQuota(60)}},
	} {
		l := newTimed(t, test.own, append(test.options, InMode(Strict))...)
		large, small := l.quota(test.large), l.quota(test.small)
		d, err := large.Take(t.Context(), "k", 5)
		require.NoError(t, err)
		assert.True(t, d.Allowed)
		assert.EqualValues(t, test.large.Limit(), d.Limit)
		assert.EqualValues(t, test.large.Limit()-5, d.Remaining)
		d, err = small.Take(t.Context(), "k", test.left+1)
		require.NoError(t, err)
		assert.False(t, d.Allowed, "%v", test.small)
		assert.EqualValues(t, test.left, d.Remaining, "%v", test.small)
		d, err = large.Take(t.Context(), "k", test.left+1) // not refused by small's refusal
		require.NoError(t, err)
		assert.Equal(t, test.left+6 <= test.large.Limit(), d.Allowed, "%v", test.large)
		require.NoError(t, large.Refund(t.Context(), "k", test.left+1))
		d, err = small.Take(t.Context(), "k", test.left)
		require.NoError(t, err)
		assert.True(t, d.Allowed, "%v", test.small)
	}
}

func TestQuotasThatCannotBe(t *testing.T) {
	window := engine.FixedWindow(10, time.Second)
	daily := engine.CalendarWindow(10, engine.Day, time.UTC)
	for _, test := range []struct {
		own     engine.Policy
		options []Option
		quota   engine.Policy
		says    string
	}{
		{engine.TokenBucket(engine.PerSecond(1000), 1000), nil, engine.TokenBucket(engine.PerSecond(10), 10), "the limiter is leased, and the store decides about quotas: want InMode(Strict)"},
		{engine.TokenBucket(engine.PerSecond(1), 10), nil, engine.TokenBucket(engine.PerSecond(1), 11), "it fills in 11s: want at most the 10s of token bucket 1/s burst 10"},
		{engine.TokenBucket(engine.PerSecond(1), 10), nil, engine.TokenBucket(engine.PerSecond(1), 0), "limit of 0 tokens"},
		{engine.TokenBucket(engine.PerSecond(1), 10), nil, window, "the limiter's policy is token bucket 1/s burst 10: want the same policy with other numbers"},
		{engine.TokenBucket(engine.PerSecond(1), 10), nil, engine.Policy{}, "want the same policy with other numbers"},
		{engine.TokenBuckets(365 * 24 * time.Hour), nil, engine.TokenBucket(engine.PerSecond(3e5), 10), "to within a thousandth"},
		{engine.TokenBucket(engine.PerSecond(10), 10), nil, engine.TokenBucket(engine.PerSecond(9), 9), "rate 9/s: the limiter's is 10/s: want that, or a limiter of engine.TokenBuckets"},
		{engine.TokenBucket(engine.PerSecond(10), 10), nil, engine.TokenBucket(engine.PerSecond(-1), 10), "above 0"},
		{engine.TokenBuckets(time.Minute), nil, engine.TokenBuckets(time.Second), "want the same policy with other numbers"},
		{window, nil, engine.FixedWindow(11, time.Second), "limit of 11 tokens: this limiter has room for 1 to 10 (redislimit.MaxQuota)"},
		{window, []Option{MaxQuota(11)}, engine.FixedWindow(11, time.Minute), "want the same policy with other numbers"},
		{window, []Option{MaxQuota(11)}, engine.FixedWindow(11, time.Second).Aligned(), "want the same policy with other numbers"},
		{window, []Option{MaxQuota(11)}, engine.FixedWindow(12, time.Second), "1 to 11"},
		{daily, nil, engine.CalendarWindow(5, engine.Week, time.UTC), "want the same policy with other numbers"},
		{daily, nil, engine.CalendarWindow(5, engine.Day, time.FixedZone("", 3600)), "want the same policy with other numbers"},
		{daily, nil, engine.FixedWindow(5, 24*time.Hour).Aligned(), "want the same policy with other numbers"},
		{engine.FixedWindow(5, 24*time.Hour).Aligned(), nil, daily, "want the same policy with other numbers"},
		{daily, nil, engine.CalendarWindow(11, engine.Day, time.UTC), "1 to 10"},
	} {
		_, err := newTimed(t, test.own, test.options...).Quota(test.quota)
		assert.ErrorContains(t, err, test.says, "%v of %v", test.quota, test.own)
	}
	var none Quota
	_, err := none.Take(t.Context(), "k", 1)
	assert.ErrorContains(t, err, "a zero Quota")
	assert.Error(t, none.Refund(t.Context(), "k", 1))
	for says, check := range map[string]error{
		"MaxQuota is of windows and logs":                                                  Check("n", engine.TokenBuckets(time.Minute), MaxQuota(5)),
		"MaxQuota(16777216): want at most 16777215":                                        Check("n", engine.SlidingWindow(1, time.Second), MaxQuota(1<<24)),
		"MaxQuota(0): want 1 to 2^32":                                                      Check("n", window, MaxQuota(0)),
		"MaxDebt(2): want 3 limits":                                                        Check("n", window, MaxDebt(2)),
		"MaxDebt(31): want 3 limits, because the shares of nodes may owe so much, to 30":   Check("n", engine.FixedWindow(1, 365*24*time.Hour), MaxDebt(31)),
		"MaxDebt(820): want 2 limits, because the shares of nodes may owe so much, to 819": Check("n", engine.SlidingLog(10, time.Second), MaxDebt(820)),
		"MaxDebt(18446744073709551615): want 3":                                            Check("n", window, MaxDebt(math.MaxUint64)),
		"ChargeRefusals(3)":                                                                Check("n", window, ChargeRefusals(3)),
		"buckets that fill within 0s":                                                      Check("n", engine.TokenBuckets(0)),
		"want InMode(Strict) or Auto, not Leased":                                          Check("n", engine.TokenBuckets(time.Minute), InMode(Leased)),
		"it has no numbers of its own":                                                     Check("n", engine.Unlimited()),
	} {
		assert.ErrorContains(t, check, says)
	}
	assert.NoError(t, Check("n", engine.FixedWindow(1, 365*24*time.Hour), MaxDebt(30)))
	assert.NoError(t, Check("n", engine.TokenBucket(engine.PerSecond(1000), 1000), ChargeRefusals(engine.ChargePenalty)))
}

// All quotas of a key share one state, so the store has only one name for the key.
func TestQuotasHaveOneState(t *testing.T) {
	l := newTimed(t, engine.TokenBuckets(time.Minute))
	_, err := l.quota(engine.TokenBucket(engine.PerSecond(10), 10)).Take(t.Context(), "k", 1)
	require.NoError(t, err)
	_, err = l.quota(engine.TokenBucket(engine.PerSecond(20), 10)).Take(t.Context(), "k", 1)
	require.NoError(t, err)
	names := 0
	for _, name := range l.server.Keys() {
		if name[:6] == "weir:{" {
			names++
		}
	}
	assert.Equal(t, 1, names)
	d, err := l.Take(t.Context(), "k", 1)
	require.NoError(t, err)
	assert.Equal(t, engine.Decision{RetryAfter: engine.Never}, d, "without a quota it has nothing")
	assert.Zero(t, l.Bound(time.Second))
}

// A key may owe MaxDebt by charges, and passes again later.
func TestCharge(t *testing.T) {
	for _, policy := range []engine.Policy{engine.TokenBucket(engine.PerSecond(1), 10), engine.FixedWindow(10, 10*time.Second), engine.SlidingWindow(10, 10*time.Second)} {
		l := newTimed(t, policy, MaxDebt(5))
		d, err := l.Charge(t.Context(), "k", 3)
		require.NoError(t, err)
		assert.True(t, d.Allowed)
		assert.EqualValues(t, 7, d.Remaining)
		d, err = l.Charge(t.Context(), "k", math.MaxUint64)
		require.NoError(t, err)
		assert.False(t, d.Allowed)
		assert.Zero(t, d.Remaining)
		assert.Greater(t, d.RetryAfter, 30*time.Second, "%v: five limits of 10 s", policy)
		l.after(d.RetryAfter - time.Microsecond)
		assert.False(t, l.take(1).Allowed, "%v", policy)
		l.after(time.Second)
		assert.True(t, l.take(1).Allowed, "%v", policy)
		d, err = l.Charge(t.Context(), "fresh", 0)
		require.NoError(t, err)
		assert.EqualValues(t, 10, d.Remaining)
	}
}

// A refusal takes the available or the requested tokens.
func TestRefusalsThatAreCharged(t *testing.T) {
	l := newTimed(t, engine.TokenBucket(engine.PerSecond(1), 10), ChargeRefusals(engine.ChargeTheRest))
	require.True(t, l.take(4).Allowed)
	d := l.take(7)
	assert.False(t, d.Allowed)
	assert.Zero(t, d.Remaining)
	assert.Equal(t, 7*time.Second, d.RetryAfter)
	l.after(time.Second)
	assert.True(t, l.take(1).Allowed)
	l.after(5 * time.Second)
	assert.Equal(t, engine.Never, l.take(11).RetryAfter)
	assert.False(t, l.take(1).Allowed, "it took the rest")

	l = newTimed(t, engine.TokenBucket(engine.PerSecond(1), 10), ChargeRefusals(engine.ChargePenalty))
	require.True(t, l.take(10).Allowed)
	for i := range 5 {
		assert.Equal(t, time.Duration(2*i+4)*time.Second, l.take(2).RetryAfter)
	}
	for range 100 {
		l.take(2)
	}
	assert.Equal(t, 22*time.Second, l.take(2).RetryAfter, "three limits are the most")
}
