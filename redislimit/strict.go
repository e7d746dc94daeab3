package redislimit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// strict asks the store.
func (l *Limiter) strict(ctx context.Context, key string, n uint64) (engine.Decision, error) {
	a, err := l.ask(ctx, key, script.Ask{Need: n, Want: n})
	if err == nil {
		l.settle(key)
		return engine.Decision{Allowed: a.Granted == n, Limit: l.plan.Limit(), Remaining: a.Remaining, RetryAfter: a.RetryAfter, ResetAfter: a.ResetAfter}, nil
	}
	if !errors.Is(err, ErrStore) {
		return engine.Decision{}, err // the context's
	}
	if errors.Is(err, errBusy) && l.terms != nil {
		// The store is well, and what the node has in hand is spent: no reason to hand out shares.
		return engine.Decision{Limit: l.plan.Limit(), RetryAfter: l.store.timeout}, nil
	}
	l.lost.Add(1)
	switch l.config.loss {
	case Share:
		d := l.share.take(key, n)
		d.Limit = l.plan.Limit()
		return d, nil
	case Admit:
		return engine.Decision{Allowed: true, Limit: l.plan.Limit()}, nil
	}
	return engine.Decision{Limit: l.plan.Limit(), RetryAfter: probeEvery}, err
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
	lane, name := l.lane(key)
	replies := make(chan reply, 1)
	var givenUp atomic.Bool
	err := lane.put(question{name, ask, func(a script.Answer, err error) { replies <- reply{a, err} }, &givenUp})
	if err != nil {
		return script.Answer{}, err
	}
	defer givenUp.Store(true)
	timer := time.NewTimer(l.store.timeout)
	defer timer.Stop()
	select {
	case r := <-replies:
		return r.answer, r.err
	case <-ctx.Done():
		return script.Answer{}, ctx.Err()
	case <-timer.C:
		return script.Answer{}, fmt.Errorf("redislimit: %w: no answer within %v", ErrStore, l.store.timeout)
	}
}
