//go:build !explore

package shard

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAReplacementKnowsTheLargest: a caller that does not know of a quota of another process replaces nothing.
func TestAReplacementKnowsTheLargest(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 8)), Refuse)
	cfg.Plan.SetSource(made{kinds[0], bucketNumbers(8)})
	memory := sharedMemory(t, cfg)
	one, other := mapped(t, cfg, memory, ownerOf{1, []uint64{2}}), mapped(t, cfg, memory, ownerOf{2, []uint64{1}})
	require.True(t, other.Remember(100, clockAt(start)))
	require.EqualValues(t, 100, one.Largest())
	require.False(t, one.ReplaceKnowing(99, bucketNumbers(4), clockAt(start)))
	require.EqualValues(t, 8, one.Plan().Quota(0).Tokens)
	require.True(t, other.Remember(50, clockAt(start)), "nobody is about to replace the plan")
	require.EqualValues(t, 100, one.Largest())
	require.True(t, one.ReplaceKnowing(100, bucketNumbers(4), clockAt(start)))
}

// TestRememberCompletesAReplacement that did not know the number.
func TestRememberCompletesAReplacement(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 8)), Refuse)
	cfg.Plan.SetSource(made{kinds[0], bucketNumbers(8)})
	memory := sharedMemory(t, cfg)
	one, other := mapped(t, cfg, memory, ownerOf{1, []uint64{2}}), mapped(t, cfg, memory, ownerOf{2, []uint64{1}})
	n := one.Plan().planned
	one.areas.write(n+1, bucketNumbers(4))
	require.True(t, one.change.CompareAndSwap(n<<changeShift, (n+1)<<changeShift|changing)) // and is suspended
	require.True(t, other.Remember(100, clockAt(start)))
	require.EqualValues(t, (n+1)<<changeShift, one.change.Load())
	require.EqualValues(t, 4, other.Plan().Quota(0).Tokens)
}
