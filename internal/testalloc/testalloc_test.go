package testalloc

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAllocationsOfOthersDoNotCount: what another goroutine allocates during the first round must not count.
func TestAllocationsOfOthersDoNotCount(t *testing.T) {
	var stop atomic.Bool
	var other sync.WaitGroup
	other.Go(func() {
		for kept := []byte{}; !stop.Load(); kept = make([]byte, 1+len(kept)%64) {
		}
	})
	n := 0
	assert.Zero(t, PerCall(func() {
		if n++; n == calls/2 {
			runtime.Gosched()
		}
	}))
	stop.Store(true)
	other.Wait()
}

func TestAllocationsOfACallCount(t *testing.T) {
	var kept []byte
	assert.EqualValues(t, 1, PerCall(func() { kept = make([]byte, 64) }))
	n := 0
	assert.EqualValues(t, 0.5, PerCall(func() {
		if n++; n%2 == 0 {
			kept = make([]byte, 64)
		}
	}))
	assert.Len(t, kept, 64)
}
