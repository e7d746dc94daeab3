package engine

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// copied copies a shared table, and returns a limiter of the copy with the same options.
func copied(t *testing.T, from string, policy Policy, options ...Option) *Limiter {
	to := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, CopyShared(from, to, options...))
	l, err := New(policy, append(options, Shared(to), MaxKeys(100))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestACopyOfATierThatIsBlocked (I1): a copy has the numbers of a blocked tier, because the tier may become active
// again.
func TestACopyOfATierThatIsBlocked(t *testing.T) {
	for _, fixed := range []Policy{Blocked(), Unlimited()} {
		own, tier := TokenBucket(PerSecond(1), 1), TokenBucket(Per(1000, time.Hour), 1000)
		from := filepath.Join(t.TempDir(), "table")
		l, err := New(own, Tiers(tier), Shared(from), MaxKeys(100))
		require.NoError(t, err)
		defer l.Close()
		require.True(t, l.TakeKey(l.Key("k").Tier(1), 500).Allowed)
		require.NoError(t, l.SetPolicy(own, fixed))
		for _, other := range []*Limiter{copied(t, from, own, Tiers(fixed)), copied(t, from, own, Tiers(fixed, tier))} {
			tiers := append([]Policy{tier}, other.policies().byTier[2:]...)
			require.NoError(t, other.SetPolicy(own, tiers...))
			assert.InDelta(t, 500, other.Peek(other.Key("k").Tier(1), 0).Remaining, 10)
		}
	}
}

// TestACopyAfterALowerLimit (I1): a copy has room for tokens of an earlier, higher limit, and counts them in the same
// units.
func TestACopyAfterALowerLimit(t *testing.T) {
	for _, p := range []struct{ high, low, slow Policy }{
		{TokenBucket(Per(1000, time.Hour), 1000), TokenBucket(Per(1000, time.Hour), 10), TokenBucket(Per(1, time.Hour), 10)},
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
		assert.Less(t, other.Peek(other.Key("k"), 0).Remaining, uint64(10), "%v: what was taken is taken", p.high)
	}
}

// TestACopyWithOtherTiers (I1): in a copy with more or fewer tiers, taken tokens still count as after SetPolicy.
func TestACopyWithOtherTiers(t *testing.T) {
	own, tier, slow := TokenBucket(PerSecond(1), 1), TokenBucket(Per(1000, time.Hour), 1000), TokenBucket(Per(10, time.Hour), 600)
	from := filepath.Join(t.TempDir(), "table")
	l, err := New(own, Tiers(tier, tier), Shared(from), MaxKeys(100))
	require.NoError(t, err)
	defer l.Close()
	require.True(t, l.TakeKey(l.Key("k").Tier(1), 1000).Allowed)
	for _, tiers := range [][]Policy{{slow}, {slow, tier}, {slow, tier, slow}} {
		other := copied(t, from, own, Tiers(tiers...))
		assert.InDelta(t, float64(40*time.Hour), float64(other.Peek(other.Key("k").Tier(1), 1).RetryAfter), float64(time.Hour))
	}
	assert.ErrorContains(t, CopyShared(from, from+" 2", Tiers(TokenBucket(Per(1, time.Hour), 1))), "may still owe 1000 tokens")
}

// TestACopyWithRoomForOtherRates (I1): taken tokens still count in a copy that adds tiers of other rates or room for
// quotas.
func TestACopyWithRoomForOtherRates(t *testing.T) {
	fast, slow := TokenBucket(Per(1000, time.Hour), 1000), TokenBucket(Per(7, time.Hour), 1000)
	folder := t.TempDir()
	from, with := filepath.Join(folder, "table"), filepath.Join(folder, "with tiers")
	l, err := New(fast, Shared(from), MaxKeys(100))
	require.NoError(t, err)
	defer l.Close()
	require.True(t, l.Take("k", 600).Allowed)
	left := func(l *Limiter, k Key) uint64 { return l.Peek(k, 1).Remaining }

	tiers := copied(t, from, fast, Tiers(slow))
	assert.InDelta(t, 400, left(tiers, tiers.Key("k")), 2)
	assert.InDelta(t, 400, left(tiers, tiers.Key("k").Tier(1)), 2)
	quotas := copied(t, from, fast, MaxQuota(1))
	q, err := quotas.Quota(slow)
	require.NoError(t, err)
	assert.InDelta(t, 400, left(quotas, quotas.Key("k").With(q)), 2)

	require.NoError(t, CopyShared(from, with, Tiers(slow)))
	other, err := New(fast, Shared(with), MaxKeys(100), Tiers(slow))
	require.NoError(t, err)
	defer other.Close()
	require.True(t, other.TakeKey(other.Key("k").Tier(1), 300).Allowed)
	l.Reset(l.Key("k"))
	require.NoError(t, RestoreShared(with, from))
	assert.InDelta(t, 100, left(l, l.Key("k")), 2, "in the fast one's tokens")
}

// TestARestoreUnderOtherNumbers (I1): a restore to a table with other numbers keeps the number of tokens owed.
func TestARestoreUnderOtherNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		from, to Policy // policies of tier 1, under which a key has taken 60 tokens
		left     uint64
	}{
		"slower":         {TokenBucket(Per(100, time.Hour), 100), TokenBucket(Per(1, time.Hour), 100), 40},
		"faster":         {TokenBucket(Per(1, time.Hour), 100), TokenBucket(Per(100, time.Hour), 100), 40},
		"a lower limit":  {TokenBucket(Per(100, time.Hour), 100), TokenBucket(Per(100, time.Hour), 10), 0},
		"a higher limit": {TokenBucket(Per(100, time.Hour), 100), TokenBucket(Per(100, time.Hour), 1000), 940},
		"both":           {TokenBucket(Per(100, time.Hour), 100), TokenBucket(Per(7, time.Hour), 1000), 940},
		"a fixed window": {FixedWindow(100, aDay), FixedWindow(1000, aDay/2), 940},
		"a counter":      {SlidingWindow(100, aDay), SlidingWindow(1000, aDay), 940},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path, backup := filepath.Join(folder, "table"), filepath.Join(folder, "backup")
			own := c.from
			l, err := New(own, Tiers(c.from), Shared(path), MaxKeys(100))
			require.NoError(t, err)
			defer l.Close()
			k := l.Key("k").Tier(1)
			require.True(t, l.TakeKey(k, 60).Allowed)
			require.NoError(t, CopyShared(path, backup))
			l.Reset(k)
			if !own.isTokenBucket() { // all tiers have the same window
				own = c.to
			}
			require.NoError(t, l.SetPolicy(own, c.to))
			for range 2 {
				require.NoError(t, RestoreShared(backup, path))
				assert.EqualValues(t, c.left, l.Peek(k, 1).Remaining)
			}
		})
	}
}

