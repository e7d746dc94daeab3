package shares

import (
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v4"
)

// Debts records, for each key, the tokens that a node's shares have admitted and the store has not charged. All methods
// may be called from any goroutine.
type Debts[K comparable] struct {
	keys     *xsync.Map[K, debt]
	count    atomic.Int64 // of keys; changed with the map, so that a key that was just removed can be added again
	maxKeys  int64
	onChange func(key K, tokens uint64) // called with the new debt of a key whenever it changes
}

type debt struct {
	tokens   uint64
	charging uint64 // the part that the current question charges; 0 for none
}

// NewDebts returns an empty Debts with room for maxKeys keys. Tokens of further keys are not recorded, so they are
// never charged. If onChange is not nil, it is called for every change of a key's debt, in order. It is called before
// the method that makes the change returns.
func NewDebts[K comparable](maxKeys int, onChange func(key K, tokens uint64)) *Debts[K] {
	if onChange == nil {
		onChange = func(K, uint64) {}
	}
	return &Debts[K]{keys: xsync.NewMap[K, debt](), maxKeys: int64(maxKeys), onChange: onChange}
}

// Total returns the debt of all keys. It visits every key.
func (d *Debts[K]) Total() (tokens uint64) {
	d.keys.Range(func(_ K, owed debt) bool {
		tokens += owed.tokens
		return true
	})
	return tokens
}

// Room returns how many keys can still be added.
func (d *Debts[K]) Room() int { return int(max(d.maxKeys-d.count.Load(), 0)) }

// Add adds n tokens to a key's debt, and reports whether there was room for the key.
func (d *Debts[K]) Add(key K, n uint64) (added bool) {
	d.keys.Compute(key, func(old debt, exists bool) (debt, xsync.ComputeOp) {
		switch {
		case exists:
		case d.count.Load() >= d.maxKeys:
			return old, xsync.CancelOp
		default:
			d.count.Add(1)
		}
		old.tokens += n
		added = true
		d.onChange(key, old.tokens)
		return old, xsync.UpdateOp
	})
	return added
}

// Forgive subtracts n tokens that were given back from the debt. It does not subtract tokens whose charge is in
// progress.
func (d *Debts[K]) Forgive(key K, n uint64) {
	d.change(key, func(old debt) debt {
		old.tokens -= min(n, old.tokens-old.charging)
		return old
	})
}

// Begin starts a charge for a key and returns its amount. It returns 0 if nothing is owed or a charge is in progress.
// After any other amount, the caller must call End.
func (d *Debts[K]) Begin(key K) (tokens uint64) {
	if d.count.Load() == 0 {
		return 0 // Begin is called after every answer of the store, so this path must be cheap
	}
	d.change(key, func(old debt) debt {
		if old.charging == 0 {
			old.charging, tokens = old.tokens, old.tokens
		}
		return old
	})
	return tokens
}

// End ends the charge. If charged is true, the amount is no longer owed.
func (d *Debts[K]) End(key K, charged bool) {
	d.change(key, func(old debt) debt {
		if charged {
			old.tokens -= old.charging
		}
		old.charging = 0
		return old
	})
}

// Owed returns how many tokens a key owes.
func (d *Debts[K]) Owed(key K) uint64 {
	owed, _ := d.keys.Load(key)
	return owed.tokens
}

// Drop forgets what a key owes.
func (d *Debts[K]) Drop(key K) { d.change(key, func(debt) debt { return debt{} }) }

// Keys calls yield for every key that owes something, until yield returns false.
func (d *Debts[K]) Keys(yield func(key K) bool) {
	d.keys.Range(func(key K, _ debt) bool { return yield(key) })
}

func (d *Debts[K]) change(key K, update func(debt) debt) {
	d.keys.Compute(key, func(old debt, exists bool) (debt, xsync.ComputeOp) {
		if !exists {
			return old, xsync.CancelOp
		}
		changed := update(old)
		if changed.tokens != old.tokens {
			d.onChange(key, changed.tokens)
		}
		if changed.tokens == 0 {
			d.count.Add(-1)
			return changed, xsync.DeleteOp
		}
		return changed, xsync.UpdateOp
	})
}
