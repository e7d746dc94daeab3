package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestAnEstimateKeepsItsPartOfAToken (I1): a record has room for the token that rounding may add at a change of the
// length.
func TestAnEstimateKeepsItsPartOfAToken(t *testing.T) {
	minute := func(n uint64) Policy { return SlidingWindow(n, time.Minute) }
	for name, between := range map[string][]Policy{
		"at once": nil, "a lower limit": {minute(3)}, "blocked": {Blocked()}, "blocked and lower": {Blocked(), minute(3), Blocked()},
	} {
		for tier, policies := range [][2]func(p Policy) (Policy, []Policy){
			{func(p Policy) (Policy, []Policy) { return p, nil }},
			{func(p Policy) (Policy, []Policy) {
				own := minute(1)
				if !p.isFixed() {
					own = SlidingWindow(1, p.window)
				}
				return own, []Policy{p}
			}},
		} {
			own, tiers := policies[0](minute(7))
			l, h := newLimiter(t, own, Tiers(tiers...))
			k := l.Key("k").Tier(tier)
			require.Zero(t, time.Unix(1_700_000_000, 0).Add(40*time.Second).Unix()%60)
			h.advance(40 * time.Second)
			require.True(t, l.TakeKey(k, 7).Allowed)
			h.advance(63 * time.Second) // 7 * 57/60 are 6.65, and count as 6
			require.True(t, l.TakeKey(k, 1).Allowed)
			require.False(t, l.AllowKey(k))
			for _, p := range append(between, SlidingWindow(7, 2*time.Minute), SlidingWindow(7, 3*time.Minute)) {
				own, tiers := policies[0](p)
				require.NoError(t, l.SetPolicy(own, tiers...))
			}
			owed, _ := l.Owed(k)
			assert.EqualValues(t, 8, owed, "%s, tier %d", name, tier)
		}
	}
}

// TestTheRoomForAPartOfAToken: records need no room for an additional token if the length stays the same, or if the
// limit is the highest possible count.
func TestTheRoomForAPartOfAToken(t *testing.T) {
	most := SlidingWindow(atomicbucket.MaxCount, time.Hour)
	l, _ := newLimiter(t, most)
	for _, p := range []Policy{most, SlidingWindow(atomicbucket.MaxCount, 2*time.Hour), Blocked(), most} {
		require.NoError(t, l.SetPolicy(p))
	}
	// With a count of 12 bits, the window may be a microsecond; with 13 bits it may not.
	short := SlidingWindow(1<<12-1, time.Microsecond)
	_, err := New(SlidingWindow(1<<12, time.Microsecond))
	require.Error(t, err)
	l, _ = newLimiter(t, short)
	for _, p := range []Policy{short, SlidingWindow(5, time.Microsecond), Blocked(), Unlimited(), short} {
		require.NoError(t, l.SetPolicy(p))
	}
	l, _ = newLimiter(t, SlidingWindow(5, time.Millisecond))
	require.NoError(t, l.SetPolicy(short), "whose limit is above what is rounded up")
	require.True(t, l.Take("k", 1<<12-1).Allowed)
	require.Zero(t, left(l, "k"))
	l, _ = newLimiter(t, SlidingWindow(1<<12-2, 2*time.Microsecond))
	require.NoError(t, l.SetPolicy(SlidingWindow(1<<12-2, time.Microsecond)), "a token more has room")
}

// TestATierThatIsBlockedAsTheWindowChanges: a change that blocks a tier and changes the length forgets the tier's
// earlier numbers.
func TestATierThatIsBlockedAsTheWindowChanges(t *testing.T) {
	for _, with := range []func(n uint64, window time.Duration) Policy{FixedWindow, SlidingWindow, SlidingLog} {
		for _, fixed := range []Policy{Blocked(), Unlimited()} {
			l, _ := newLimiter(t, with(5, time.Minute), Tiers(with(7, time.Minute)))
			require.NoError(t, l.SetPolicy(with(5, 30*time.Second), fixed))
			require.Equal(t, fixed == Unlimited(), l.AllowKey(l.Key("k").Tier(1)))
			require.NoError(t, l.SetPolicy(with(5, 30*time.Second), with(7, 30*time.Second)))
			require.EqualValues(t, 7, l.Peek(l.Key("k").Tier(1), 0).Remaining)
		}
	}
}

