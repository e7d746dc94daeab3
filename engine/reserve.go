package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/shard"
)

// Why tokens could not be had, for errors.Is.
var (
	// ErrNever: more tokens than the limit were asked for.
	ErrNever = errors.New("more tokens than the limit")
	// ErrTooLong: the tokens will be there, but not soon enough.
	ErrTooLong = errors.New("the wait would be too long")
	// ErrNotTokenBucket: only tokens of a bucket can be taken ahead.
	ErrNotTokenBucket = errors.New("not a token bucket")
)

// A Reservation is tokens that were taken ahead of their time. It is not safe for
// concurrent use.
type Reservation struct {
	limiter *Limiter
	key     Key
	n       uint64
	until   int64 // when the tokens are there
	delay   time.Duration
}

// Delay returns how long to wait, from the moment of the reservation, before the tokens are
// there; 0 if they were.
func (r *Reservation) Delay() time.Duration { return r.delay }

// Cancel gives the tokens back, if their time has not come yet, for others to take or
// reserve. Reservations behind it do not move up. Cancelling twice is harmless.
func (r *Reservation) Cancel() {
	if r.n > 0 && r.limiter.clock.surely() < r.until {
		r.limiter.RefundKey(r.key, r.n)
	}
	r.n = 0
}

// Reserve takes n tokens from the key, all or none, ahead of their time if they will be
// there within longest. The caller waits for Delay and then goes on, or cancels. It is
// shorthand for ReserveKey(l.Key(key), n, longest).
//
// Reservations stand in line: each takes its tokens behind those taken or reserved before, in the
// order in which the calls changed the key's record, and requests that do not wait are refused
// meanwhile. The line is never longer than 2^51 ticks of the bucket, burst included: 26
// days for rates of whole nanoseconds.
//
// The error is [ErrNever], [ErrTooLong] or [ErrNotTokenBucket], with the numbers.
func (l *Limiter) Reserve(key string, n uint64, longest time.Duration) (Reservation, error) {
	return l.ReserveKey(l.Key(key), n, longest)
}

// ReserveKey is [Limiter.Reserve] for a key that is hashed already.
func (l *Limiter) ReserveKey(k Key, n uint64, longest time.Duration) (Reservation, error) {
	r := Reservation{limiter: l, key: k, n: n}
	if !l.table.Buckets() {
		return r, fmt.Errorf("engine: Reserve(%d): %w", n, ErrNotTokenBucket)
	}
	if n == 0 {
		return r, nil
	}
	nanos := l.clock.surely()
	o := l.table.Reserve(l.table.Find(k.hash), nanos, n, k.tier, max(longest, 0))
	switch o.Verdict {
	case shard.TooMuch:
		return r, fmt.Errorf("engine: Reserve(%d): %w of %d", n, ErrNever, o.Plan.Quota(k.tier).Tokens)
	case shard.Admitted:
		r.delay = later(o.At-nanos, o.Overdrawn(k.tier))
		r.until = nanos + int64(r.delay)
		return r, nil
	case shard.Unrecorded:
		r.n = 0 // nothing was taken
		return r, nil
	}
	var d Decision
	l.decide(&d, k, o, o.Plan.Status(o.State, o.At, n, k.tier), nanos, n)
	return r, fmt.Errorf("engine: Reserve(%d): %w: %v, and %v is the longest", n, ErrTooLong, d.RetryAfter, longest)
}

// Wait waits until n tokens are there and takes them. It fails at once, having taken
// nothing, if the context is done, if its deadline would come first, or if n is above
// the limit ([ErrNever], [ErrTooLong]); and with the context's error, giving the tokens back,
// if that is done while it waits. It is shorthand for WaitKey(ctx, l.Key(key), n).
//
// On a token bucket waiters are served in the order in which they came: Wait reserves
// ([Limiter.Reserve]). On the other algorithms a waiter asks again when its tokens should be there,
// and another request may have been faster.
//
// It waits in real time, so the limiter's clock should go with that: not [ClockFunc].
func (l *Limiter) Wait(ctx context.Context, key string, n uint64) error {
	return l.WaitKey(ctx, l.Key(key), n)
}

// WaitKey is [Limiter.Wait] for a key that is hashed already.
func (l *Limiter) WaitKey(ctx context.Context, k Key, n uint64) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		longest := Never
		if deadline, ok := ctx.Deadline(); ok {
			longest = time.Until(deadline)
		}
		r, err := l.ReserveKey(k, n, longest)
		again := errors.Is(err, ErrNotTokenBucket)
		if again {
			r, err = l.ask(k, n, longest)
		}
		if err != nil || r.delay == 0 {
			return err
		}
		if err := sleep(ctx, r.delay); err != nil {
			r.Cancel()
			return err
		}
		if !again {
			return nil
		}
	}
}

// ask takes n tokens if they are there, and else says how long to wait before asking again,
// as a reservation of nothing.
func (l *Limiter) ask(k Key, n uint64, longest time.Duration) (Reservation, error) {
	d := l.TakeKey(k, n)
	switch {
	case d.Allowed:
		return Reservation{}, nil
	case d.RetryAfter == Never:
		return Reservation{}, fmt.Errorf("engine: Wait(%d): %w of %d", n, ErrNever, d.Limit)
	case d.RetryAfter > longest:
		return Reservation{}, fmt.Errorf("engine: Wait(%d): %w: %v, and %v is the longest", n, ErrTooLong, d.RetryAfter, longest)
	}
	return Reservation{delay: d.RetryAfter}, nil
}

// sleep waits for a time or until the context is done.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
