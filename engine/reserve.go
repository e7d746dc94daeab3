package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/pause"
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
	// ErrInFlight: tokens of [Concurrency] come back when they are released, and no wait is known that brings them.
	ErrInFlight = errors.New("a limit in flight has nothing to wait for")
)

// A Reservation is tokens that were taken ahead of their time. It may be used from any goroutine.
type Reservation struct {
	done    atomic.Bool // cancelled, or its receipt was given out
	receipt Receipt
	until   int64 // when the tokens are there
	delay   time.Duration
}

// Delay returns how long to wait, from the moment of the reservation, before the tokens are
// there; 0 if they were.
func (r *Reservation) Delay() time.Duration { return r.delay }

// Cancel gives the tokens back if their time has not come yet, and if no other has taken or reserved behind them. Else
// it gives what those behind leave ([Receipt.Refund]), and the rest is lost: they were told when to go and do not move
// up, and there is no place in a bucket for a gap between them. So a long queue from which all but the last go away is
// hardly shorter, and Cancel never lets more go at one time than the limit. Cancelling twice is harmless.
func (r *Reservation) Cancel() {
	if !r.done.Swap(true) && r.receipt.limiter != nil && r.receipt.limiter.clock.latest() < r.until {
		r.receipt.Refund(math.MaxUint64)
	}
}

// Receipt returns the receipt for the tokens, by which they can be given back after their time has come, too: for a
// request that waited for them and cost less in the end, or nothing ([Receipt.Refund]). From then on the receipt stands
// for them: Cancel does nothing, and a second call returns the receipt for nothing, as it does after Cancel.
func (r *Reservation) Receipt() Receipt {
	if r.done.Swap(true) {
		return Receipt{}
	}
	return r.receipt
}

// Reserve takes n tokens from the key, all or none, ahead of their time if they will be
// there within maxWait. The caller waits for Delay and then goes on, or cancels. It is
// shorthand for ReserveKey(l.Key(key), n, maxWait).
//
// Reservations stand in line: each takes its tokens behind those taken or reserved before, in the
// order in which the calls changed the key's record, and requests that do not wait are refused
// meanwhile. The line is never longer than 2^51 ticks of the bucket, burst included: 26
// days for rates of whole nanoseconds.
//
// The error is [ErrNever], [ErrTooLong], [ErrNotTokenBucket] or [ErrInFlight], with the numbers; then the reservation
// is nil. A reservation is allocated, 96 bytes.
func (l *Limiter) Reserve(key string, n uint64, maxWait time.Duration) (*Reservation, error) {
	return l.ReserveKey(l.madeKey(key), n, maxWait)
}

// ReserveKey is [Limiter.Reserve] for a key that is hashed already.
func (l *Limiter) ReserveKey(k Key, n uint64, maxWait time.Duration) (*Reservation, error) {
	l.requireMade()
	r := &Reservation{}
	nanos := l.clock.surely()
	if err := l.reserve(r, k, n, nanos, nanos, maxWait); err != nil {
		return nil, fmt.Errorf("engine: Reserve(%d): %w", n, err)
	}
	return r, nil
}

// ReserveAt is ReserveKey at a time that the caller supplies: see [Limiter.TakeAt]. A time that is further ahead than
// [MaxLead] is an error, and nothing is taken.
func (l *Limiter) ReserveAt(k Key, n uint64, now time.Time, maxWait time.Duration) (*Reservation, error) {
	l.requireMade()
	nanos, clock, early := l.instant(now)
	if early > 0 {
		return nil, tooEarly("ReserveAt", now, early)
	}
	r := &Reservation{}
	if err := l.reserve(r, k, n, nanos, clock, maxWait); err != nil {
		return nil, fmt.Errorf("engine: ReserveAt(%d): %w", n, err)
	}
	return r, nil
}

func (l *Limiter) reserve(r *Reservation, k Key, n uint64, nanos, clock int64, maxWait time.Duration) error {
	_, err := l.reserveBy(r, k, n, nanos, clock, maxWait)
	return err
}