// TestAllTiersAreBlocked (I1): if all policies are blocked, keys of a tier owe what they owed under the tier's numbers.
func TestAllTiersAreBlocked(t *testing.T) {
	hourly := func(n uint64) Policy { return TokenBucket(Per(float64(n), time.Hour), n) }
	for _, fixed := range []Policy{Blocked(), Unlimited()} {
		l, _ := newLimiter(t, hourly(10), Tiers(hourly(100)))
		k := l.Key("k").Tier(1)
		require.True(t, l.TakeKey(k, 70).Allowed)
		for range 2 {
			require.NoError(t, l.SetPolicy(fixed, fixed))
			owed, under := l.Owed(k)
			require.EqualValues(t, 70, owed)
			require.Equal(t, k, under)
		}
		require.NoError(t, l.SetPolicy(hourly(10), fixed))
		require.NoError(t, l.SetPolicy(hourly(10), hourly(200)))
		require.EqualValues(t, 130, l.Peek(k, 0).Remaining)
	}
}

// TestOwedUnderAQuotaOfAnotherRate: Owed returns a key with the price of the last take, whatever key its argument is.
func TestOwedUnderAQuotaOfAnotherRate(t *testing.T) {
	own := TokenBucket(PerSecond(1), 10)
	for name, options := range map[string][]Option{"quotas": {MaxQuota(10)}, "tiers": {Tiers(TokenBucket(Per(1, 7*time.Second), 10))}} {
		l, _ := newLimiter(t, own, options...)
		quota, err := l.Quota(TokenBucket(Per(1, 3*time.Second), 10))
		require.NoError(t, err)
		k := l.Key("k")
		require.True(t, l.TakeKey(k.With(quota), 4).Allowed)
		for _, asked := range []Key{k, k.Tier(1), k.With(quotaOf(t, l, Unlimited())), k.With(quotaOf(t, l, Blocked()))} {
			owed, under := l.Owed(asked)
			require.EqualValues(t, 4, owed, name)
			require.Equal(t, 12*time.Second, l.Peek(under, 0).ResetAfter, name)
			_, lost := l.Charge(under, 1)
			require.Zero(t, lost)
			require.Equal(t, 15*time.Second, l.Peek(under, 0).ResetAfter, name)
			l.Refund(under, 1)
		}
	}
}

func quotaOf(t *testing.T, l *Limiter, p Policy) Quota {
	q, err := l.Quota(p)
	require.NoError(t, err)
	return q
}

// TestOwedUnderAQuotaOfTheLimitersRate: after a take under a quota of the limiter's rate, Owed returns its argument
// unchanged.
func TestOwedUnderAQuotaOfTheLimitersRate(t *testing.T) {
	for _, options := range [][]Option{nil, {Tiers(TokenBucket(Per(1, 7*time.Second), 10))}} {
		l, _ := newLimiter(t, TokenBucket(PerSecond(1), 10), options...)
		k := l.Key("k")
		require.True(t, l.TakeKey(k.With(quotaOf(t, l, TokenBucket(PerSecond(1), 20))), 12).Allowed)
		for _, p := range []Policy{TokenBucket(PerSecond(1), 20), TokenBucket(PerSecond(1), 1), Unlimited(), Blocked()} {
			asked := k.With(quotaOf(t, l, p))
			owed, under := l.Owed(asked)
			require.EqualValues(t, 12, owed, "%v", p)
			require.Equal(t, asked, under)
		}
	}
}
