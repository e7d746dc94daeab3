package fuzz

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// TestFloodOfTenMillionKeys (I6): a limiter for a million keys takes 27 bytes per key before, during and after a flood
// of new keys that never become idle. A drained key stays drained.
func TestFloodOfTenMillionKeys(t *testing.T) {
	flood := uint64(10_000_000)
	if testing.Short() {
		flood = 2_000_000 // twice the capacity, under the race detector
	}
	l, err := engine.New(engine.TokenBucket(engine.Per(1, time.Hour), 5))
	require.NoError(t, err)
	defer l.Close()
	held := l.Stats().Bytes
	require.LessOrEqual(t, held, uint64(27_000_000))
	l.Take("drained", 5)

	// If the system can map memory, the table itself is outside the heap.
	before := heap()
	var part, through atomic.Uint64
	var grown atomic.Int64
	together(func(uint64) {
		const parts = 1000
		for p := part.Add(1); p <= parts; p = part.Add(1) {
			for i := range flood / parts {
				l.AllowKey(l.KeyUint64(p*flood + i))
			}
			if l.Allow("drained") {
				through.Add(1)
			}
			if p%100 == 0 {
				grown.Store(max(grown.Load(), int64(heap()-before)))
			}
		}
	})
	assert.Zero(t, through.Load(), "a drained key was let through")
	// The test itself may use half a megabyte.
	assert.LessOrEqual(t, grown.Load(), int64(500_000))
	assert.Equal(t, held, l.Stats().Bytes)
	assert.Positive(t, l.Stats().Evictions)
	l.Sweep()
	assert.LessOrEqual(t, l.Stats().Keys, l.Stats().Slots)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
