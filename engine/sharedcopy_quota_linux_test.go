package engine

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestACopyWithTiersHasRoomForQuotas (I1): tokens taken under a quota still count in a copy that has tiers.
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

// TestQuotasOfWindowsInAFile (I1): after one process has made a quota, a shorter window lasts as under a limit of 1.
func TestQuotasOfWindowsInAFile(t *testing.T) {
	for name, quota := range map[string]bool{"a quota": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			hour, minute := FixedWindow(1000, time.Hour), FixedWindow(1000, time.Minute)
			limiter := func(file string) *Limiter {
				l, err := New(hour, Shared(filepath.Join(folder, file)), MaxKeys(100))
				require.NoError(t, err)
				t.Cleanup(func() { _ = l.Close() })
				return l
			}
			one, other := limiter("table"), limiter("table")
			if quota {
				_, err := one.Quota(hour)
				require.NoError(t, err)
			}
			require.True(t, one.Take("anna", 1000).Allowed)
			require.NoError(t, CopyShared(filepath.Join(folder, "table"), filepath.Join(folder, "copy")))
			for _, l := range []*Limiter{other, limiter("copy")} {
				require.NoError(t, l.SetPolicy(minute))
				if ends := l.Peek(l.Key("anna"), 1).ResetAfter; quota {
					require.Greater(t, ends, 30*time.Minute, "broken: (b): a quota may have other numbers")
				} else {
					require.LessOrEqual(t, ends, time.Minute+time.Second, "broken: (d): the key has one limit")
				}
			}
		})
	}
}
