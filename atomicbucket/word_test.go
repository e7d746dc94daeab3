package atomicbucket

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWordArrows goes through the life of a slot, transition by transition.
func TestWordArrows(t *testing.T) {
	var w Word
	require.Equal(t, State(0), w.Load())

	claimed, ok := w.Claim(0, 0)
	require.True(t, ok)
	assert.Equal(t, NewState(Claimed, 1, 0), claimed)
	assert.Equal(t, claimed, w.Load())

	tentative := w.Publish(claimed)
	assert.Equal(t, NewState(Tentative, 1, 0), tentative)

	live, ok := w.Commit(tentative, Live, 100)
	require.True(t, ok)
	assert.Equal(t, NewState(Live, 1, 100), live)

	moved, ok := w.Move(live, 1<<PayloadBits|200)
	require.True(t, ok)
	assert.Equal(t, NewState(Live, 1, 200), moved, "a payload cannot spill into version and tag")

	require.True(t, w.Free(moved))
	assert.Equal(t, NewState(Free, 1, 0), w.Load())

	claimed, ok = w.Claim(w.Load(), 0)
	require.True(t, ok)
	assert.Equal(t, NewState(Claimed, 2, 0), claimed, "another claim, another tenure")
	require.True(t, w.Abort(w.Publish(claimed)))
	assert.Equal(t, NewState(Free, 2, 0), w.Load())
}

// TestWordArrowsFromAStaleState: every transition for which calls can compete fails if the state has changed, and then
// writes nothing.
func TestWordArrowsFromAStaleState(t *testing.T) {
	var w Word
	claimed, _ := w.Claim(0, 0)
	tentative := w.Publish(claimed)
	live, _ := w.Commit(tentative, Live, 1)

	_, ok := w.Claim(0, 0)
	assert.False(t, ok)
	_, ok = w.Commit(tentative, Live, 2)
	assert.False(t, ok, "a tentative record has one fate")
	assert.False(t, w.Abort(tentative))
	_, ok = w.Move(NewState(Live, 2, 1), 2)
	assert.False(t, ok, "the same payload in another tenure is another state")
	assert.False(t, w.Free(NewState(Live, 1, 2)))
	assert.False(t, w.Abandon(claimed))
	assert.Equal(t, live, w.Load())
}

func TestWordVersionGoesRound(t *testing.T) {
	var w Word
	for i := range 2 * (1 << VersionBits) {
		claimed, ok := w.Claim(w.Load(), 0)
		require.True(t, ok)
		require.Equal(t, uint64(i+1)%(1<<VersionBits), claimed.Version())
		require.Equal(t, Claimed, claimed.Tag())
	}
}
