package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// aPrime is a rate per second at which a token does not take a whole number of nanoseconds.
const aPrime = 97

// TestWhatThereIsRoomForIsKept (I1): a record keeps all of the largest debt that the method fits accepts.
func TestWhatThereIsRoomForIsKept(t *testing.T) {
	from, err := atomicbucket.NewTicks(26 * 24 * time.Hour)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(28, 6))
	for _, burst := range []uint64{1, 1 << 20, 1 << 27, 1 << 28} {
		rounded, err := atomicbucket.NewTokenBucket(aPrime, time.Second, burst)
		require.NoError(t, err)
		to := rounded.Priced()
		require.False(t, to.Exact())
		most := capacity(to)
		assert.NoError(t, policySet{quotaDebt: most}.checkRoom(to))
		assert.ErrorContains(t, policySet{quotaDebt: most + 1}.checkRoom(to), "want at most")
		owed := min(most, uint64(atomicbucket.Most(&from)))
		for range 1000 {
			nanos := random.Int64N(1 << 62)
			state := atomicbucket.NewState(atomicbucket.Live, 0, from.Ticks(nanos)+owed)
			after := to.Convert(&from, state, nanos, atomicbucket.Change{})
			require.GreaterOrEqual(t, uint64(to.Wait(nanos, after-to.Ticks(nanos))), owed, "at %d", nanos)
		}
	}
}

// TestLongerTicksAreLongEnough (I1): ticks become as long as a debt under a quota needs, but not twice as long.
func TestLongerTicksAreLongEnough(t *testing.T) {
	base := TokenBucket(PerSecond(aPrime), 5)
	ps := newPolicySet(base, nil)
	algorithm, err := base.build(5)
	require.NoError(t, err)
	bucket := algorithm.(*atomicbucket.TokenBucket).Priced()
	ticks := bucket.Ticks(int64(time.Hour))
	second := uint64(time.Second)
	for _, c := range []struct {
		tokens uint64 // the debt, in tokens of the rate
		longer uint64 // how many times longer a tick must be
	}{
		{1<<27 - 1, 1}, {1 << 27, 2}, {1<<27 + 1, 2}, {1<<28 - 1, 2}, {1 << 28, 4}, {1<<28 + 1, 4},
	} {
		ps.quotaDebt = c.tokens * second / aPrime
		longer, err := ps.makeRoom(bucket)
		require.NoError(t, err, "%d tokens", c.tokens)
		require.GreaterOrEqual(t, capacity(longer), ps.quotaDebt)
		require.EqualValues(t, c.longer, (ticks+c.longer/2)/longer.Ticks(int64(time.Hour)), "%d tokens", c.tokens)
	}
}

// TestALimiterOfOneRateKeepsItsLimitBesideAQuota (I1): if a large quota makes the ticks longer, the limit of the
// limiter's own policy stays the same.
func TestALimiterOfOneRateKeepsItsLimitBesideAQuota(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 10))
	quota, err := l.Quota(TokenBucket(PerSecond(1), 1_000_000))
	require.NoError(t, err)
	k := l.Key("k")
	require.True(t, l.TakeKey(k.With(quota), 1_000_000).Allowed)
	slower := TokenBucket(Per(1, time.Hour), 10)
	require.NoError(t, l.SetPolicy(slower))
	require.EqualValues(t, 10, l.Take("new", 1).Limit)
	owed, _ := l.Owed(k)
	require.EqualValues(t, 1_000_000, owed)
	h.advance(999_990 * time.Hour)
	require.False(t, l.AllowKey(k))
	h.advance(time.Hour + time.Hour/1000)
	require.True(t, l.AllowKey(k))
}

// TestAQuotaOfMoreThanAYear: the longest ticks have room for a quota whose bucket takes longer to fill than any window
// lasts.
func TestAQuotaOfMoreThanAYear(t *testing.T) {
	l, h := newLimiter(t, TokenBuckets(atomicbucket.MaxWindow))
	day := 24 * time.Hour
	quota, err := l.Quota(TokenBucket(Per(1, 400*day), 1))
	require.NoError(t, err)
	k := l.Key("k")
	require.True(t, l.AllowKey(k.With(quota)))
	require.NoError(t, l.SetPolicy(TokenBuckets(time.Hour)))
	quota, err = l.Quota(TokenBucket(Per(1, 400*day), 1))
	require.NoError(t, err)
	h.advance(399 * day)
	require.False(t, l.AllowKey(k.With(quota)))
	h.advance(day + time.Second)
	require.True(t, l.AllowKey(k.With(quota)))
}

// TestTheRoomOfATierIsInItsOwnTokens: SetPolicy counts a possible debt under a tier at the tier's new price, not at the
// limiter's own.
func TestTheRoomOfATierIsInItsOwnTokens(t *testing.T) {
	own := TokenBucket(PerSecond(1), 1)
	cheap, dear := TokenBucket(PerSecond(1000), 1000), TokenBucket(Per(1000, time.Hour), 1000)
	l, _ := newLimiter(t, own, Tiers(cheap, dear))
	slower := TokenBucket(Per(1, time.Hour), 10)
	require.ErrorContains(t, l.SetPolicy(own, cheap, slower), "tier 2, token bucket 1/h burst 10: a key may still owe 1000 tokens")
	require.ErrorContains(t, l.SetPolicy(own, slower, dear), "tier 1, token bucket 1/h burst 10: a key may still owe 1000 tokens")
	require.NoError(t, l.SetPolicy(slower, cheap, dear), "the limiter's own ticks are others then")
}
