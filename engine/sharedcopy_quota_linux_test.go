package engine

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestACopyWithTiersHasRoomForQuotas (I1).
func TestACopyWithTiersHasRoomForQuotas(t *testing.T) {
	folder := t.TempDir()
	from, to := filepath.Join(folder, "table"), filepath.Join(folder, "copy")
	third, tier := TokenBucket(PerSecond(3), 10), TokenBucket(PerSecond(1), 10)
	l, err := New(TokenBucket(PerSecond(10), 10), Shared(from), MaxKeys(100), MaxQuota(500))
	require.NoError(t, err)
	defer l.Close()
	q, err := l.Quota(TokenBucket(Per(1, time.Hour), 500))
	require.NoError(t, err)
	require.True(t, l.TakeKey(l.Key("anna").With(q), 500).Allowed)
	require.NoError(t, l.SetPolicy(third))
	require.NoError(t, CopyShared(from, to+" without"))
	require.NoError(t, CopyShared(from, to, Tiers(tier)))
	c, err := New(third, Tiers(tier), Shared(to), MaxKeys(100), MaxQuota(500))
	require.NoError(t, err)
	defer c.Close()
	q, err = c.Quota(TokenBucket(Per(1, time.Hour), 500))
	require.NoError(t, err)
	require.False(t, c.TakeKey(c.Key("anna").With(q), 1).Allowed)
}
