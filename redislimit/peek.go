package redislimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// Peek returns how many tokens a key has left, and whether n tokens could be taken now, without taking any. In both
// modes, Peek waits for the store as [Limiter.Take] of a strict limiter does. Use it to inspect a key, not to decide
// requests.
//
// For a leased limiter, Remaining includes this node's tokens in hand, minus those that were admitted and are not
// charged yet. Tokens that other nodes have in hand, or that are on their way to this node, count as taken. So
// Remaining is exact if the key is idle, and otherwise slightly too low.
//
// If the store fails or is lost, the error is [ErrStore] with its cause, for every failure policy. Peek may also return
// the context's error.
func (l *Limiter) Peek(ctx context.Context, key string, n uint64) (engine.Decision, error) {
	return l.ownQuota.Peek(ctx, key, n)
}

// peek is Peek under a quota. It first charges some tokens to the key, as many as the argument charge says.
func (l *Limiter) peek(ctx context.Context, q *Quota, key string, n, charge uint64) (engine.Decision, error) {
	a, err := l.ask(ctx, key, script.Ask{Need: n, Debt: charge, Quota: q.numbers})
	if err != nil {
		return engine.Decision{}, err
	}
	d := q.decision(a, false)
	if l.terms != nil {
		inHand, owed := l.inHand(key)
		d.Remaining = min(d.Remaining+inHand, d.Limit)
		d.Remaining -= min(owed, d.Remaining)
	}
	switch d.Allowed = n <= d.Remaining; {
	case d.Allowed:
		d.RetryAfter = 0
	case d.RetryAfter == 0: // the store has the tokens, but this node owes them
		rate := l.policy.Rate()
		d.RetryAfter = time.Duration(float64(n-d.Remaining) / rate.Tokens * float64(rate.Period))
	}
	return d, nil
}

// inHand returns a key's tokens in hand, and the tokens that were admitted and are not charged.
func (l *Limiter) inHand(key string) (tokens, owed uint64) {
	if keyLease, ok := l.leases.Load(key); ok {
		tokens, owed = keyLease.Balance()
	}
	if l.firstRequests != nil {
		owed += l.terms.First - l.firstRequests.Peek(l.firstRequests.Key(key), 1).Remaining
	}
	return tokens, owed
}

// Reset sets a key back to the state of a new key, in the store and on this node. Other nodes may still spend their
// tokens in hand. So each Reset admits at most one additional limit, and one additional [Overdraft] of this node. If a
// renewal of any node is in progress, the store may charge the tokens of the renewal after the reset.
//
// Reset waits until the client's timeout is over or the context is done. The error is [ErrStore] with its cause, or the
// context's error. After an error, the key may or may not be reset.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.firstRequests != nil {
		l.firstRequests.Reset(l.firstRequests.Key(key))
	}
	l.resetShare(key)
	if l.leases != nil {
		l.leases.Delete(key) // a renewal in progress ends in a lease that no call finds
	}
	defer l.refusals.drop(key) // after the store has deleted the key
	queue, item := l.route(key, script.Ask{})
	return queue.deleteKey(ctx, item.Key)
}

// deleteKey deletes a key of the store. If the command is not answered within the timeout, it counts as an orphan.
func (q *queue) deleteKey(ctx context.Context, key string) error {
	c, sent := q.client, q.now()
	if n := c.orphans.Load(); n >= maxOrphans {
		return errOrphans(n)
	}
	if !q.allows() {
		return errLost
	}
	c.calls.Add(1)
	c.keys.Add(1)
	c.orphans.Add(1)
	done := make(chan error, 1)
	go func() {
		callCtx, cancel := context.WithTimeout(context.Background(), c.timeout)
		defer cancel()
		done <- q.redis.Do(callCtx, q.redis.B().Del().Key(key).Build()).Error()
		c.orphans.Add(-1)
	}()
	timer := time.NewTimer(c.timeout)
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
		q.noteSuccess()
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		c.timeouts.Add(1)
		err = fmt.Errorf("%w %v", errTimeout, c.timeout)
	}
	return q.noteFailure(sent, fmt.Errorf("redislimit: %w: %w", ErrStore, c.dialer.explain(err)))
}
