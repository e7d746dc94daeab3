package floor

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newFloor(t *testing.T, slots uint64) *Floor {
	f, release, err := New(NewClock(), slots)
	require.NoError(t, err)
	t.Cleanup(release)
	return f
}

// A key always has the same slot. Only an admitted request changes it.
func TestAdmitWritesRefuseDoesNot(t *testing.T) {
	f := newFloor(t, 1000)
	w := f.slot("a")
	assert.Same(t, w, f.slot("a"))
	for _, floor := range []interface{ Allow(string) bool }{AdmitCoarse{f}, AdmitPrecise{f}} {
		before := w.Load()
		assert.True(t, floor.Allow("a"))
		assert.NotEqual(t, before, w.Load())
	}
	before := w.Load()
	assert.False(t, RefuseCoarse{f}.Allow("a"))
	assert.False(t, RefusePrecise{f}.Allow("a"))
	assert.Equal(t, before, w.Load())
	if TSC() {
		assert.True(t, AdmitTSC{f}.Allow("a"))
		assert.False(t, RefuseTSC{f}.Allow("a"))
	}
	hot := f.hot.Load()
	assert.True(t, Hot{f}.Allow("a"))
	assert.True(t, Swap{f}.Allow("a"))
	assert.Equal(t, hot+2, f.hot.Load()&^1+hot&1, "each charged the one word once")
}

// Slots are spread over the whole table.
func TestSlotsAreSpread(t *testing.T) {
	f := newFloor(t, 64)
	used := map[any]bool{}
	for i := range 2000 {
		used[f.slot(string(rune('a'+i%26))+string(rune('a'+i/26)))] = true
	}
	assert.Len(t, used, 64)
}

func TestMap(t *testing.T) {
	const size = 8 << 20
	for _, huge := range []bool{true, false} {
		memory, release, err := Map(size, huge)
		require.NoError(t, err)
		assert.Len(t, memory, size)
		got, err := Huge(memory)
		if runtime.GOOS != "linux" {
			assert.Error(t, err)
		} else {
			require.NoError(t, err)
			assert.LessOrEqual(t, got, uint64(size))
			if !huge {
				assert.Zero(t, got)
			}
		}
		r := NewRandom(memory)
		assert.Equal(t, 1000, r.Decide(1, 1000), "without contention")
		sum := uint64(0)
		for i := range r.table {
			sum += r.table[i].state.Load()
		}
		assert.EqualValues(t, 1000, sum)
		release()
	}
}
