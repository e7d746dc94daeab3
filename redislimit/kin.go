package redislimit

import (
	"slices"
	"sync"

	"github.com/weir-go/weir/engine"
)

// kin contains the limiters of a client, grouped by their limit. Tokens that one limiter's share admits are taken from
// all shares of the limit, because a node has only one share.
type kin struct {
	mu      sync.RWMutex
	of      map[string][]*Limiter // by life.node: open limiters, and closed ones that owe something
	isEnded bool
	ended   chan struct{}  // closed when the client is closed
	charge  sync.WaitGroup // the work of closed limiters
}

func newKin() kin { return kin{of: map[string][]*Limiter{}, ended: make(chan struct{})} }

// join adds a limiter, whose share begins without the tokens that the limit's other shares lack.
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

// A lack says how many tokens are missing from the shares of a limit. The field n counts tokens of the limiter in the
// field from.
type lack struct {
	from *Limiter
	n    uint64
}

// lacking returns the tokens that are missing from the shares of a limit: tokens that were spent and have not come
// back, whether they were charged or not. A spent token is missing from every share that existed at that time.
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

func (l *Limiter) inherit(lacks map[owing]lack) {
	for of, lack := range lacks {
		l.spendShare(lack.from, of, lack.n)
	}
}

// same returns all limiters of l's limit. The caller has the lock.
func (k *kin) same(l *Limiter) (all []*Limiter) {
	for _, other := range k.of[l.life.node] {
		if other.life.numbers == l.life.numbers {
			all = append(all, other)
		}
	}
	return all
}

// unite makes one limit of the limits of two limiters, if both have the same [SharedName].
func (k *kin) unite(l, before *Limiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.life.node != before.life.node || l.life.numbers == before.life.numbers {
		return
	}
	k.add(before) // it may have been closed and removed
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

func (k *kin) add(l *Limiter) {
	if !slices.Contains(k.of[l.life.node], l) {
		k.of[l.life.node] = append(k.of[l.life.node], l)
	}
}

func (k *kin) leave(l *Limiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.of[l.life.node] = slices.DeleteFunc(k.of[l.life.node], func(other *Limiter) bool { return other == l })
	if len(k.of[l.life.node]) == 0 {
		delete(k.of, l.life.node)
	}
}

// change calls run, which changes the share and the debts of l, while no other change happens. If the limit has other
// shares, run must change them in the same way.
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
	k.add(l) // it may have been closed and removed
	run(k.others(l))
}

// others returns the other limiters with shares of the limit. The caller has the lock.
func (k *kin) others(l *Limiter) (others []*Limiter) {
	for _, other := range k.of[l.life.node] {
		if other != l && other.share != nil && other.life.numbers == l.life.numbers {
			others = append(others, other)
		}
	}
	return others
}

// begin reports whether a closed limiter may charge the store. It may until the client is closed.
func (k *kin) begin() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.isEnded {
		k.charge.Add(1)
	}
	return !k.isEnded
}

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

// owe counts the keys of the limit that owe the store something, and those of them in a lost part of the store.
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
