package engine

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestARestoreKnowsTheTiersOfTheCopy: a debt under a tier stays the same number of tokens in a table without such a
// tier.
func TestARestoreKnowsTheTiersOfTheCopy(t *testing.T) {
	batch := func(hours int, n uint64) Policy { return BatchRefill(1, time.Duration(hours)*time.Hour, n) }
	for _, by := range []string{"restore", "fewer tiers"} {
		t.Run(by, func(t *testing.T) {
			folder := t.TempDir()
			from, to := filepath.Join(folder, "from"), filepath.Join(folder, "to")
			low, high := batch(1, 5), batch(1, 1000)
			tiers, last := []Policy{low}, 1
			if by == "fewer tiers" {
				tiers, last = []Policy{low, low}, 2
			}
			a, err := New(low, Tiers(tiers...), Shared(from), MaxKeys(100))
			require.NoError(t, err)
			defer a.Close()
			if by == "restore" {
				require.NoError(t, CopyShared(from, to))
			}
			tiers[last-1] = high
			require.NoError(t, a.SetPolicy(low, tiers...))
			require.True(t, a.TakeKey(a.Key("k").Tier(last), 1000).Allowed)
			if by == "restore" {
				require.NoError(t, RestoreShared(from, to))
			} else {
				require.NoError(t, CopyShared(from, to, Tiers(low)))
			}
			b, err := New(low, Tiers(low), Shared(to), MaxKeys(100))
			require.NoError(t, err)
			defer b.Close()
			k := b.Key("k")
			_, err = b.ahead(k, 1, 1000*time.Hour)
			require.NoError(t, err)
			require.NoError(t, b.SetPolicy(batch(100, 5), batch(100, 5)))
			assert.GreaterOrEqual(t, b.Peek(k, 1).RetryAfter, 97_200*time.Hour)
			require.NoError(t, b.SetPolicy(batch(100, 5), batch(100, 1000)))
			assert.Zero(t, b.Peek(k.Tier(1), 1).Remaining)
		})
	}
}
