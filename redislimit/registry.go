package redislimit

import (
	"slices"
	"sync"

	"github.com/weir-go/weir/engine"
)

// A registry contains the limiters of a client, grouped by their limit. Tokens that one limiter's share admits are
// taken from all shares of the limit, because a node has only one share.
type registry struct {
	mu       sync.RWMutex
	limiters map[string][]*Limiter // by life.identity: open limiters, and closed ones that owe something
	isEnded  bool
	ended    chan struct{}  // closed when the client is closed
	charging sync.WaitGroup // the work of closed limiters
}

func newRegistry() registry {
	return registry{limiters: map[string][]*Limiter{}, ended: make(chan struct{})}
}

// join adds a limiter, whose share begins without the tokens that are missing from the limit's other shares.
func (r *registry) join(l *Limiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.limiters[l.life.identity] {
		if l.share != nil && other.share != nil {
			l.share.slow = other.share.slow
		}
	}
	l.inherit(deficits(r.sameLimit(l)))
	r.add(l)
}

// A deficit is a number of tokens that are missing from the shares of a limit. They are tokens of the given limiter.
type deficit struct {
	limiter *Limiter
	n       uint64
}

// deficits returns the tokens that are missing from the shares of a limit: tokens that were spent and have not come
// back, whether they were charged or not. A spent token is missing from every share that existed at that time.
func deficits(limiters []*Limiter) map[debtID]deficit {
	found := map[debtID]deficit{}
	for _, l := range limiters {
		for id := range l.debts.Keys {
			found[id] = deficit{l, found[id].n + l.debts.Owed(id)}
		}
	}
	for _, l := range limiters {
		if l.share == nil {
			continue
		}
		l.share.spent.Range(func(id debtID, key engine.Key) bool {
			if n, _ := l.share.Owed(key); n > found[id].n {
				found[id] = deficit{l, n}
			}
			return true
		})
	}
	return found
}

func (l *Limiter) inherit(missing map[debtID]deficit) {
	for id, d := range missing {
		l.spendShare(d.limiter, id, d.n)
	}
}

// sameLimit returns all limiters of l's limit. The caller has the lock.
func (r *registry) sameLimit(l *Limiter) (limiters []*Limiter) {
	for _, other := range r.limiters[l.life.identity] {
		if other.life.numbers == l.life.numbers {
			limiters = append(limiters, other)
		}
	}
	return limiters
}

// unite makes one limit of the limits of two limiters, if both have the same [SharedName].
func (r *registry) unite(l, previous *Limiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.life.identity != previous.life.identity || l.life.numbers == previous.life.numbers {
		return
	}
	r.add(previous) // it may have been closed and removed
	ours, theirs := r.sameLimit(l), r.sameLimit(previous)
	ourDeficits, theirDeficits := deficits(ours), deficits(theirs)
	for _, limiter := range ours {
		limiter.inherit(theirDeficits)
	}
	for _, limiter := range theirs {
		limiter.inherit(ourDeficits)
		limiter.life.numbers = l.life.numbers
	}
}

func (r *registry) add(l *Limiter) {
	if !slices.Contains(r.limiters[l.life.identity], l) {
		r.limiters[l.life.identity] = append(r.limiters[l.life.identity], l)
	}
}

func (r *registry) remove(l *Limiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limiters[l.life.identity] = slices.DeleteFunc(r.limiters[l.life.identity], func(other *Limiter) bool { return other == l })
	if len(r.limiters[l.life.identity]) == 0 {
		delete(r.limiters, l.life.identity)
	}
}

// change calls run, which changes the share and the debts of l, while no other change happens. If the limit has other
// shares, run must change them in the same way.
func (r *registry) change(l *Limiter, run func(siblings []*Limiter)) {
	r.mu.RLock()
	if len(r.siblings(l)) == 0 && !l.life.isClosed.Load() {
		run(nil)
		r.mu.RUnlock()
		return
	}
	r.mu.RUnlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(l) // it may have been closed and removed
	run(r.siblings(l))
}

// siblings returns the other limiters of l's limit that have shares. The caller has the lock.
func (r *registry) siblings(l *Limiter) (siblings []*Limiter) {
	for _, sibling := range r.limiters[l.life.identity] {
		if sibling != l && sibling.share != nil && sibling.life.numbers == l.life.numbers {
			siblings = append(siblings, sibling)
		}
	}
	return siblings
}

// begin registers the work of a closed limiter. It returns false if the client is closed. Otherwise the caller must
// call charging.Done when the work has ended.
func (r *registry) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isEnded {
		r.charging.Add(1)
	}
	return !r.isEnded
}

// end ends the work of all closed limiters, and waits for its end.
func (r *registry) end() {
	r.mu.Lock()
	isEnded := r.isEnded
	r.isEnded = true
	r.mu.Unlock()
	if !isEnded && r.ended != nil { // the zero Client has no such channel
		close(r.ended)
	}
	r.charging.Wait()
}

// countDebts returns how many keys of the limit owe the store something, and how many of them are in a lost part of the
// store.
func (r *registry) countDebts(l *Limiter) (keys, lostKeys int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, l := range append([]*Limiter{l}, l.tiers...) {
		n, nLost := l.countDebts()
		keys, lostKeys = keys+n, lostKeys+nLost
		for _, other := range r.limiters[l.life.identity] {
			if other != l && other.life.numbers == l.life.numbers {
				n, nLost = other.countDebts()
				keys, lostKeys = keys+n, lostKeys+nLost
			}
		}
	}
	return keys, lostKeys
}
