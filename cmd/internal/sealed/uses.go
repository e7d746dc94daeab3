package sealed

import (
	"context"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
)

const (
	// MinLifetime, MaxLifetime and DefaultLifetime are of ids.
	MinLifetime, MaxLifetime, DefaultLifetime = time.Second, 24 * time.Hour, 10 * time.Minute
	// skew is how far the clocks of processes with one key may differ, and a clock may be set back.
	skew = time.Minute
)

// A Use says what an id is still good for.
type Use uint8

const (
	// Repeated: the id has been used, and nothing changes.
	Repeated Use = iota
	// First: what was not used comes back, and what was used beyond the estimate is charged.
	First
	// Late: the lifetime of the id is over. Nothing comes back, and what was used beyond the estimate is charged.
	Late
	// NoRoom: there is none to remember that the id has been used. What is Late holds, and the id is as good as before.
	NoRoom
)

// Uses know for a lifetime which ids have been used. Make them with [NewUses]. Their methods may be called from any
// goroutine. They take no memory before the first id is used.
type Uses struct {
	// Lifetime is the longest of ids, and Usual that of ids for which none is asked.
	Lifetime, Usual time.Duration

	now    func() time.Time
	make   func() (*engine.Limiter, error)
	once   sync.Once
	memory *engine.Limiter
	err    error
	store  *redislimit.Limiter // instead
}

// NewUses returns the memory of a process for so many ids that are used within their lifetimes. Some three quarters of
// them find room, and for those that do not the answer is [NoRoom]. Numbers out of range are an error.
func NewUses(lifetime time.Duration, ids int, options ...engine.Option) (*Uses, error) {
	if err := checkLifetime(lifetime); err != nil {
		return nil, err
	}
	policy := engine.TokenBuckets(lifetime + skew) // of one token that comes back when its id has expired
	options = append([]engine.Option{engine.MaxKeys(ids), engine.Overflow(engine.Refuse)}, options...)
	if _, err := engine.Bytes(policy, options...); err != nil {
		return nil, err
	}
	return &Uses{Lifetime: lifetime, Usual: lifetime, now: time.Now, make: func() (*engine.Limiter, error) { return engine.New(policy, options...) }}, nil
}

// NewStoredUses returns the memory of all processes that have a store. It is one memory, whatever their lifetimes:
// an id is remembered for [MaxLifetime] and the skew, since each process may be asked about the ids of all. An error
// is one of the store's limiter.
func NewStoredUses(lifetime time.Duration, client *redislimit.Client) (*Uses, error) {
	if err := checkLifetime(lifetime); err != nil {
		return nil, err
	}
	store, err := redislimit.New(client, "used ids", engine.FixedWindow(1, MaxLifetime+skew), redislimit.SharedName(),
		redislimit.InMode(redislimit.Strict), redislimit.OnLoss(redislimit.FailClosed))
	if err != nil {
		return nil, err
	}
	return &Uses{Lifetime: lifetime, Usual: lifetime, now: time.Now, store: store}, nil
}

func checkLifetime(lifetime time.Duration) error {
	if lifetime < MinLifetime || lifetime > MaxLifetime {
		return fmt.Errorf("a lifetime of %v: want %v to %v", lifetime, MinLifetime, MaxLifetime)
	}
	return nil
}

// WithClock sets the clock by which ids are late, for tests, and returns u.
func (u *Uses) WithClock(now func() time.Time) *Uses {
	u.now = now
	return u
}

// Expires returns until when an id that is sealed now gives something back, of which a client asks that it does for so
// long: Lifetime at most, and Usual where it does not ask.
func (u *Uses) Expires(asked time.Duration) time.Time {
	if asked <= 0 {
		asked = u.Usual
	}
	return u.now().Add(min(asked, u.Lifetime))
}

// IsLate reports whether the lifetime of an id is over.
func (u *Uses) IsLate(o Opened) bool { return !o.Expires.After(u.now()) }

// Use uses an id, and says what for. The error is one of the store, and then the id is as good as before, unless the
// answer was lost.
func (u *Uses) Use(ctx context.Context, o Opened) (Use, error) {
	late, left := First, o.Expires.Sub(u.now())
	if u.IsLate(o) {
		late, left = Late, u.Usual
	}
	if u.store != nil {
		d, err := u.store.Take(ctx, hex.EncodeToString(o.Salt), 1)
		if err != nil || !d.Allowed {
			return Repeated, err
		}
		return late, nil
	}
	if u.once.Do(func() { u.memory, u.err = u.make() }); u.err != nil {
		return Repeated, u.err
	}
	quota, err := u.memory.Quota(engine.TokenBucket(engine.Per(1, min(left, u.Lifetime)+skew), 1))
	if err != nil {
		return Repeated, err
	}
	key := u.memory.KeyBytes(o.Salt).With(quota)
	switch {
	// A take that is refused would make what the id owes come back by its own quota, which is a shorter one. A look
	// leaves it as it is.
	case !u.memory.Peek(key, 1).Allowed:
		return Repeated, nil
	case u.memory.TakeKey(key, 1).Allowed:
		return late, nil
	case late == First && u.memory.Peek(key, 1).Allowed: // it is not known, and there is no room
		return NoRoom, nil
	case u.memory.Peek(key, 1).Allowed:
		return Late, nil
	}
	return Repeated, nil
}

// Close ends the memory. No id is used any more.
func (u *Uses) Close() error {
	u.once.Do(func() {})
	switch {
	case u.store != nil:
		return u.store.Close()
	case u.memory != nil:
		return u.memory.Close()
	}
	return nil
}
