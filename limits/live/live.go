// Package live preserves what a limit has counted when its configuration changes.
//
// A limiter changes its numbers in place ([engine.Limiter.SetPolicy]). A new limiter is necessary if the size of the
// table, the algorithm or the number of tiers changes, or if the log becomes longer. The limit then has previous
// limiters for some time.
//
// When a request of a key comes, the key's debt moves from a previous limiter to the new limiter ([Formers.Move]). So a
// change never gives a key a full bucket, and a raised limit takes effect at once.
//
// A previous limiter is dropped when none of its keys owes anything. Until then it takes memory, and each request costs
// a lookup in it. [MaxFormers] and [MaxBytes] bound this cost.
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
	// MaxFormers is the largest number of previous limiters of a limit.
	MaxFormers = 4
	// MaxBytes is the most memory, in bytes, that the tables of two or more previous limiters may take together.
	MaxBytes = 1 << 30
)

// A Limiter is the current limiter of one limit, together with its previous limiters. Each configuration with the limit
// is a user: it makes the Limiter or calls [Limiter.Acquire], and later calls [Limiter.Release]. All methods are safe
// for concurrent use.
type Limiter struct {
	*refCounted
	formers *Formers
}

// New returns the Limiter of a new limit. It has one user and no previous limiters.
func New(l *engine.Limiter) *Limiter {
	return newLimiter(l, nil, new(atomic.Int64), expiry{}, math.MaxUint64)
}

// NewSpread is [New] for a limit with one bucket on all processors. The embedded *engine.Limiter is then nil.
func NewSpread(s *engine.Spread) *Limiter {
	return newLimiter(nil, s, new(atomic.Int64), expiry{}, math.MaxUint64)
}

// An expiry is for a limit that shares its engine.Limiter. Its keys owe nothing when some time has passed since the
// last request.
type expiry struct {
	after time.Duration
	now   func() time.Time
}

func newLimiter(l *engine.Limiter, s *engine.Spread, limits *atomic.Int64, e expiry, maxDebt uint64) *Limiter {
	c := &refCounted{Limiter: l, Spread: s, limits: limits, expiry: e}
	c.maxDebt.Store(maxDebt)
	limits.Add(1)
	c.owners.Store(1)
	c.users.Store(1)
	return &Limiter{refCounted: c}
}

// Share returns a Limiter for another limit that uses the same engine.Limiter with different keys. It has one user and
// the same previous limiters as l. A key of the other limit owes nothing when the duration after has passed since its
// last request, by the clock of the function now. The argument maxDebt is the largest number of tokens that a key hands
// over; [Limiter.RaiseMost] raises it. It matters if the limit also counts refused requests.
func (l *Limiter) Share(after time.Duration, now func() time.Time, maxDebt uint64) *Limiter {
	to := newLimiter(l.refCounted.Limiter, nil, l.limits, expiry{after, now}, maxDebt)
	if l.formers.Any() {
		to.formers = &Formers{}
		formers := l.formers.keep(nil)
		to.formers.list.Store(&formers)
	}
	return to
}

// RaiseMost is called after the limit was raised. It raises the largest number of tokens that a key hands over to at
// least n.
func (l *Limiter) RaiseMost(n uint64) { l.raiseMaxDebt(n) }

// Formers returns the previous limiters, for the field Formers of [limits.Limit]. It returns nil if there are none.
//
// [limits.Limit]: https://pkg.go.dev/github.com/weir-go/weir/limits#Limit
func (l *Limiter) Formers() *Formers { return l.formers }

// Acquire adds a user. The Limiter must have another user during the call.
func (l *Limiter) Acquire() *Limiter {
	l.users.Add(1)
	return l
}

// Release removes a user. The last Release closes the limiter. It also closes each previous limiter that no other
// Limiter has.
func (l *Limiter) Release() {
	if l.users.Add(-1) > 0 {
		return
	}
	if l.expiry.now != nil {
		ends := l.expiry.now().Add(l.expiry.after)
		l.expiresAt.Store(&ends)
	}
	if l.formers != nil {
		l.formers.drop(func(*former) bool { return true })
	}
	l.release()
}

// Replace returns a Limiter for the engine.Limiter next, with one user, and hands over the debts by [Limiter.HandOver].
// After an error, the engine.Limiter is still open.
func (l *Limiter) Replace(next *engine.Limiter) (*Limiter, error) {
	to := New(next)
	if err := l.HandOver(to); err != nil {
		return nil, err
	}
	return to, nil
}

// HandOver hands over the debts of a limit to its new Limiter, so that keys still owe what they owe now. The new
// Limiter gets l and its previous limiters as its previous limiters. The new Limiter must have no previous limiters,
// and must not have decided anything. HandOver does not change l, because the new configuration may still fail.
//
// HandOver bounds the number of previous limiters. It sweeps them, and drops each one in which no key owes anything. If
// too many remain, or they take too much memory, HandOver returns an error. To drop them anyway would give their keys
// full buckets. If the new Limiter has the same engine.Limiter as a previous one, the debts stay in its records.
func (l *Limiter) HandOver(to *Limiter) error {
	formers, bytes := l.formers.keep(l.refCounted), uint64(0)
	formers = slices.DeleteFunc(formers, func(f *former) bool {
		to.raiseMaxDebt(f.maxDebt.Load()) // a key also owes what was handed over to it
		switch {
		case f.Limiter == to.refCounted.Limiter && f.Spread == to.refCounted.Spread:
			if f.users.Load() == 0 {
				f.settle()
			}
		case f.refCounted == l.refCounted || !f.isEmpty():
			if f.Spread == nil {
				bytes += f.Stats().Bytes
			}
			return false
		}
		f.release()
		return true
	})
	if n := len(formers); n > MaxFormers || n > 1 && bytes > MaxBytes {
		for _, f := range formers {
			f.release()
		}
		return fmt.Errorf("keys still owe tokens in %d previous tables, of %d bytes together: want at most %d "+
			"tables, and for two or more at most %d bytes: undo the change of its algorithm, tiers or room, or "+
			"try again later", n, bytes, MaxFormers, MaxBytes)
	}
	if len(formers) == 0 {
		return nil
	}
	for _, f := range formers {
		if f.Spread == nil {
			f.sweeps = f.Stats().Sweeps
		}
	}
	to.formers = &Formers{}
	to.formers.list.Store(&formers)
	return nil
}

