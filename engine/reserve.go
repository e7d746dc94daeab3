package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/pause"
	"github.com/weir-go/weir/shard"
)

// These errors say why a call did not get its tokens. Compare with errors.Is.
var (
	// ErrNever means that the call requested more tokens than the limit.
	ErrNever = errors.New("more tokens than the limit")
	// ErrTooLong means that the tokens will come back, but not soon enough.
	ErrTooLong = errors.New("the wait would be too long")
	// ErrNotTokenBucket means that the limiter is not a token bucket. Only tokens of a token bucket can be taken ahead
	// of time. No call can wait for tokens of [Concurrency], because they come back when they are released.
	ErrNotTokenBucket = errors.New("not a token bucket")
)

var errInFlight = fmt.Errorf("%w, but a limit in flight, which has nothing to wait for", ErrNotTokenBucket)

// Reserve takes n tokens from the key, all or none. It also takes tokens that the key does not have yet, but will have
// within maxWait. The caller must wait for delay, and may then proceed. The error is [ErrNever], [ErrTooLong] or
// [ErrNotTokenBucket] with the numbers of the request, and the receipt is then void. Reserve allocates only for an
// error.
//
// Reservations form a queue: each takes its tokens behind those that were taken or reserved before. While the queue is
// not empty, requests that do not wait are refused. The queue, including the burst, is at most 2^51 ticks of the bucket
// long: 26 days if a token takes a whole number of nanoseconds.
//
// A caller that does not want to wait calls [Receipt.Release]. But its tokens are lost if another caller has taken or
// reserved tokens behind them, because that caller already knows when its reservation is due. So a long queue hardly
// gets shorter if callers leave. With [Limiter.Queue], callers move up instead.
func (l *Limiter) Reserve(k Key, n uint64, maxWait time.Duration) (r Receipt, delay time.Duration, err error) {
	l.requireMade()
	var result reservation
	if err := l.reserve(&result, k, n, maxWait); err != nil {
		return Receipt{}, 0, fmt.Errorf("engine: Reserve(%d): %w", n, err)
	}
	return result.receipt, result.delay, nil
}

type reservation struct {
	receipt Receipt
	plan    *shard.Plan // the plan at the time of the reservation; nil if nothing was taken
	due     int64       // when the tokens are available
	delay   time.Duration
}

func (l *Limiter) reserve(r *reservation, k Key, n uint64, maxWait time.Duration) error {
	switch {
	case l.table.Plan().InFlight():
		return errInFlight
	case !l.table.Buckets():
		return ErrNotTokenBucket
	case n == 0:
		return nil
	}
	nanos := l.clock.exactNanos()
	place := l.table.Find(k.hash)
	ends := l.table.Ends(place)
	o := l.table.ReserveAt(place, nanos, nanos, n, k.quota, max(maxWait, 0))
	switch o.Verdict {
	case shard.TooMuch:
		return fmt.Errorf("%w of %d", ErrNever, limitOf(o.Plan, k))
	case shard.Admitted:
		r.plan, r.delay = o.Plan, addDelay(o.At-nanos, o.OverdrawnOf(k.quota))
		r.due = nanos + int64(r.delay)
		r.receipt.limiter, r.receipt.hash = l, k.hash
		r.receipt.tableReceipt.Enter(&o, n, k.quota, ends)
		return nil
	case shard.Unrecorded, shard.UnlimitedQuota: // nothing was taken
		return nil
	}
	var d Decision
	l.decide(&d, k, o, o.Plan.StatusOf(o.State, o.At, n, k.quota), nanos, n)
	return fmt.Errorf("%w: %v, and %v is the longest", ErrTooLong, d.RetryAfter, maxWait)
}

// Wait waits until the key has n tokens, and takes them. It is shorthand for WaitKey(ctx, l.Key(key), n). In three
// cases, it returns an error at once and takes nothing:
//
//   - The context is done.
//   - n is above the limit ([ErrNever]).
//   - The context's deadline is before the time at which the tokens are available ([ErrTooLong]). This error is also a
//     context.DeadlineExceeded.
//
// If the context becomes done during the wait, Wait returns the context's error, and the callers behind it move up
// ([Turn.Leave]).
//
// With a token bucket, waiting calls get their tokens in the order in which they came ([Limiter.Queue]). With other
// algorithms, a waiting call tries again when its tokens should be available, and another request may take them first.
// With [Concurrency], Wait returns [ErrNotTokenBucket]. Wait waits in real time, so do not use it with [ClockFunc].
func (l *Limiter) Wait(ctx context.Context, key string, n uint64) error {
	l.requireMade()
	return l.WaitKey(ctx, l.Key(key), n)
}

// WaitKey is [Limiter.Wait] for a key that has been hashed already.
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
			delay, err = l.tryTake(k, n, maxWait)
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

// tryTake takes n tokens if they are available. Otherwise it returns how long to wait before the next try.
func (l *Limiter) tryTake(k Key, n uint64, maxWait time.Duration) (time.Duration, error) {
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
