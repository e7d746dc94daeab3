package procid

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestPin: goroutines that run at the same time get different numbers from Pin, all below the number of processors.
func TestPin(t *testing.T) {
	n := runtime.GOMAXPROCS(0)
	seen := make([]bool, n)
	var mu sync.Mutex
	missing := n
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for more := true; more; {
				id := Pin()
				Unpin()
				mu.Lock()
				if !assert.Less(t, id, n) || !assert.GreaterOrEqual(t, id, 0) {
					missing = 0
				} else if !seen[id] {
					seen[id] = true
					missing--
				}
				more = missing > 0
				mu.Unlock()
				runtime.Gosched()
			}
		})
	}
	all.Wait()
}
