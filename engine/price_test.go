package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

var (
	perSecond100 = engine.TokenBucket(engine.PerSecond(100), 100)
	perSecond1   = engine.TokenBucket(engine.PerSecond(1), 100)
	perHour1     = engine.TokenBucket(engine.Per(1, time.Hour), 1)

	tiersOfPrices = []engine.Policy{
		perSecond100, perSecond1, perHour1, engine.TokenBucket(engine.PerSecond(7), 100),
		engine.TokenBucket(engine.Per(97, time.Hour), 100), engine.TokenBucket(engine.PerSecond(999), 100),
		engine.TokenBucket(engine.PerSecond(1), 2), engine.TokenBucket(engine.Per(10, time.Hour), 10),
		engine.TokenBucket(engine.PerSecond(1), 10), engine.TokenBucket(engine.Per(60, time.Hour), 60),
	}
)

// A pricedTable makes a limiter whose limits have several rates. Its function under returns the same key under a given
// limit.
type pricedTable func(t *testing.T, options ...engine.Option) (l *engine.Limiter, now *time.Time, under func(engine.Policy) engine.Key)

func priced(t *testing.T, options ...engine.Option) (l *engine.Limiter, now *time.Time, under func(engine.Policy) engine.Key) {
	l, now = limiterOf(t, engine.TokenBuckets(2*time.Hour), options...)
	return l, now, func(p engine.Policy) engine.Key { return l.Key("anna").With(quotaOf(t, l, p)) }
}

// forEachPriced runs a test with quotas only, with quotas next to a limit, and with tiers.
func forEachPriced(t *testing.T, test func(t *testing.T, priced pricedTable)) {
	t.Run("quotas", func(t *testing.T) { test(t, priced) })
	own := engine.TokenBucket(engine.Per(16, 15001*time.Nanosecond), 3)
	t.Run("quotas beside a limit", func(t *testing.T) {
		test(t, func(t *testing.T, options ...engine.Option) (*engine.Limiter, *time.Time, func(engine.Policy) engine.Key) {
			l, now := limiterOf(t, own, options...)
			return l, now, func(p engine.Policy) engine.Key { return l.Key("anna").With(quotaOf(t, l, p)) }
		})
	})
	t.Run("tiers", func(t *testing.T) {
		test(t, func(t *testing.T, options ...engine.Option) (*engine.Limiter, *time.Time, func(engine.Policy) engine.Key) {
			l, now := limiterOf(t, own, append(options, engine.Tiers(tiersOfPrices...))...)
			return l, now, func(p engine.Policy) engine.Key {
				tier := slices.Index(tiersOfPrices, p) + 1
				require.Positive(t, tier, p)
				return l.Key("anna").Tier(tier)
			}
		})
	})
}

// TestAQuotaKeepsTheTokensTaken (I1): a key that owes 100 tokens at 100/s also owes 100 tokens under a quota of 1/s.
func TestAQuotaKeepsTheTokensTaken(t *testing.T) { forEachPriced(t, testAQuotaKeepsTheTokensTaken) }

