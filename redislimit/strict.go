package redislimit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// strict asks the store.
func (l *Limiter) strict(ctx context.Context, key string, n uint64) (engine.Decision, error) {
	a, err := l.ask(ctx, key, script.Ask{Need: n, Want: n})
	if err == nil {
		l.settle(key)
		return l.answered(a, a.Granted == n), nil
	}
	if !errors.Is(err, ErrStore) {
		return engine.Decision{}, err // the context's
	}
	if errors.Is(err, errBusy) && l.terms != nil {
		// The store is well, and what the node has in hand is spent: no reason to hand out shares.
		return engine.Decision{Limit: l.limit.Tokens(), RetryAfter: l.client.timeout}, nil
	}
	l.fallbacks.Add(1)
	switch l.config.onFailure {
	case FailLocal:
		d := l.share.take(key, n)
		d.Limit = l.limit.Tokens()
		return d, nil
	case FailOpen:
		return engine.Decision{Allowed: true, Limit: l.limit.Tokens()}, nil
	}
	return engine.Decision{Limit: l.limit.Tokens(), RetryAfter: breaker.ProbeEvery}, err
}

// answered is the store's answer as a decision.
func (l *Limiter) answered(a script.Answer, allowed bool) engine.Decision {
	return engine.Decision{
		Allowed: allowed, Limit: l.limit.Tokens(), Remaining: a.Remaining,
		RetryAfter: a.RetryAfter, ResetAfter: a.ResetAfter,
	}
}

// ask asks the store about one key and waits.
func (l *Limiter) ask(ctx context.Context, key string, ask script.Ask) (script.Answer, error) {
	if err := ctx.Err(); err != nil {
		return script.Answer{}, err
	}
	type reply struct {
		answer script.Answer
		err    error
	}
	queue, name := l.place(key)
	replies := make(chan reply, 1)
	var givenUp atomic.Bool
	err := queue.put(question{name, ask, func(a script.Answer, err error) { replies <- reply{a, err} }, &givenUp})
	if err != nil {
		return script.Answer{}, err
	}
	defer givenUp.Store(true)
	timer := time.NewTimer(l.client.timeout)
	defer timer.Stop()
	select {
	case r := <-replies:
		return r.answer, r.err
	case <-ctx.Done():
		return script.Answer{}, ctx.Err()
	case <-timer.C:
		return script.Answer{}, fmt.Errorf("redislimit: %w: no answer within %v", ErrStore, l.client.timeout)
	}
}