// reserveBy is reserve, and returns the plan by which it was made; nil if nothing was taken.
func (l *Limiter) reserveBy(r *Reservation, k Key, n uint64, nanos, clock int64, maxWait time.Duration) (*shard.Plan, error) {
	if l.table.Plan().InFlight() {
		return nil, ErrInFlight
	}
	if !l.table.Buckets() {
		return nil, ErrNotTokenBucket
	}
	if n == 0 {
		return nil, nil
	}
	place := l.table.Find(k.hash)
	ends := l.table.Ends(place)
	o := l.table.ReserveAt(place, nanos, clock, n, k.quota, max(maxWait, 0))
	switch o.Verdict {
	case shard.TooMuch:
		return nil, fmt.Errorf("%w of %d", ErrNever, limitOf(o.Plan, k))
	case shard.Admitted:
		r.delay = later(o.At-nanos, o.OverdrawnOf(k.quota))
		r.until = nanos + int64(r.delay)
		r.receipt.limiter, r.receipt.hash = l, k.hash
		r.receipt.of.Enter(&o, n, k.quota, ends)
		return o.Plan, nil
	case shard.Unrecorded, shard.UnlimitedQuota: // nothing was taken
		return nil, nil
	}
	var d Decision
	l.decide(&d, k, o, o.Plan.StatusOf(o.State, o.At, n, k.quota), nanos, n)
	return nil, fmt.Errorf("%w: %v, and %v is the longest", ErrTooLong, d.RetryAfter, maxWait)
}

// Wait waits until n tokens are there and takes them. It fails at once, having taken
// nothing, if the context is done, if its deadline would come first, or if n is above
// the limit ([ErrNever]; [ErrTooLong], which is also a context.DeadlineExceeded); and with the context's error if that
// is done while it waits. Then those behind it move up ([Turn.Leave]). It is shorthand for WaitKey(ctx, l.Key(key), n).
//
// On a token bucket waiters are served in the order in which they came ([Limiter.QueueKey]). On the other algorithms a
// waiter asks again when its tokens should be there, and another request may have been faster. On [Concurrency] it is
// an error, [ErrInFlight].
//
// It waits in real time, so the limiter's clock should go with that: not [ClockFunc].
func (l *Limiter) Wait(ctx context.Context, key string, n uint64) error {
	return l.WaitKey(ctx, l.madeKey(key), n)
}

// WaitKey is [Limiter.Wait] for a key that is hashed already.
func (l *Limiter) WaitKey(ctx context.Context, k Key, n uint64) error {
	l.requireMade()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		maxWait := Never
		if deadline, ok := ctx.Deadline(); ok {
			maxWait = time.Until(deadline)
		}
		turn, waits, err := l.queue(k, n, maxWait)
		switch {
		case err == nil && !waits:
			return nil
		case err == nil:
			return turn.wait(ctx)
		}
		delay := time.Duration(0)
		if errors.Is(err, ErrNotTokenBucket) {
			delay, err = l.ask(k, n, maxWait)
		}
		if errors.Is(err, ErrTooLong) && maxWait != Never {
			return fmt.Errorf("engine: Wait(%d): %w (%w)", n, err, context.DeadlineExceeded)
		} else if err != nil {
			return fmt.Errorf("engine: Wait(%d): %w", n, err)
		} else if delay == 0 {
			return nil
		}
		if err := pause.For(ctx, delay); err != nil {
			return err
		}
	}
}

// ask takes n tokens if they are there, and else says how long to wait before asking again.
func (l *Limiter) ask(k Key, n uint64, maxWait time.Duration) (time.Duration, error) {
	d := l.TakeKey(k, n)
	switch {
	case d.Allowed:
		return 0, nil
	case d.RetryAfter == Never:
		return 0, fmt.Errorf("%w of %d", ErrNever, d.Limit)
	case d.RetryAfter > maxWait:
		return 0, fmt.Errorf("%w: %v, and %v is the longest", ErrTooLong, d.RetryAfter, maxWait)
	}
	return d.RetryAfter, nil
}