func testAQuotaKeepsTheTokensTaken(t *testing.T, priced pricedTable) {
	verbs := map[string]func(t *testing.T, l *engine.Limiter, k engine.Key) bool{
		"allow": func(_ *testing.T, l *engine.Limiter, k engine.Key) bool { return l.AllowKey(k) },
		"take":  func(_ *testing.T, l *engine.Limiter, k engine.Key) bool { return l.TakeKey(k, 1).Allowed },
		"peek":  func(_ *testing.T, l *engine.Limiter, k engine.Key) bool { return l.Peek(k, 1).Allowed },
		"hold": func(_ *testing.T, l *engine.Limiter, k engine.Key) bool {
			d, _ := l.Hold(k, 1)
			return d.Allowed
		},
		"receipt": func(_ *testing.T, l *engine.Limiter, k engine.Key) bool {
			d, _ := l.TakeReceipt(k, 1)
			return d.Allowed
		},
		"reserve": func(_ *testing.T, l *engine.Limiter, k engine.Key) bool {
			_, _, err := l.Reserve(k, 1, 0)
			return err == nil
		},
		"batch": func(t *testing.T, l *engine.Limiter, k engine.Key) bool {
			d := make([]engine.Decision, 1)
			require.NoError(t, l.TakeBatch([]engine.Key{k}, 1, d))
			return d[0].Allowed
		},
	}
	for name, verb := range verbs {
		t.Run(name, func(t *testing.T) {
			l, now, under := priced(t)
			require.True(t, l.TakeKey(under(perSecond100), 100).Allowed)
			assert.False(t, verb(t, l, under(perSecond1)))
			*now = now.Add(10*time.Millisecond - 1)
			assert.False(t, verb(t, l, under(perSecond1)), "a token comes back in 10 ms, as under 100/s")
			*now = now.Add(1)
			assert.True(t, verb(t, l, under(perSecond1)))
			*now = now.Add(10 * time.Millisecond)
			assert.Equal(t, name == "peek", verb(t, l, under(perSecond1)), "from now on it takes a second")
		})
	}
}

// TestAQuotaToAndFro (I1): however often a key changes its quota, it gets only what one bucket with the largest burst
// grants.
func TestAQuotaToAndFro(t *testing.T) { forEachPriced(t, testAQuotaToAndFro) }

func testAQuotaToAndFro(t *testing.T, priced pricedTable) {
	quotas := []engine.Policy{
		perSecond100, perSecond1, engine.TokenBucket(engine.PerSecond(7), 100),
		engine.TokenBucket(engine.Per(97, time.Hour), 100), engine.TokenBucket(engine.PerSecond(999), 100),
	}
	l, _, under := priced(t)
	for i := range 100 {
		k := under(quotas[i%len(quotas)])
		require.EqualValues(t, 100-i, l.Peek(k, 1).Remaining)
		require.True(t, l.TakeKey(k, 1).Allowed)
	}
	for range 1000 {
		for _, p := range quotas {
			require.False(t, l.AllowKey(under(p)))
		}
	}
}

// TestAQuotaThatIsRaised: a larger burst and a faster rate take effect at once.
func TestAQuotaThatIsRaised(t *testing.T) { forEachPriced(t, testAQuotaThatIsRaised) }

func testAQuotaThatIsRaised(t *testing.T, priced pricedTable) {
	l, now, under := priced(t)
	require.True(t, l.AllowKey(under(perHour1)))
	require.Equal(t, engine.Decision{Limit: 1, RetryAfter: time.Hour, ResetAfter: time.Hour}, l.Peek(under(perHour1), 1))
	d := l.TakeKey(under(perSecond100), 99)
	require.True(t, d.Allowed)
	require.Equal(t, time.Second, d.ResetAfter, "what was owed before comes back as fast")
	require.False(t, l.AllowKey(under(perSecond100)))
	*now = now.Add(time.Second)
	require.True(t, l.AllowKey(under(perHour1)), "all is back")

	other := l.Key("bob")
	l.TakeKey(other, 3) // takes nothing if all limits come with the calls
	before := l.Peek(other, 1)
	require.True(t, l.AllowKey(under(engine.TokenBucket(engine.PerSecond(1), 2))))
	require.Equal(t, before, l.Peek(other, 1), "another key")
}

// TestAQuotaThatIsLowered: a key that has taken more than its lower quota waits until the excess has come back.
func TestAQuotaThatIsLowered(t *testing.T) { forEachPriced(t, testAQuotaThatIsLowered) }

func testAQuotaThatIsLowered(t *testing.T, priced pricedTable) {
	l, now, under := priced(t)
	require.True(t, l.TakeKey(under(perSecond100), 50).Allowed)
	small := under(engine.TokenBucket(engine.Per(10, time.Hour), 10))
	require.Equal(t, engine.Decision{Limit: 10, RetryAfter: 410 * time.Millisecond, ResetAfter: 500 * time.Millisecond}, l.TakeKey(small, 1))
	*now = now.Add(410*time.Millisecond - 1)
	require.False(t, l.AllowKey(small))
	*now = now.Add(1)
	d := l.TakeKey(small, 1)
	require.True(t, d.Allowed)
	require.Equal(t, time.Hour, d.ResetAfter, "ten tokens at 10/h")
}

