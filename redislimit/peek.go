package redislimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// Peek says what a key has left and whether n tokens could be taken now, and takes nothing. It asks the store
// whatever the mode, and waits as [Limiter.Take] of a strict limiter does: it is for looking, not for deciding.
//
// Remaining of a leased limiter is what the store has and this node has in hand, less what this node has
// admitted and the store has not charged yet. It does not know what other nodes have in hand, which the store
// has charged, and tokens on their way here are in neither place: so it is exact of a key that nobody asks for, and else
// about right.
//
// The error is [ErrStore] with its cause if the store fails or is lost, whatever the policy, or the context's.
func (l *Limiter) Peek(ctx context.Context, key string, n uint64) (engine.Decision, error) {
	a, err := l.ask(ctx, key, script.Ask{Need: n})
	if err != nil {
		return engine.Decision{}, err
	}
	d := engine.Decision{Limit: l.plan.Limit(), Remaining: a.Remaining, RetryAfter: a.RetryAfter, ResetAfter: a.ResetAfter}
	if l.terms != nil {
		held, owed := l.inHand(key)
		d.Remaining = min(d.Remaining+held, d.Limit)
		d.Remaining -= min(owed, d.Remaining)
	}
	switch d.Allowed = n <= d.Remaining; {
	case d.Allowed:
		d.RetryAfter = 0
	case d.RetryAfter == 0: // the store has the tokens, and they are owed
		rate := l.policy.Rate()
		d.RetryAfter = time.Duration(float64(n-d.Remaining) / rate.Tokens() * float64(rate.Period()))
	}
	return d, nil
}

// inHand returns the tokens of a key that this node has in hand, and those that it has admitted and the store has not
// charged.
func (l *Limiter) inHand(key string) (tokens, owed uint64) {
	if held, ok := l.leases.Load(key); ok {
		tokens, owed = held.Held()
	}
	if l.cold != nil {
		owed += l.first - l.cold.Peek(key, 1).Remaining
	}
	return tokens, owed
}

// Reset makes a key as if it had taken nothing: it deletes the key's state in the store and drops the lease that this
// node has of it, and its share. Tokens that other nodes have in hand stay there and are spent: they are part of O in
// the bound. So each Reset admits at most one limit more, and one [Overdraft] of this node. A renewal of any node that
// is under way meanwhile may be charged after it.
//
// It waits for the store's timeout or until the context is done, whichever is sooner. The error is [ErrStore] with its
// cause if the store fails or is lost, or the context's: the key may be reset then or not.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.cold != nil {
		l.cold.Reset(key)
	}
	if l.share != nil {
		l.share.Reset(key)
	}
	if l.leases != nil {
		l.leases.Delete(key) // whoever renews it puts the answer where nobody finds it
	}
	lane, name := l.lane(key)
	return lane.remove(ctx, name)
}

// remove deletes a key of the store. As a question does, it waits for the store and not for the client: what the
// client has not ended by then counts as an orphan.
func (l *lane) remove(ctx context.Context, key string) error {
	s := l.store
	if n := s.orphans.Load(); n >= maxOrphans {
		return fmt.Errorf("redislimit: %w: %d calls are out of time and not over", ErrStore, n)
	}
	if !l.breaker.allows(l.now()) {
		return fmt.Errorf("redislimit: %w: it is lost, and is tried every %v", ErrStore, probeEvery)
	}
	s.calls.Add(1)
	s.keys.Add(1)
	s.orphans.Add(1)
	done := make(chan error, 1)
	go func() {
		limited, cancel := context.WithTimeout(context.Background(), s.timeout)
		defer cancel()
		done <- s.client.Do(limited, s.client.B().Del().Key(key).Build()).Error()
		s.orphans.Add(-1)
	}()
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	var err error
	select {
	case err = <-done:
	case <-timer.C:
		err = context.DeadlineExceeded
	case <-ctx.Done():
		return ctx.Err()
	}
	if err == nil {
		l.breaker.succeeded()
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		s.timeouts.Add(1)
		err = fmt.Errorf("no answer within %v", s.timeout)
	}
	return l.failed(fmt.Errorf("redislimit: %w: %w", ErrStore, err))
}