// TestThePolicyChangesDuringARestore (I1): a restore reads a debt under the numbers under which it was taken, even if
// they change meanwhile.
func TestThePolicyChangesDuringARestore(t *testing.T) {
	folder := t.TempDir()
	path, backup := filepath.Join(folder, "table"), filepath.Join(folder, "backup")
	fast, slow := TokenBucket(Per(100, time.Hour), 100), TokenBucket(Per(1, time.Hour), 100)
	l, err := New(fast, Shared(path), MaxKeys(100))
	require.NoError(t, err)
	defer l.Close()
	require.True(t, l.Take("k", 60).Allowed)
	require.True(t, l.Take("other", 60).Allowed)
	require.NoError(t, CopyShared(path, backup))
	l.Reset(l.Key("k"))
	l.Reset(l.Key("other"))
	source, err := openDebts(backup)
	require.NoError(t, err)
	defer source.Close()
	asked := 0
	_, err = source.copyDebts(l.table, l.terms, func() int64 {
		if asked++; asked == 1 {
			require.NoError(t, l.SetPolicy(slow))
		}
		return l.clock.exactNanos()
	})
	require.NoError(t, err)
	assert.Equal(t, 4, asked, "two keys, twice")
	for _, key := range []string{"k", "other"} {
		assert.EqualValues(t, 40, l.Peek(l.Key(key), 1).Remaining, key)
	}
}

// TestARestoreSaysWhatHadNoRoom: the error of RestoreShared says how many keys had no room.
func TestARestoreSaysWhatHadNoRoom(t *testing.T) {
	folder := t.TempDir()
	path, backup := filepath.Join(folder, "table"), filepath.Join(folder, "backup")
	l, err := New(TokenBucket(Per(1, time.Hour), 10), Shared(path), MaxKeys(100), Overflow(Refuse))
	require.NoError(t, err)
	defer l.Close()
	taken := 0
	for i := range uint64(10_000) {
		if l.TakeKey(l.KeyUint64(i), 10).Allowed {
			taken++
		}
	}
	require.Less(t, taken, 10_000)
	require.NoError(t, CopyShared(path, backup))
	for i := range uint64(10_000) {
		l.Reset(l.KeyUint64(i))
	}
	for i := range uint64(10_000) {
		l.TakeKey(l.KeyUint64(10_000+i), 10)
	}
	assert.ErrorContains(t, RestoreShared(backup, path), "keys of the copy have no room, and owe nothing: want more")
}