// TestReceiptsOfSeveralQuotas: after a change of the quota, a receipt gives back only tokens that cannot have come
// back.
func TestReceiptsOfSeveralQuotas(t *testing.T) { forEachPriced(t, testReceiptsOfSeveralQuotas) }

func testReceiptsOfSeveralQuotas(t *testing.T, priced pricedTable) {
	l, now, under := priced(t)
	_, first := l.TakeReceipt(under(perSecond100), 40)
	_, second := l.TakeReceipt(under(perSecond1), 20)
	first.Refund(30)
	require.EqualValues(t, 70, l.Peek(under(perSecond1), 1).Remaining)
	second.Refund(20)
	require.EqualValues(t, 90, l.Peek(under(perSecond1), 1).Remaining)
	first.Refund(10)
	require.EqualValues(t, 100, l.Peek(under(perSecond1), 1).Remaining)

	_, first = l.TakeReceipt(under(perSecond100), 40)
	require.True(t, l.TakeKey(under(perSecond1), 20).Allowed)
	*now = now.Add(100 * time.Millisecond)
	first.Refund(40)
	require.EqualValues(t, 70, l.Peek(under(perSecond1), 1).Remaining)

	d, hold := l.Hold(under(engine.TokenBucket(engine.Per(60, time.Hour), 60)), 10)
	require.True(t, d.Allowed)
	require.Zero(t, hold.Settle(25))
	require.EqualValues(t, 45, l.Peek(under(perSecond1), 1).Remaining)
}

// TestAQuotaWhileSomebodyWaits (I1): a key reserves tokens under one quota, and takes others under a faster quota. The
// sum of both is within the faster limit.
func TestAQuotaWhileSomebodyWaits(t *testing.T) { forEachPriced(t, testAQuotaWhileSomebodyWaits) }

func testAQuotaWhileSomebodyWaits(t *testing.T, priced pricedTable) {
	l, now, under := priced(t)
	slow := under(engine.TokenBucket(engine.PerSecond(1), 10))
	require.True(t, l.TakeKey(slow, 10).Allowed)
	_, delay, err := l.Reserve(slow, 5, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 5*time.Second, delay)
	fast := under(perSecond100)
	taken := uint64(0)
	for range 500 {
		*now = now.Add(10 * time.Millisecond)
		if l.AllowKey(fast) {
			taken++
		}
	}
	// In five seconds, a bucket of 100 tokens at 100/s may grant 600. The five reserved tokens are among these.
	require.LessOrEqual(t, taken+5, uint64(100+500))
	require.LessOrEqual(t, l.Peek(fast, 1).Remaining, uint64(100-5))
	require.False(t, l.TakeKey(slow, 6).Allowed)
}

// TestAQuotaByALateClock (I1, I8): late calls under a fast quota get no token a second time.
func TestAQuotaByALateClock(t *testing.T) { forEachPriced(t, testAQuotaByALateClock) }

func testAQuotaByALateClock(t *testing.T, priced pricedTable) {
	for _, ahead := range []bool{false, true} {
		l, now, under := priced(t)
		begin := *now
		require.True(t, l.TakeKey(under(perSecond100), 100).Allowed)
		if ahead {
			*now = begin.Add(500 * time.Millisecond)
			require.True(t, l.TakeAt(under(perSecond1), 1, begin.Add(time.Second)).Allowed)
		} else {
			*now = begin.Add(time.Second)
			require.True(t, l.AllowKey(under(perSecond1)))
		}
		*now = begin
		got := 0
		for l.AllowKey(under(perSecond100)) {
			got++
		}
		require.Less(t, got, 100, "in a second, after a hundred: 200 in all")
	}
}