// Formers has the previous limiters of a limit; nil means none. Its methods are safe for concurrent use.
type Formers struct {
	mu       sync.Mutex // serializes changes of the list
	list     atomic.Pointer[[]*former]
	requests atomic.Uint64
}

type former struct {
	*refCounted
	sweeps uint64 // the number of the limiter's sweeps when it was replaced
}

// Any reports whether there are previous limiters. If so, a request must call Move.
func (fs *Formers) Any() bool { return fs != nil && fs.list.Load() != nil }

func (fs *Formers) load() []*former {
	if list := fs.list.Load(); list != nil {
		return *list
	}
	return nil
}

// keep adds an owner to each previous limiter and returns them. The argument first is the first of them, unless it is
// nil.
func (fs *Formers) keep(first *refCounted) (formers []*former) {
	if first != nil {
		first.owners.Add(1)
		formers = []*former{{refCounted: first}}
	}
	if fs == nil {
		return formers
	}
	fs.mu.Lock() // a limiter that is dropped meanwhile may be closed
	defer fs.mu.Unlock()
	for _, f := range fs.load() {
		f.owners.Add(1)
		formers = append(formers, &former{refCounted: f.refCounted, sweeps: f.sweeps})
	}
	return formers
}

// Move charges the current limiter with the debt that a request's key has in the previous limiters. The argument to is
// the key in the current limiter l. The function keyOf returns the key in a previous limiter, or false if the request
// has none there. If l has no room for a part of the debt, that part stays in the previous limiter. If the key is under
// [engine.Blocked] or [engine.Unlimited], the complete debt stays. So a limit that is lowered and raised again hands
// out no token twice. A debt in both limiters does not come back at the sum of their rates.
//
// Move charges l before the previous limiter forgets the debt, so every request finds it. A lock ensures that it is
// charged only once.
//
// While a previous configuration still decides requests, its limiter keeps the debts. The tokens that these requests
// take are charged to l, too. Tokens that have come back since the key's last request are not charged.
func (fs *Formers) Move(l *engine.Limiter, to engine.Key, keyOf func(*engine.Limiter) (engine.Key, bool)) {
	fs.move(keyOf, func(n uint64) uint64 {
		_, lost := l.Charge(to, n)
		return lost
	})
}

// MoveToSpread does the same as [Formers.Move], and charges the single bucket of a Spread.
func (fs *Formers) MoveToSpread(s *engine.Spread, keyOf func(*engine.Limiter) (engine.Key, bool)) {
	fs.move(keyOf, s.Charge)
}

func (fs *Formers) move(keyOf func(*engine.Limiter) (engine.Key, bool), charge func(n uint64) (lost uint64)) {
	if !fs.Any() {
		return
	}
	for _, f := range fs.load() {
		if k, ok := f.keyBy(keyOf); ok {
			f.move(k, charge)
		}
	}
	const dropInterval = 64 // requests
	if fs.requests.Add(1)%dropInterval == 0 {
		fs.drop((*former).hasForgotten)
	}
}

// Forget clears what a key owes the previous limiters. keyOf has the same meaning as for Move.
func (fs *Formers) Forget(keyOf func(*engine.Limiter) (engine.Key, bool)) {
	if !fs.Any() {
		return
	}
	for _, f := range fs.load() {
		if k, ok := f.keyBy(keyOf); ok {
			f.reset(k)
		}
	}
}

// keyBy returns the key of a request in a previous limiter, or the only key of a Spread.
func (f *former) keyBy(keyOf func(*engine.Limiter) (engine.Key, bool)) (engine.Key, bool) {
	if f.Spread != nil {
		return engine.Key{}, true
	}
	return keyOf(f.Limiter)
}

// hasForgotten reports whether no key owes the limiter anything. A sweep that began before the limiter was replaced
// does not count.
func (f *former) hasForgotten() bool {
	if f.Spread != nil {
		return f.users.Load() == 0 && f.Spread.Owed() == 0
	}
	s := f.Stats()
	return s.Keys == 0 && s.Sweeps >= f.sweeps+2 || f.isExpired()
}

func (f *former) isEmpty() bool {
	if f.Spread != nil {
		return f.hasForgotten()
	}
	f.Sweep()
	return f.Stats().Keys == 0 || f.isExpired()
}

// isExpired reports, for a limit that shares its engine.Limiter, whether it has been unused for so long that no key
// owes anything.
func (f *former) isExpired() bool {
	ends := f.expiresAt.Load()
	return ends != nil && !f.expiry.now().Before(*ends)
}

// Limiters returns the previous limiters that have tables.
func (fs *Formers) Limiters() (limiters []*engine.Limiter) {
	if fs.Any() {
		for _, f := range fs.load() {
			if f.Spread == nil {
				limiters = append(limiters, f.Limiter)
			}
		}
	}
	return limiters
}

func (fs *Formers) drop(shouldDrop func(*former) bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var rest []*former
	for _, f := range fs.load() {
		if shouldDrop(f) {
			f.release()
		} else {
			rest = append(rest, f)
		}
	}
	if rest == nil {
		fs.list.Store(nil)
		return
	}
	fs.list.Store(&rest)
}
