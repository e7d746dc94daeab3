package limits

import (
	"sync"

	"github.com/weir-go/weir/engine"
)

// waiterShare bounds the waiting requests of one key to an eighth of all places, rounded up.
const waiterShare = 8

// waiters counts the waiting requests of each key.
type waiters struct {
	maxPerKey int // how many requests may wait for one key

	mu    sync.Mutex
	byKey map[waiter]int
}

type waiter struct {
	limit int
	key   engine.Key
}

// add counts a waiting request of a key, and reports whether the key had a place for it.
func (w *waiters) add(k waiter) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey[k] >= w.maxPerKey {
		return false
	}
	w.byKey[k]++
	return true
}

func (w *waiters) remove(k waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey[k]--; w.byKey[k] == 0 {
		delete(w.byKey, k)
	}
}