// TestPricesFollowThePolicy: after a change of the tick or of a tier, keys owe the same number of tokens as before.
func TestPricesFollowThePolicy(t *testing.T) {
	l, _, under := priced(t, engine.Tiers(perSecond100))
	require.True(t, l.TakeKey(under(perSecond100), 40).Allowed)
	bob := l.Key("bob")
	require.True(t, l.TakeKey(bob.Tier(1), 40).Allowed)
	for _, longest := range []time.Duration{24 * time.Hour, 300 * time.Hour, 365 * 24 * time.Hour, 2 * time.Hour} {
		require.NoError(t, l.SetPolicy(engine.TokenBuckets(longest), perSecond1))
		require.InDelta(t, 60, l.Peek(under(perSecond1), 1).Remaining, 1, longest)
		require.InDelta(t, 60, l.Peek(bob.Tier(1), 1).Remaining, 1, longest)
		require.Equal(t, "40s", l.Peek(bob.Tier(1), 1).ResetAfter.Round(time.Second).String())
		require.NoError(t, l.SetPolicy(engine.TokenBuckets(longest), perSecond100))
	}
}

// TestOwedByQuotas: Owed counts in tokens of the quota of the take.
func TestOwedByQuotas(t *testing.T) {
	l, _, under := priced(t)
	for _, k := range []engine.Key{l.Key("anna"), under(perSecond1)} {
		n, _ := l.Owed(k)
		require.Zero(t, n)
	}
	require.True(t, l.TakeKey(under(perSecond100), 40).Allowed)
	for i, k := range []engine.Key{l.Key("anna"), under(perSecond1), under(perHour1), under(perSecond100)} {
		n, by := l.Owed(k)
		require.EqualValues(t, 40, n, fmt.Sprint(i))
		require.Equal(t, 400*time.Millisecond, l.Peek(by, 1).ResetAfter)
	}
}

// TestARefusedReservationGetsItsFasterPrice (R27): after a refused reservation under a faster tier, the debt comes back
// at the fast rate.
func TestARefusedReservationGetsItsFasterPrice(t *testing.T) {
	for name, ask := range map[string]func(l *engine.Limiter, k engine.Key) bool{
		"reserve": func(l *engine.Limiter, k engine.Key) bool {
			_, _, err := l.Reserve(k, 100, 900*time.Millisecond)
			return err == nil
		},
		"charge": func(l *engine.Limiter, k engine.Key) bool { _, lost := l.Charge(k, 1); return lost == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			slow := engine.Tiers(engine.TokenBucket(engine.Per(1, time.Hour), 100))
			l, now := limiterOf(t, perSecond100, slow, engine.MaxDebt(1))
			k := l.Key("k")
			require.True(t, l.TakeKey(k.Tier(1), 100).Allowed)
			require.False(t, ask(l, k))
			*now = now.Add(time.Second)
			require.True(t, ask(l, k))
		})
	}
}

// nearRoom is a limit whose full debt uses almost all room of a record.
var nearRoom = engine.TokenBucket(engine.Per(nearTokens, 1<<51-1<<24), nearTokens)

const nearTokens = 1 << 23

// TestADebtWithoutRoomAdmitsNothing (I1): if a record has no room for the debt of a key, the request is refused.
func TestADebtWithoutRoomAdmitsNothing(t *testing.T) {
	fast := engine.TokenBucket(engine.PerSecond(1_000_000), 2*nearTokens)
	for name, ask := range map[string]func(l *engine.Limiter, k engine.Key, ahead time.Time) bool{
		"take":   func(l *engine.Limiter, k engine.Key, ahead time.Time) bool { return l.TakeAt(k, 1, ahead).Allowed },
		"charge": func(l *engine.Limiter, k engine.Key, _ time.Time) bool { _, lost := l.Charge(k, 1); return lost == 0 },
		"reserve": func(l *engine.Limiter, k engine.Key, _ time.Time) bool {
			_, _, err := l.Reserve(k, 1, 24*time.Hour)
			return err == nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, now := limiterOf(t, engine.TokenBuckets(1<<51))
			k := l.Key("k")
			require.True(t, l.TakeKey(k.With(quotaOf(t, l, fast)), 2*nearTokens).Allowed)
			slow := k.With(quotaOf(t, l, nearRoom))
			assert.False(t, ask(l, slow, now.Add(time.Second)))
			assert.False(t, ask(l, slow, *now))
			*now = now.Add(2 * nearTokens * time.Microsecond)
			assert.True(t, l.TakeKey(slow, nearTokens).Allowed, "all has come back at the price at which it was taken")
		})
	}
}

