package limits

import (
	"sync"

	"github.com/weir-go/weir/engine"
)

// waiterShare bounds how many of the places for waiting requests one key may have: the total number of places divided
// by waiterShare.
const waiterShare = 8

// waiters counts the waiting requests of each key.
type waiters struct {
	most int // how many requests may wait for one key

	mu sync.Mutex
	of map[waiter]int
}

// A waiter identifies a key of a limit.
type waiter struct {
	limit int
	key   engine.Key
}

// add counts a waiting request of a key, and reports whether the key had a place for it.
func (w *waiters) add(k waiter) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[k] >= w.most {
		return false
	}
	w.of[k]++
	return true
}

// remove stops counting a waiting request of a key.
func (w *waiters) remove(k waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[k]--; w.of[k] == 0 {
		delete(w.of, k)
	}
}
