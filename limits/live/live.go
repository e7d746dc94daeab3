// Package live keeps what a limit has counted when its configuration changes.
//
// A limiter takes other numbers in place ([engine.Limiter.SetPolicy]). Another size, another algorithm, other tiers and
// a longer log need another table. The limit then has a new limiter and, for a while, previous ones. When a request of
// a key comes, what the key still owes a previous limiter is charged to the new one, and the previous one forgets it
// ([Formers.Move]). So a key never gets a full bucket, and a raised limit takes effect at once: the key has what it
// used, counted by the new numbers.
//
// A previous limiter is dropped when none of its keys owes anything. Until then it takes memory, and each request costs
// a look at it. [MaxFormers] and [MaxBytes] bound that.
package live

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/engine"
)

const (
	// MaxFormers is how many previous limiters a limit has at most.
	MaxFormers = 4
	// MaxBytes is how much memory the tables of the previous limiters take at most if there are two or more. One may be
	// of any size.
	MaxBytes = 1 << 30
)

// A Limiter is the limiter of one limit, and the previous ones. A configuration that uses it calls [Limiter.Acquire] or
// has made it, and calls [Limiter.Release] at its end. Its methods are safe for concurrent use.
type Limiter struct {
	*counted
	formers *Formers
}

// New returns the limiter of a limit that has counted nothing before, with one user.
func New(l *engine.Limiter) *Limiter {
	return newLimiter(l, nil, new(atomic.Int64), forgetting{}, math.MaxUint64)
}

// NewSpread is [New] for a limit that has one bucket on all processors. The embedded Limiter is nil then.
func NewSpread(s *engine.Spread) *Limiter {
	return newLimiter(nil, s, new(atomic.Int64), forgetting{}, math.MaxUint64)
}

// forgetting says when no key of one of several limits with one limiter owes anything: so long after its last request.
// The zero forgetting is of a limit that has the limiter for itself.
type forgetting struct {
	after time.Duration
	now   func() time.Time
}

func newLimiter(l *engine.Limiter, s *engine.Spread, limits *atomic.Int64, f forgetting, most uint64) *Limiter {
	c := &counted{Limiter: l, Spread: s, limits: limits, forget: f}
	c.most.Store(most)
	limits.Add(1)
	c.owners.Store(1)
	c.users.Store(1)
	return &Limiter{counted: c}
}

// Share returns the same limiter for another limit, whose keys are different ones, with one user. after is how long a
// key of that limit may owe something, by the clock now. most is how many tokens of that a key hands over at most, as
// for a limit that counts refused requests, too: see [Limiter.RaiseMost].
func (l *Limiter) Share(after time.Duration, now func() time.Time, most uint64) *Limiter {
	return newLimiter(l.counted.Limiter, nil, l.limits, forgetting{after, now}, most)
}

// RaiseMost has a key hand over up to n tokens, if it handed over fewer: the limit has been raised.
func (l *Limiter) RaiseMost(n uint64) { l.raiseMost(n) }

// Formers returns the previous limiters, for [limits.Limit]; nil if there are none.
//
// [limits.Limit]: https://pkg.go.dev/github.com/weir-go/weir/limits#Limit
func (l *Limiter) Formers() *Formers { return l.formers }

// Acquire adds a user. Another one must use the limiter during the call.
func (l *Limiter) Acquire() *Limiter {
	l.users.Add(1)
	return l
}

// Release removes a user. The last one closes the limiter and the previous ones, but for those that are previous ones
// of another limiter.
func (l *Limiter) Release() {
	if l.users.Add(-1) > 0 {
		return
	}
	if l.forget.now != nil {
		ends := l.forget.now().Add(l.forget.after)
		l.ends.Store(&ends)
	}
	if l.formers != nil {
		l.formers.drop(func(*former) bool { return true })
	}
	l.release()
}

// Replace returns a limiter with one user, whose keys keep what they owe l and the previous limiters of l: see
// [Limiter.HandOver]. If that is an error, next is not closed.
func (l *Limiter) Replace(next *engine.Limiter) (*Limiter, error) {
	to := New(next)
	if err := l.HandOver(to); err != nil {
		return nil, err
	}
	return to, nil
}

// HandOver makes l and the previous limiters of l those of to, which has none and decides nothing yet, so that keys
// keep what they owe. It changes nothing of l: a configuration may still be given up. It sweeps the previous limiters
// and drops those of which no key owes anything. If too many are left, or they take too much memory, it is an error: a
// configuration that would forget what keys have used is refused. to may be the limiter of l, or a previous one: what
// keys owe there is in place.
func (l *Limiter) HandOver(to *Limiter) error {
	all, bytes := l.formers.keep(l.counted), uint64(0)
	all = slices.DeleteFunc(all, func(f *former) bool {
		to.raiseMost(f.most.Load()) // it has what was handed over to it
		switch {
		case f.Limiter == to.counted.Limiter && f.Spread == to.counted.Spread:
			if f.users.Load() == 0 {
				f.settle()
			}
		case f.counted == l.counted || !f.isEmpty():
			if f.Spread == nil {
				bytes += f.Stats().Bytes
			}
			return false
		}
		f.release()
		return true
	})
	if n := len(all); n > MaxFormers || n > 1 && bytes > MaxBytes {
		for _, f := range all {
			f.release()
		}
		return fmt.Errorf("keys still owe %d previous tables, of %d bytes together: want at most %d tables, and of "+
			"two or more %d bytes: undo the change of its algorithm, tiers or room, or try again later", n, bytes, MaxFormers, MaxBytes)
	}
	if len(all) == 0 {
		return nil
	}
	for _, f := range all {
		if f.Spread == nil {
			f.sweeps = f.Stats().Sweeps
		}
	}
	to.formers = &Formers{}
	to.formers.list.Store(&all)
	return nil
}

