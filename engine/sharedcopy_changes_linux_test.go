package engine

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// copied returns a limiter of a copy of the shared table that another one has, with the options of both.
func copied(t *testing.T, from string, policy Policy, options ...Option) *Limiter {
	to := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, CopyShared(from, to, options...))
	l, err := New(policy, append(options, Shared(to), MaxKeys(100))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestACopyOfATierThatIsBlocked (I1): a copy has the numbers by which the keys of such a tier have taken, for when they
// come back.
func TestACopyOfATierThatIsBlocked(t *testing.T) {
	for _, fixed := range []Policy{Blocked(), Unlimited()} {
		own, tier := TokenBucket(PerSecond(1), 1), TokenBucket(PerHour(1000), 1000)
		from := filepath.Join(t.TempDir(), "table")
		l, err := New(own, Tiers(tier), Shared(from), MaxKeys(100))
		require.NoError(t, err)
		defer l.Close()
		require.True(t, l.TakeKey(l.Key("k").Tier(1), 500).Allowed)
		require.NoError(t, l.SetPolicy(own, fixed))
		for _, other := range []*Limiter{copied(t, from, own, Tiers(fixed)), copied(t, from, own, Tiers(fixed, tier))} {
			tiers := append([]Policy{tier}, other.now().all[2:]...)
			require.NoError(t, other.SetPolicy(own, tiers...))
			assert.InDelta(t, 500, other.PeekKey(other.Key("k").Tier(1), 0).Remaining, 10)
		}
	}
}

// TestACopyAfterALowerLimit (I1): a copy has room for what was taken by an earlier limit, and counts it in the same
// units.
func TestACopyAfterALowerLimit(t *testing.T) {
	for _, p := range []struct{ high, low, slow Policy }{
		{TokenBucket(PerHour(1000), 1000), TokenBucket(PerHour(1000), 10), TokenBucket(PerHour(1), 10)},
		{FixedWindow(1000, aDay), FixedWindow(10, aDay), FixedWindow(10, aDay)},
		{SlidingWindow(1000, aDay), SlidingWindow(10, aDay), SlidingWindow(10, aDay)},
	} {
		from := filepath.Join(t.TempDir(), "table")
		l, err := New(p.high, Shared(from), MaxKeys(100))
		require.NoError(t, err)
		defer l.Close()
		require.True(t, l.Take("k", 1000).Allowed)
		require.NoError(t, l.SetPolicy(p.low))
		other := copied(t, from, p.low)
		require.NoError(t, other.SetPolicy(p.slow))
		require.NoError(t, other.SetPolicy(p.high))
		assert.Less(t, other.Peek("k", 0).Remaining, uint64(10), "%v: what was taken is taken", p.high)
	}
}

// TestACopyWithOtherTiers (I1): keys of a tier keep what they have taken, in tokens, as by SetPolicy, also if there are
// more tiers, or fewer.
func TestACopyWithOtherTiers(t *testing.T) {
	own, tier, slow := TokenBucket(PerSecond(1), 1), TokenBucket(PerHour(1000), 1000), TokenBucket(PerHour(10), 600)
	from := filepath.Join(t.TempDir(), "table")
	l, err := New(own, Tiers(tier, tier), Shared(from), MaxKeys(100))
	require.NoError(t, err)
	defer l.Close()
	require.True(t, l.TakeKey(l.Key("k").Tier(1), 1000).Allowed)
	for _, tiers := range [][]Policy{{slow}, {slow, tier}, {slow, tier, slow}} {
		other := copied(t, from, own, Tiers(tiers...))
		assert.InDelta(t, float64(40*time.Hour), float64(other.PeekKey(other.Key("k").Tier(1), 1).RetryAfter), float64(time.Hour))
	}
	assert.ErrorContains(t, CopyShared(from, from+" 2", Tiers(TokenBucket(PerHour(1), 1))), "may still owe 1000 tokens")
}
