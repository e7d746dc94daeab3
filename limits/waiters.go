package limits

import (
	"sync"

	"github.com/weir-go/weir/engine"
)

// waiterShare: one key may have an eighth of the places of waiting requests.
const waiterShare = 8

// waiters counts the waiting requests of each key.
type waiters struct {
	most int // for one key

	mu sync.Mutex
	of map[waiter]int
}

// A waiter is the key of a limit.
type waiter struct {
	limit int
	key   engine.Key
}

// add counts a request, and reports whether there was a place for it.
func (w *waiters) add(k waiter) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[k] >= w.most {
		return false
	}
	w.of[k]++
	return true
}

// remove ends the count of a request.
func (w *waiters) remove(k waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[k]--; w.of[k] == 0 {
		delete(w.of, k)
	}
}
