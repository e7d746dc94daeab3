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
	// These are the shortest, the longest and the default lifetime of ids.
	MinLifetime, MaxLifetime, DefaultLifetime = time.Second, 24 * time.Hour, 10 * time.Minute
	// skew is by how much the clocks of processes with the same key may differ, and by how much a clock may be set
	// back.
	skew = time.Minute
)

// A Use says what an id can still do.
type Use uint8

const (
	// Repeated means that the id has been used before. Nothing may change.
	Repeated Use = iota
	// First means that this is the first use. Unused tokens come back, and the cost beyond the estimate is charged.
	First
	// Late means that the lifetime of the id is over. Nothing comes back, and the cost beyond the estimate is charged.
	Late
	// NoRoom means that there is no room to remember that the id was used. Treat the id as Late. It can be used again.
	NoRoom
)

// Uses remembers which ids have been used, for the lifetime of an id. Make it with [NewUses] or [NewStoredUses]. Its
// methods may be called from any goroutine. Before the first id is used, it takes no memory.
type Uses struct {
	// Lifetime is the longest lifetime of ids. Usual is the lifetime if the client does not ask for one.
	Lifetime, Usual time.Duration

	now        func() time.Time
	newLimiter func() (*engine.Limiter, error)
	once       sync.Once
	memory     *engine.Limiter
	err        error
	store      *redislimit.Limiter // used instead of memory
}

// NewUses returns Uses in the memory of a process. It is made for the given number of ids that are used within their
// lifetimes. There is room for about three quarters of these ids. For further ids, the result is [NoRoom]. It returns
// an error for numbers out of range.
func NewUses(lifetime time.Duration, ids int, options ...engine.Option) (*Uses, error) {
	if err := checkLifetime(lifetime); err != nil {
		return nil, err
	}
	policy := engine.TokenBuckets(lifetime + skew) // one token, which comes back when the id has certainly expired
	options = append([]engine.Option{engine.MaxKeys(ids), engine.Overflow(engine.Refuse)}, options...)
	if _, err := engine.Bytes(policy, options...); err != nil {
		return nil, err
	}
	return &Uses{Lifetime: lifetime, Usual: lifetime, now: time.Now, newLimiter: func() (*engine.Limiter, error) { return engine.New(policy, options...) }}, nil
}

// NewStoredUses returns Uses that all processes with the same store share, even if their lifetimes differ. A used id is
// remembered for [MaxLifetime] and the skew, because a process may have to decide about the ids of any other process.
// It returns the errors of the store's limiter.
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

// WithClock sets the clock that decides whether ids are late, for tests, and returns u.
func (u *Uses) WithClock(now func() time.Time) *Uses {
	u.now = now
	return u
}

// Expires returns the time until which an id that is sealed now gives tokens back. The id gets the requested lifetime,
// but at most the field Lifetime. If the client requests none, requested is 0, and the id gets the field Usual.
func (u *Uses) Expires(requested time.Duration) time.Time {
	if requested <= 0 {
		requested = u.Usual
	}
	return u.now().Add(min(requested, u.Lifetime))
}

// IsLate reports whether the lifetime of an id has ended.
func (u *Uses) IsLate(o Opened) bool { return !o.Expires.After(u.now()) }

// Use uses an id, and returns what the id can still do. An error comes from the store. After an error the id is unused,
// unless only the store's answer was lost.
func (u *Uses) Use(ctx context.Context, o Opened) (Use, error) {
	use, remaining := First, o.Expires.Sub(u.now())
	if u.IsLate(o) {
		use, remaining = Late, u.Usual
	}
	if u.store != nil {
		d, err := u.store.Take(ctx, hex.EncodeToString(o.Salt), 1)
		if err != nil || !d.Allowed {
			return Repeated, err
		}
		return use, nil
	}
	if u.once.Do(func() { u.memory, u.err = u.newLimiter() }); u.err != nil {
		return Repeated, u.err
	}
	quota, err := u.memory.Quota(engine.TokenBucket(engine.Per(1, min(remaining, u.Lifetime)+skew), 1))
	if err != nil {
		return Repeated, err
	}
	key := u.memory.KeyBytes(o.Salt).With(quota)
	switch {
	// A refused take would make the id's token come back at the rate of the take's own quota, which is faster. A Peek
	// changes nothing.
	case !u.memory.Peek(key, 1).Allowed:
		return Repeated, nil
	case u.memory.TakeKey(key, 1).Allowed:
		return use, nil
	case use == First && u.memory.Peek(key, 1).Allowed: // the limiter has no room, because it does not count the use
		return NoRoom, nil
	case u.memory.Peek(key, 1).Allowed:
		return Late, nil
	}
	return Repeated, nil
}

// Close frees the memory. No id can be used afterwards.
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
