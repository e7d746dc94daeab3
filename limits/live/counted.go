package live

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/engine"
)

// counted is one limit's use of an engine.Limiter, with the number of its owners. Owners are a [Limiter], and each
// Limiter that has the counted as a previous one. Several limits with different keys may share an engine.Limiter; each
// has its own counted. The last owner of the last of them closes the engine.Limiter.
type counted struct {
	*engine.Limiter                // nil with a Spread
	Spread          *engine.Spread // instead, of all requests: its one key is the zero Key
	limits          *atomic.Int64  // with this limiter
	forget          forgetting
	owners          atomic.Int64
	users           atomic.Int64 // configurations by which requests are decided
	// ends is the time from which no key of this limit owes anything. It is set only for a limit that shares its
	// engine.Limiter, and is nil while a configuration uses the limit.
	ends atomic.Pointer[time.Time]
	// most is the most tokens that a key hands over. What the key owes above it is refused hits that were counted.
	most atomic.Uint64

	mu sync.Mutex // of moves
	// moved has, for each engine.Key, a handed: the part of its debt that was charged to another limiter. The entry
	// stays while this limiter may still decide requests, or has debt for which the other limiter had no room.
	moved sync.Map
}

func (c *counted) release() {
	if c.owners.Add(-1) == 0 && c.limits.Add(-1) == 0 {
		if c.Spread != nil {
			_ = c.Spread.Close() // always nil: it still decides
			return
		}
		_ = c.Limiter.Close() // the same
	}
}

// raiseMost raises most to n, if it is lower.
func (c *counted) raiseMost(n uint64) {
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
}

// owed returns how many tokens a key hands over, how many it owes by its record, and the key under the tier of its
// record.
func (c *counted) owed(k engine.Key) (n, counted uint64, under engine.Key) {
	if c.Spread != nil {
		counted, under = c.Spread.Owed(), k
	} else {
		counted, under = c.Owed(k)
	}
	return min(counted, c.most.Load()), counted, under
}

// handed is the part of a key's debt that a limiter has handed over. The key still owes the limiter the rest of seen.
type handed struct {
	moved uint64 // tokens to take back when no configuration decides by the limiter any more
	// shared is how many tokens were charged to the other limiter when it had no room for the whole debt. The key owes
	// them here, too. Tokens that come back here with time are subtracted from shared first, so the debt does not come
	// back at the sum of both rates.
	shared uint64
	seen   uint64 // tokens that the key owed here, including moved and shared
}

// handed returns what was handed over for a key that owes n tokens now.
func (c *counted) handed(k engine.Key, n uint64) (h handed) {
	if before, ok := c.moved.Load(k); ok {
		h = before.(handed)
		h.moved = min(h.moved, n)
		h.shared -= min(h.shared, h.seen-min(h.seen, n))
	}
	h.seen = n
	return h
}

// move charges what the key k owes and was not charged before. charge returns the tokens for which there was no room.
func (c *counted) move(k engine.Key, charge func(n uint64) (lost uint64)) {
	n, _, _ := c.owed(k)
	if n == 0 {
		return
	}
	if before, ok := c.moved.Load(k); ok && before.(handed).moved == n && c.users.Load() > 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	inUse := c.users.Load() > 0 // read before the debt: if it is false, no call takes tokens any longer
	n, counted, under := c.owed(k)
	h := c.handed(k, n)
	lost := uint64(0)
	if rest := n - h.moved - h.shared; rest > 0 {
		lost = charge(rest)
		h.shared += rest - lost
	}
	if lost == 0 {
		h.moved, h.shared = n, 0
	}
	if !inUse && h.moved > 0 {
		c.takeBack(under, counted, counted-n+h.moved)
		h.seen, h.moved = n-h.moved, 0
	}
	if h.moved+h.shared > 0 {
		c.moved.Store(k, h)
	} else {
		c.moved.Delete(k)
	}
}

// settle takes back the tokens that were charged to newer limiters. Call it when no decision reads c as a previous
// limiter any longer.
func (c *counted) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved.Range(func(key, _ any) bool {
		n, counted, under := c.owed(key.(engine.Key))
		h := c.handed(key.(engine.Key), n)
		if back := h.moved + h.shared; back > 0 {
			c.takeBack(under, counted, counted-n+back)
		}
		return true
	})
	c.moved.Clear()
}

// reset makes the key owe nothing.
func (c *counted) reset(k engine.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgive(k)
	c.moved.Delete(k)
}

// forgive makes the record of a key owe nothing.
func (c *counted) forgive(k engine.Key) {
	if c.Spread == nil {
		c.Reset(k)
		return
	}
	_ = c.Spread.SetPolicy(c.Spread.Policy()) // it takes back what processors hold, and the policy is its own
	c.Spread.Reset()
}

// takeBack reduces the n tokens that a key owes by back. No other call may take tokens meanwhile.
func (c *counted) takeBack(k engine.Key, n, back uint64) {
	if c.Spread != nil {
		c.forgive(k)
		c.Spread.Charge(n - back)
		return
	}
	if back < n { // the rest is taken when there is room for it
		c.Refund(k, back)
		if left, _ := c.Owed(k); left < n {
			return
		}
	}
	c.Reset(k)
	c.Charge(k, n-back) // if the refund did nothing, because a reservation near by is not due yet
}
