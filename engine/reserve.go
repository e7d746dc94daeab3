package engine

import (
	"context"
	"errors"
	"fmt"
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
	// ErrNotTokenBucket: only tokens of a bucket can be taken ahead. Those of [Concurrency] cannot be waited for:
	// they come back when they are released.
	ErrNotTokenBucket = errors.New("not a token bucket")
)

// errInFlight is why nothing of [Concurrency] can be waited for.
var errInFlight = fmt.Errorf("%w, but a limit in flight, which has nothing to wait for", ErrNotTokenBucket)

// Reserve takes n tokens from the key, all or none, ahead of their time if they will be there within maxWait. The
// caller waits for delay and then goes on. A caller that does not wait gives the tokens back by [Receipt.Release], as
// far as no other has taken or reserved behind them. The rest is lost then: those behind were told when to go and do
// not move up ([Limiter.Queue]). So a long queue from which all but the last go away is hardly shorter, and no more go
// at one time than the limit. A request that has waited and cost less in the end is refunded or settled as any other.
//
// Reservations stand in line: each takes its tokens behind those taken or reserved before, in the
// order in which the calls changed the key's record, and requests that do not wait are refused
// meanwhile. The line is never longer than 2^51 ticks of the bucket, burst included: 26
// days for rates of whole nanoseconds.
//
// The error is [ErrNever], [ErrTooLong] or [ErrNotTokenBucket], with the numbers; then the receipt is for nothing.
// Reserve does not allocate without an error.
func (l *Limiter) Reserve(k Key, n uint64, maxWait time.Duration) (r Receipt, delay time.Duration, err error) {
	l.requireMade()
	var tokens reservation
	if err := l.reserve(&tokens, k, n, maxWait); err != nil {
		return Receipt{}, 0, fmt.Errorf("engine: Reserve(%d): %w", n, err)
	}
	return tokens.receipt, tokens.delay, nil
}

// A reservation is tokens that were taken ahead of their time.
type reservation struct {
	receipt Receipt
	plan    *shard.Plan // by which they were reserved; nil if nothing was taken
	until   int64       // when the tokens are there
	delay   time.Duration
}

// reserve makes r a reservation from now on.
func (l *Limiter) reserve(r *reservation, k Key, n uint64, maxWait time.Duration) error {
	switch {
	case l.table.Plan().InFlight():
		return errInFlight
	case !l.table.Buckets():
		return ErrNotTokenBucket
	case n == 0:
		return nil
	}
	nanos := l.clock.surely()
	place := l.table.Find(k.hash)
	ends := l.table.Ends(place)
	o := l.table.ReserveAt(place, nanos, nanos, n, k.quota, max(maxWait, 0))
	switch o.Verdict {
	case shard.TooMuch:
		return fmt.Errorf("%w of %d", ErrNever, limitOf(o.Plan, k))
	case shard.Admitted:
		r.plan, r.delay = o.Plan, later(o.At-nanos, o.OverdrawnOf(k.quota))
		r.until = nanos + int64(r.delay)
		r.receipt.limiter, r.receipt.hash = l, k.hash
		r.receipt.of.Enter(&o, n, k.quota, ends)
		return nil
	case shard.Unrecorded, shard.UnlimitedQuota: // nothing was taken
		return nil
	}
	var d Decision
	l.decide(&d, k, o, o.Plan.StatusOf(o.State, o.At, n, k.quota), nanos, n)
	return fmt.Errorf("%w: %v, and %v is the longest", ErrTooLong, d.RetryAfter, maxWait)
}

// Wait waits until n tokens are there and takes them. It fails at once, having taken
// nothing, if the context is done, if its deadline would come first, or if n is above
// the limit ([ErrNever]; [ErrTooLong], which is also a context.DeadlineExceeded); and with the context's error if that
// is done while it waits. Then those behind it move up ([Turn.Leave]). It is shorthand for WaitKey(ctx, l.Key(key), n).
//
// On a token bucket waiters are served in the order in which they came ([Limiter.Queue]). On the other algorithms a
// waiter asks again when its tokens should be there, and another request may have been faster. On [Concurrency] it is
// an error, [ErrNotTokenBucket].
//
// It waits in real time, so the limiter's clock should go with that: not [ClockFunc].
func (l *Limiter) Wait(ctx context.Context, key string, n uint64) error {
	l.requireMade()
	return l.WaitKey(ctx, l.Key(key), n)
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
		turn, delay, err := l.queue(k, n, maxWait)
		switch {
		case err == nil && delay == 0:
			return nil
		case err == nil:
			return turn.wait(ctx)
		}
		if errors.Is(err, ErrNotTokenBucket) && !errors.Is(err, errInFlight) {
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