// TestAFasterPriceKeepsWhatWasTakenAhead (I1): a refusal under a faster quota keeps all of a debt that was taken ahead
// of the clock.
func TestAFasterPriceKeepsWhatWasTakenAhead(t *testing.T) {
	l, now := limiterOf(t, engine.TokenBuckets(1<<51))
	k, ahead := l.Key("k"), now.Add(time.Second)
	require.True(t, l.TakeAt(k.With(quotaOf(t, l, nearRoom)), nearTokens, ahead).Allowed)
	faster := k.With(quotaOf(t, l, engine.TokenBucket(engine.Per(nearTokens+1, 1<<51-1<<24), nearTokens)))
	require.False(t, l.TakeKey(faster, 1).Allowed)
	assert.False(t, l.TakeAt(faster, 1, ahead).Allowed)
}

// TestAChangeKeepsWhatWasTakenAheadOfALongLimit (I1): a change of the policy keeps a debt above a record's usual room.
func TestAChangeKeepsWhatWasTakenAheadOfALongLimit(t *testing.T) {
	l, now := limiterOf(t, nearRoom)
	k, ahead := l.Key("k"), now.Add(time.Second)
	require.True(t, l.TakeAt(k, nearTokens, ahead).Allowed)
	require.False(t, l.TakeAt(k, 1, ahead).Allowed)
	for range 3 {
		require.NoError(t, l.SetPolicy(nearRoom))
		assert.False(t, l.TakeAt(k, 1, ahead).Allowed)
	}
}

// TestAChangeHasRoomForQuotas (I1): tokens of a quota that take weeks to come back still count after changes of the
// policy.
func TestAChangeHasRoomForQuotas(t *testing.T) {
	slow := engine.TokenBucket(engine.Per(1, time.Hour), 500)
	tenth := engine.TokenBucket(engine.PerSecond(10), 10)
	for name, c := range map[string]struct {
		from    engine.Policy
		to      []engine.Policy
		options []engine.Option
	}{
		"finer ticks":          {tenth, []engine.Policy{engine.TokenBucket(engine.PerSecond(3), 10)}, nil},
		"ticks of a sixteenth": {tenth, []engine.Policy{engine.TokenBucket(engine.Per(16, 15001*time.Nanosecond), 3)}, nil},
		"rounded ticks":        {tenth, []engine.Policy{engine.TokenBucket(engine.PerSecond(7.77), 10), engine.TokenBucket(engine.PerSecond(1e8), 10)}, nil},
		"beside tiers":         {tenth, []engine.Policy{engine.TokenBucket(engine.PerSecond(3), 10)}, []engine.Option{engine.Tiers(perSecond1)}},
		"a shorter longest":    {engine.TokenBuckets(600 * time.Hour), []engine.Policy{engine.TokenBuckets(time.Hour), engine.TokenBuckets(40 * time.Hour)}, nil},
		"from no limit":        {tenth, []engine.Policy{engine.Blocked(), engine.TokenBucket(engine.PerSecond(3), 10), engine.Unlimited()}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l, now := limiterOf(t, c.from, c.options...)
			last := make([]engine.Policy, len(c.options))
			for i := range last {
				last[i] = perSecond1
			}
			k := l.Key("k")
			require.True(t, l.TakeKey(k.With(quotaOf(t, l, slow)), 500).Allowed)
			for _, p := range append(c.to, c.from) {
				require.NoError(t, l.SetPolicy(p, last...))
				assert.False(t, l.TakeKey(k.With(quotaOf(t, l, slow)), 1).Allowed, p)
			}
			*now = now.Add(time.Hour + time.Microsecond)
			assert.True(t, l.TakeKey(k.With(quotaOf(t, l, slow)), 1).Allowed)
			assert.False(t, l.TakeKey(k.With(quotaOf(t, l, slow)), 1).Allowed)
		})
	}
	t.Run("a slower rate", func(t *testing.T) {
		now := time.Unix(1_800_000_000, 0)
		l, err := engine.New(engine.TokenBucket(engine.Per(1, time.Hour), 10), engine.MaxKeys(100), engine.ClockFunc(func() time.Time { return now }))
		require.NoError(t, err)
		defer l.Close()
		require.True(t, l.TakeKey(l.Key("k").With(quotaOf(t, l, slow)), 500).Allowed)
		require.NoError(t, l.SetPolicy(engine.TokenBucket(engine.Per(1, 24*time.Hour), 10)))
		require.NoError(t, l.SetPolicy(engine.TokenBucket(engine.Per(1, time.Hour), 10)))
		assert.False(t, l.TakeKey(l.Key("k").With(quotaOf(t, l, slow)), 1).Allowed)
		now = now.Add(time.Hour + time.Microsecond)
		assert.True(t, l.TakeKey(l.Key("k").With(quotaOf(t, l, slow)), 1).Allowed)
	})
}

