package live

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/engine"
)

// A refCounted stands for the use of an engine.Limiter by one limit, because several limits may share one. Its owners
// are the Limiters that use it, now or as a previous limiter. An engine.Limiter is closed when none of its refCounted
// values has an owner.
type refCounted struct {
	*engine.Limiter                // nil with a Spread
	Spread          *engine.Spread // replaces Limiter; all requests have the zero Key
	limits          *atomic.Int64  // how many limits use this engine.Limiter
	expiry          expiry
	owners          atomic.Int64
	users           atomic.Int64 // configurations that use the limit to decide requests
	// expiresAt is for a limit that shares its engine.Limiter: from this time on, no key of the limit owes anything. It
	// is nil while a configuration uses the limit.
	expiresAt atomic.Pointer[time.Time]
	// maxDebt is the largest number of tokens that a key hands over.
	maxDebt atomic.Uint64

	mu sync.Mutex // serializes moves
	// handovers has a handover for each engine.Key that has handed over a debt.
	handovers sync.Map
}

func (c *refCounted) release() {
	if c.owners.Add(-1) == 0 && c.limits.Add(-1) == 0 {
		if c.Spread != nil {
			_ = c.Spread.Close() // always nil: it was not closed before
			return
		}
		_ = c.Limiter.Close() // always nil, too
	}
}

func (c *refCounted) raiseMaxDebt(n uint64) {
	for current := c.maxDebt.Load(); n > current && !c.maxDebt.CompareAndSwap(current, n); current = c.maxDebt.Load() {
	}
}

// owed returns how many tokens the key k hands over, how many its record counts, and k with the tier of the record.
func (c *refCounted) owed(k engine.Key) (debt, recordDebt uint64, lastKey engine.Key) {
	if c.Spread != nil {
		recordDebt, lastKey = c.Spread.Owed(), k
	} else {
		recordDebt, lastKey = c.Owed(k)
	}
	return min(recordDebt, c.maxDebt.Load()), recordDebt, lastKey
}

// A handover is the part of a key's debt that a limiter has handed over to newer limiters.
type handover struct {
	moved uint64 // tokens to take back when no configuration uses the limiter any longer
	// shared is how many tokens the key owes in both limiters, because the newer limiter had no room for the complete
	// debt. Tokens that come back in this limiter are subtracted from shared first; otherwise the debt would come back
	// at the sum of both rates.
	shared   uint64
	lastDebt uint64 // tokens that the key owed in this limiter at the last call, including moved and shared
}

// handover returns the handover of a key that now owes debt tokens in this limiter.
func (c *refCounted) handover(k engine.Key, debt uint64) (h handover) {
	if value, ok := c.handovers.Load(k); ok {
		h = value.(handover)
		h.moved = min(h.moved, debt)
		h.shared -= min(h.shared, h.lastDebt-min(h.lastDebt, debt))
	}
	h.lastDebt = debt
	return h
}

// move calls charge for the part of k's debt that was not charged before. charge returns the tokens for which there was
// no room.
func (c *refCounted) move(k engine.Key, charge func(n uint64) (lost uint64)) {
	debt, _, _ := c.owed(k)
	if debt == 0 {
		return
	}
	if value, ok := c.handovers.Load(k); ok && value.(handover).moved == debt && c.users.Load() > 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	inUse := c.users.Load() > 0 // read before the debt: if it is false, no call takes tokens any longer
	debt, recordDebt, lastKey := c.owed(k)
	h := c.handover(k, debt)
	lost := uint64(0)
	if added := debt - h.moved - h.shared; added > 0 {
		lost = charge(added)
		h.shared += added - lost
	}
	if lost == 0 {
		h.moved, h.shared = debt, 0
	}
	if !inUse && h.moved > 0 {
		c.takeBack(lastKey, recordDebt, recordDebt-debt+h.moved)
		h.lastDebt, h.moved = debt-h.moved, 0
	}
	if h.moved+h.shared > 0 {
		c.handovers.Store(k, h)
	} else {
		c.handovers.Delete(k)
	}
}

// settle removes from the records the tokens that newer limiters were charged. It is called when no decision uses c as
// a previous limiter any longer.
func (c *refCounted) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handovers.Range(func(key, _ any) bool {
		debt, recordDebt, lastKey := c.owed(key.(engine.Key))
		h := c.handover(key.(engine.Key), debt)
		if amount := h.moved + h.shared; amount > 0 {
			c.takeBack(lastKey, recordDebt, recordDebt-debt+amount)
		}
		return true
	})
	c.handovers.Clear()
}

func (c *refCounted) reset(k engine.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgive(k)
	c.handovers.Delete(k)
}

func (c *refCounted) forgive(k engine.Key) {
	if c.Spread == nil {
		c.Reset(k)
		return
	}
	_ = c.Spread.SetPolicy(c.Spread.Policy()) // this takes back what processors hold; the policy does not change
	c.Spread.Reset()
}

// takeBack reduces a key's debt. No other call may take tokens meanwhile.
func (c *refCounted) takeBack(k engine.Key, debt, amount uint64) {
	if c.Spread != nil {
		c.forgive(k)
		c.Spread.Charge(debt - amount)
		return
	}
	if amount < debt { // the rest of the debt stays in the record
		c.Refund(k, amount)
		if remaining, _ := c.Owed(k); remaining < debt {
			return
		}
	}
	c.Reset(k)
	c.Charge(k, debt-amount) // in case Refund did nothing, because a reservation is not due yet
}
