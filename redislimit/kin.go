package redislimit

import (
	"slices"
	"sync"

	"github.com/weir-go/weir/engine"
)

// kin are the limiters of a client, by the limit that they are. A node has one share of a limit. So while a limiter
// takes the place of another one, as in a reload, what the share of one admits is taken from the shares of both.
type kin struct {
	mu      sync.RWMutex
	of      map[string][]*Limiter // those that are open, and those that are closed and owe something
	isEnded bool                  // the client is closed
	ended   chan struct{}         // closed then
	charge  sync.WaitGroup        // what closed limiters do
}

func newKin() kin { return kin{of: map[string][]*Limiter{}, ended: make(chan struct{})} }

// join adds a limiter, and takes from its share what those of the others lack.
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

// A lack is what shares lack of a key, as one of their limiters has it.
type lack struct {
	from *Limiter
	n    uint64
}

// lacking returns what the shares of a limit lack, which is the same for each that was there in time: what its limiters
// owe, and what the store has been charged with and has not come back.
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

// inherit takes from the share what others lack.
func (l *Limiter) inherit(lacks map[owing]lack) {
	for of, lack := range lacks {
		l.spendShare(lack.from, of, lack.n)
	}
}

// same returns the limiters of the limit of a limiter, this one included if it was added. The caller has the lock.
func (k *kin) same(l *Limiter) (all []*Limiter) {
	for _, other := range k.of[l.life.node] {
		if other.life.numbers == l.life.numbers {
			all = append(all, other)
		}
	}
	return all
}

// unite makes two limits of one [SharedName] one limit.
func (k *kin) unite(l, before *Limiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.life.node != before.life.node || l.life.numbers == before.life.numbers {
		return
	}
	k.add(before) // a closed one may have left
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

// change runs what takes from a limiter's share and makes a debt of it, or the opposite. It gets the other limiters
// that have shares of the limit. Their shares must change as much before another one decides.
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
	k.add(l) // a closed one may have left
	run(k.others(l))
}

// others returns the other limiters that have shares of the limit. The caller has the lock.
func (k *kin) others(l *Limiter) (others []*Limiter) {
	for _, other := range k.of[l.life.node] {
		if other != l && other.share != nil && other.life.numbers == l.life.numbers {
			others = append(others, other)
		}
	}
	return others
}

// begin reports whether a closed limiter may go on to charge the store, until the client is closed.
func (k *kin) begin() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.isEnded {
		k.charge.Add(1)
	}
	return !k.isEnded
}

// end ends what closed limiters do, and waits for it.
func (k *kin) end() {
	k.mu.Lock()
	isEnded := k.isEnded
	k.isEnded = true
	k.mu.Unlock()
	if !isEnded && k.ended != nil { // the zero Client has none
		close(k.ended)
	}
	k.charge.Wait()
}

// owe returns how many keys owe the store something, by this limiter, its tiers, and closed ones of its limit. lost is
// for how many of these the part of the store is lost.
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