// Formers are the previous limiters of a limit. Its methods are safe for concurrent use, and nil has none.
type Formers struct {
	mu    sync.Mutex // of changes of the list
	list  atomic.Pointer[[]*former]
	asked atomic.Uint64
}

type former struct {
	*counted
	sweeps uint64 // when it was replaced
}

// Any reports whether a request has to ask.
func (fs *Formers) Any() bool { return fs != nil && fs.list.Load() != nil }

func (fs *Formers) all() []*former {
	if list := fs.list.Load(); list != nil {
		return *list
	}
	return nil
}

// keep returns a limiter and the previous limiters, with one owner more each.
func (fs *Formers) keep(of *counted) []*former {
	of.owners.Add(1)
	all := []*former{{counted: of}}
	if fs == nil {
		return all
	}
	fs.mu.Lock() // those that are dropped meanwhile may be closed
	defer fs.mu.Unlock()
	for _, f := range fs.all() {
		f.owners.Add(1)
		all = append(all, &former{counted: f.counted})
	}
	return all
}

// Move charges to, a key of the limiter l, what the key of a request owes the previous limiters, which forget it. keyOf
// returns the key of the request for one of these; false means that it has none. What l has no room for, and a key
// under [engine.Blocked] or [engine.Unlimited], stays where it is. So does the rest of a debt of which l has room for a
// part: a limit that is lowered and raised again hands nothing out twice.
//
// A request sees either what the key owes there or the charge: the charge comes first, and other requests that find the
// debt wait for a lock.
//
// As long as requests are decided by a previous configuration, its limiter forgets nothing: they find there what the
// key has used. What they take is charged in the same way, but for what has come back since a request of the key looked
// last.
func (fs *Formers) Move(l *engine.Limiter, to engine.Key, keyOf func(*engine.Limiter) (engine.Key, bool)) {
	fs.move(keyOf, func(n uint64) uint64 {
		_, lost := l.Charge(to, n)
		return lost
	})
}

// MoveToSpread is [Formers.Move] to the bucket of a limit that has one for all requests.
func (fs *Formers) MoveToSpread(s *engine.Spread, keyOf func(*engine.Limiter) (engine.Key, bool)) {
	fs.move(keyOf, s.Charge)
}

func (fs *Formers) move(keyOf func(*engine.Limiter) (engine.Key, bool), charge func(n uint64) (lost uint64)) {
	if !fs.Any() {
		return
	}
	for _, f := range fs.all() {
		if k, ok := f.keyBy(keyOf); ok {
			f.move(k, charge)
		}
	}
	const between = 64 // requests
	if fs.asked.Add(1)%between == 0 {
		fs.drop((*former).hasForgotten)
	}
}

// Forget makes a key owe the previous limiters nothing. keyOf is that of Move.
func (fs *Formers) Forget(keyOf func(*engine.Limiter) (engine.Key, bool)) {
	if !fs.Any() {
		return
	}
	for _, f := range fs.all() {
		if k, ok := f.keyBy(keyOf); ok {
			f.reset(k)
		}
	}
}

// keyBy returns the key by keyOf, or the only one of a Spread.
func (f *former) keyBy(keyOf func(*engine.Limiter) (engine.Key, bool)) (engine.Key, bool) {
	if f.Spread != nil {
		return engine.Key{}, true
	}
	return keyOf(f.Limiter)
}

// hasForgotten reports whether no key owes the limiter anything. A sweep that was under way when the limiter was
// replaced does not count.
func (f *former) hasForgotten() bool {
	if f.Spread != nil {
		return f.users.Load() == 0 && f.Spread.Owed() == 0
	}
	s := f.Stats()
	return s.Keys == 0 && s.Sweeps >= f.sweeps+2 || f.isOver()
}

// isEmpty is hasForgotten with a sweep.
func (f *former) isEmpty() bool {
	if f.Spread != nil {
		return f.hasForgotten()
	}
	f.Sweep()
	return f.Stats().Keys == 0 || f.isOver()
}

// isOver reports whether the keys of one of several limits have forgotten.
func (f *former) isOver() bool {
	ends := f.ends.Load()
	return ends != nil && !f.forget.now().Before(*ends)
}

// Limiters returns the previous limiters that have tables.
func (fs *Formers) Limiters() (limiters []*engine.Limiter) {
	if fs.Any() {
		for _, f := range fs.all() {
			if f.Spread == nil {
				limiters = append(limiters, f.Limiter)
			}
		}
	}
	return limiters
}

// drop removes the previous limiters for which is returns true.
func (fs *Formers) drop(is func(*former) bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var left []*former
	for _, f := range fs.all() {
		if is(f) {
			f.release()
		} else {
			left = append(left, f)
		}
	}
	if left == nil {
		fs.list.Store(nil)
		return
	}
	fs.list.Store(&left)
}
