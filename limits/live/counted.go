package live

import (
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/engine"
)

// counted is a limiter with the number of its owners: a [Limiter], and those of which it is a previous one. The last
// one closes it.
type counted struct {
	*engine.Limiter
	owners atomic.Int64
	users  atomic.Int64 // configurations by which requests are decided

	mu sync.Mutex // of moves
	// moved is how much of what a key owes was charged to another limiter, while requests may still be decided by this
	// one: a uint64 by engine.Key.
	moved sync.Map
}

func (c *counted) release() {
	if c.owners.Add(-1) == 0 {
		_ = c.Limiter.Close() // always nil: it still decides
	}
}

// move charges to, a key of the limiter l, what the key k owes and was not charged before.
func (c *counted) move(k engine.Key, l *engine.Limiter, to engine.Key) {
	n, _ := c.Owed(k)
	if n == 0 {
		return
	}
	if moved, ok := c.moved.Load(k); ok && moved == n && c.users.Load() > 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	inUse := c.users.Load() > 0 // before it is read what the key owes: then nobody takes any more
	n, under := c.Owed(k)
	var moved uint64
	if before, ok := c.moved.Load(k); ok {
		moved = min(before.(uint64), n)
	}
	if n > moved {
		_, lost := l.ChargeKey(to, n-moved)
		moved = n - lost
	}
	switch {
	case inUse:
		c.moved.Store(k, moved)
	case moved > 0:
		c.moved.Delete(k)
		c.forget(under, n, moved)
	}
}

// reset makes the key owe nothing.
func (c *counted) reset(k engine.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ResetKey(k)
	c.moved.Delete(k)
}

// forget takes back so many of the n tokens that a key owes. Nobody takes any.
func (c *counted) forget(k engine.Key, n, back uint64) {
	if back < n { // the rest comes when there is room for it
		c.RefundKey(k, back)
		if left, _ := c.Owed(k); left < n {
			return
		}
	}
	c.ResetKey(k)
	c.ChargeKey(k, n-back) // where it took nothing back, because somebody waits near by
}