// TestAChangeWithoutRoomForQuotas: SetPolicy refuses a policy whose records have no room for debts under quotas.
func TestAChangeWithoutRoomForQuotas(t *testing.T) {
	year := engine.TokenBucket(engine.Per(100, 365*24*time.Hour), 100)
	l, _ := limiterOf(t, engine.TokenBucket(engine.Per(1, 365*24*time.Hour), 2))
	k := l.Key("k")
	fast := engine.TokenBucket(engine.PerSecond(1e9), 10)
	require.NoError(t, l.SetPolicy(fast), "nobody has such a quota")
	require.NoError(t, l.SetPolicy(engine.TokenBucket(engine.Per(1, 365*24*time.Hour), 2)))
	require.True(t, l.TakeKey(k.With(quotaOf(t, l, year)), 100).Allowed)
	err := l.SetPolicy(fast)
	require.ErrorContains(t, err, "what a key still owes under a quota may take 8760h0m0")
	require.ErrorContains(t, err, "and a record has room for 625h29m59.8")
	require.ErrorContains(t, err, "want at most 71404104 tokens a second")
	require.False(t, l.TakeKey(k.With(quotaOf(t, l, year)), 1).Allowed)
	require.NoError(t, l.SetPolicy(engine.TokenBucket(engine.PerSecond(7e7), 10)))
	require.False(t, l.TakeKey(k.With(quotaOf(t, l, year)), 1).Allowed)
}

// TestAReceiptOfAVersionThatHasComeRound (R27): a receipt gives back its tokens only once, even if a record has the
// same version number again.
func TestAReceiptOfAVersionThatHasComeRound(t *testing.T) {
	for changes := 120; changes <= 136; changes += 2 {
		l, now, under := priced(t)
		quotas := []engine.Key{under(engine.TokenBucket(engine.PerSecond(100), 1000)), under(engine.TokenBucket(engine.PerSecond(200), 2000))}
		_, r := l.TakeReceipt(quotas[0], 400)
		for i := range changes {
			*now = now.Add(time.Millisecond)
			require.True(t, l.AllowKey(quotas[(i+1)%2]), i)
		}
		owed, _ := l.Owed(quotas[0])
		r.Refund(400)
		left, _ := l.Owed(quotas[0])
		assert.LessOrEqual(t, owed-left, uint64(400), "%d changes", changes)
		r.Refund(400)
		again, _ := l.Owed(quotas[0])
		assert.Equal(t, left, again, "%d changes", changes)
	}
}
