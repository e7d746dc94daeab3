package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOwed: what a key has used, above its limit, too, and nothing of a token bucket.
func TestOwed(t *testing.T) {
	for _, c := range []struct{ policy, lower Policy }{
		{FixedWindow(10, time.Hour), FixedWindow(3, time.Hour)},
		{SlidingWindow(10, time.Hour), SlidingWindow(3, time.Hour)},
		{SlidingLog(10, time.Hour), SlidingLog(3, time.Hour)},
		{BatchRefill(10, time.Hour, 10), BatchRefill(3, time.Hour, 3)},
	} {
		now := time.Unix(1_700_000_000, 0)
		l := pinned(t, &now, c.policy)
		k := l.Key("ann")
		owed := func(want uint64) {
			t.Helper()
			tokens, known := l.Owed(k)
			assert.True(t, known)
			assert.Equal(t, want, tokens, "%v", c.policy)
			tokens, _ = l.Owed(k.Tier(3))
			assert.Equal(t, want, tokens, "%v: the tier does not matter", c.policy)
		}
		owed(0)
		require.True(t, l.TakeKey(k, 7).Allowed)
		owed(7)
		owed(7) // it changes nothing
		require.NoError(t, l.SetPolicy(c.lower))
		owed(7)
		now = now.Add(3 * time.Hour)
		owed(0)
	}
	now := time.Unix(1_700_000_000, 0)
	bucket := pinned(t, &now, TokenBucket(PerHour(10), 10))
	require.True(t, bucket.Take("ann", 7).Allowed)
	tokens, known := bucket.Owed(bucket.Key("ann"))
	assert.False(t, known)
	assert.Zero(t, tokens)
}
