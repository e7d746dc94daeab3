package live

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/engine"
)

// counted stands for the use of an engine.Limiter by one limit, because several limits may share one. Its owners are
// the Limiters that use it, now or as a previous limiter. An engine.Limiter is closed when none of its counted values
// has an owner.
type counted struct {
	*engine.Limiter                // nil with a Spread
	Spread          *engine.Spread // replaces Limiter; all requests have the zero Key
	limits          *atomic.Int64  // how many limits use this engine.Limiter
	forget          forgetting
	owners          atomic.Int64
	users           atomic.Int64 // configurations that use the limit to decide requests
	// ends is for a limit that shares its engine.Limiter: from this time on, no key of the limit owes anything. It is
	// nil while a configuration uses the limit.
	ends atomic.Pointer[time.Time]
	// most is the largest number of tokens that a key hands over.
	most atomic.Uint64

	mu sync.Mutex // serializes moves
	// moved has a handed value for each engine.Key.
	moved sync.Map
}

func (c *counted) release() {
	if c.owners.Add(-1) == 0 && c.limits.Add(-1) == 0 {
		if c.Spread != nil {
			_ = c.Spread.Close() // always nil: it was not closed before
			return
		}
		_ = c.Limiter.Close() // always nil, too
	}
}

func (c *counted) raiseMost(n uint64) {
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
}

// owed returns how many tokens the key k hands over, how many its record counts, and k with the tier of the record.
func (c *counted) owed(k engine.Key) (n, counted uint64, under engine.Key) {
	if c.Spread != nil {
		counted, under = c.Spread.Owed(), k
	} else {
		counted, under = c.Owed(k)
	}
	return min(counted, c.most.Load()), counted, under
}

// handed is the part of a key's debt that a limiter has handed over.
type handed struct {
	moved uint64 // tokens to take back when no configuration uses the limiter any longer
	// shared is how many tokens the key owes in both limiters, because the other limiter had no room for the complete
	// debt. Tokens that come back in this limiter are subtracted from shared first; otherwise the debt would come back
	// at the sum of both rates.
	shared uint64
	seen   uint64 // tokens that the key owed to this limiter, including moved and shared
}

func (c *counted) handed(k engine.Key, n uint64) (h handed) {
	if before, ok := c.moved.Load(k); ok {
		h = before.(handed)
		h.moved = min(h.moved, n)
		h.shared -= min(h.shared, h.seen-min(h.seen, n))
	}
	h.seen = n
	return h
}

// move calls charge for the part of k's debt that was not charged before. charge returns the tokens for which there was
// no room.
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

// settle removes from the records the tokens that newer limiters were charged. It is called when no decision uses c as
// a previous limiter any longer.
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

func (c *counted) reset(k engine.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgive(k)
	c.moved.Delete(k)
}

func (c *counted) forgive(k engine.Key) {
	if c.Spread == nil {
		c.Reset(k)
		return
	}
	_ = c.Spread.SetPolicy(c.Spread.Policy()) // this takes back what processors hold; the policy does not change
	c.Spread.Reset()
}

// takeBack reduces a key's debt. No other call may take tokens meanwhile.
func (c *counted) takeBack(k engine.Key, n, back uint64) {
	if c.Spread != nil {
		c.forgive(k)
		c.Spread.Charge(n - back)
		return
	}
	if back < n { // the rest of the debt stays in the record
		c.Refund(k, back)
		if left, _ := c.Owed(k); left < n {
			return
		}
	}
	c.Reset(k)
	c.Charge(k, n-back) // in case Refund did nothing, because a reservation is not due yet
}
