package atomicbucket

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnEntryOfARing: the version of a state in all its seven bits, and the tick in 56.
func TestAnEntryOfARing(t *testing.T) {
	s := NewState(Live, 0b1000001, 0)
	require.Equal(t, uint64(0b1000001<<57|5), entryOf(s, 5))
	require.Equal(t, uint64(0b1000001<<57|1<<56-1), entryOf(s, ^uint64(0)))
	ring := make(Ring, 2)
	ring.Clear(s)
	for i := range ring {
		require.Equal(t, uint64(0b1000001<<57|1<<56), ring[i].Load(), "and it is gone")
	}
}
