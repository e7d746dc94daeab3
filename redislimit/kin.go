package redislimit

import (
	"slices"
	"sync"

	"github.com/weir-go/weir/engine"
)

// kin contains the limiters of a client, grouped by their limit. A node has only one share of a limit. So while two
// limiters of one limit exist, as in a reload, tokens that the share of one limiter admits are taken from the shares of
// both limiters.
type kin struct {
	mu      sync.RWMutex
	of      map[string][]*Limiter // by limit: open limiters, and closed ones that owe something
	isEnded bool                  // the client is closed
	ended   chan struct{}         // closed when the client is closed
	charge  sync.WaitGroup        // the work of closed limiters
}

func newKin() kin { return kin{of: map[string][]*Limiter{}, ended: make(chan struct{})} }

// join adds a limiter, and takes from its share the tokens that the shares of the limit's other limiters have spent.
func (k *kin) join(l *Limiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, other := range k.of[l.life.node] {
		if l.share != nil && other.share != nil {
			l.share.slow = other.share.slow
		}
	}
	l.inherit(lacking(k.same(l)))
	k.add(l)
}

// A lack says how many tokens of a key are missing from shares. The tokens are counted under the numbers of the limiter
// in the field from.
type lack struct {
	from *Limiter
	n    uint64
}

// lacking returns the tokens that the shares of a limit have spent and that have not come back to the shares. Tokens
// that have been charged to the store since then are included. All shares that existed when the tokens were spent lack
// the same tokens.
func lacking(all []*Limiter) map[owing]lack {
	lacks := map[owing]lack{}
	for _, l := range all {
		for of := range l.owed.Keys {
			lacks[of] = lack{l, lacks[of].n + l.owed.Of(of)}
		}
	}
	for _, l := range all {
		if l.share == nil {
			continue
		}
		l.share.spent.Range(func(of owing, key engine.Key) bool {
			if n, _ := l.share.Owed(key); n > lacks[of].n {
				lacks[of] = lack{l, n}
			}
			return true
		})
	}
	return lacks
}

// inherit takes from l's share the tokens that the other shares of the limit lack.
func (l *Limiter) inherit(lacks map[owing]lack) {
	for of, lack := range lacks {
		l.spendShare(lack.from, of, lack.n)
	}
}

// same returns all limiters of l's limit. They include l if it was added before. The caller has the lock.
func (k *kin) same(l *Limiter) (all []*Limiter) {
	for _, other := range k.of[l.life.node] {
		if other.life.numbers == l.life.numbers {
			all = append(all, other)
		}
	}
	return all
}

// If the limiters l and before have the same [SharedName], unite makes one limit of their two limits.
func (k *kin) unite(l, before *Limiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.life.node != before.life.node || l.life.numbers == before.life.numbers {
		return
	}
	k.add(before) // before may have been closed and removed
	ours, theirs := k.same(l), k.same(before)
	ourLacks, theirLacks := lacking(ours), lacking(theirs)
	for _, one := range ours {
		one.inherit(theirLacks)
	}
	for _, one := range theirs {
		one.inherit(ourLacks)
		one.life.numbers = l.life.numbers
	}
}

// add adds a limiter. The caller has the lock.
func (k *kin) add(l *Limiter) {
	if !slices.Contains(k.of[l.life.node], l) {
		k.of[l.life.node] = append(k.of[l.life.node], l)
	}
}

// leave removes a limiter that is closed and owes nothing.
func (k *kin) leave(l *Limiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.of[l.life.node] = slices.DeleteFunc(k.of[l.life.node], func(other *Limiter) bool { return other == l })
	if len(k.of[l.life.node]) == 0 {
		delete(k.of, l.life.node)
	}
}

// change calls the function run, which changes l's share and debts. This function either takes tokens from the share
// and notes them as a debt, or gives tokens back. It gets the other limiters that have a share of the limit, and must
// change their shares in the same way. If there are other limiters, no other change happens while the function runs.
func (k *kin) change(l *Limiter, run func(others []*Limiter)) {
	k.mu.RLock()
	if len(k.others(l)) == 0 && !l.life.isClosed.Load() {
		run(nil)
		k.mu.RUnlock()
		return
	}
	k.mu.RUnlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(l) // l may have been closed and removed
	run(k.others(l))
}

// others returns the limiters other than l that have shares of the limit. The caller has the lock.
func (k *kin) others(l *Limiter) (others []*Limiter) {
	for _, other := range k.of[l.life.node] {
		if other != l && other.share != nil && other.life.numbers == l.life.numbers {
			others = append(others, other)
		}
	}
	return others
}

// begin reports whether a closed limiter may continue to charge the store. It returns true until the client is closed.
func (k *kin) begin() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.isEnded {
		k.charge.Add(1)
	}
	return !k.isEnded
}

// end ends the work of closed limiters, and waits for it.
func (k *kin) end() {
	k.mu.Lock()
	isEnded := k.isEnded
	k.isEnded = true
	k.mu.Unlock()
	if !isEnded && k.ended != nil { // the zero Client has no such channel
		close(k.ended)
	}
	k.charge.Wait()
}

// owe returns two numbers of keys. The result owing is how many keys owe the store something, in this limiter, its
// tiers, and closed limiters of the same limit. The result lost is how many of these keys are in a lost part of the
// store.
func (k *kin) owe(l *Limiter) (owing, lost int) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, l := range append([]*Limiter{l}, l.tiers...) {
		of, gone := l.owesHere()
		owing, lost = owing+of, lost+gone
		for _, other := range k.of[l.life.node] {
			if other != l && other.life.numbers == l.life.numbers {
				of, gone = other.owesHere()
				owing, lost = owing+of, lost+gone
			}
		}
	}
	return owing, lost
}
