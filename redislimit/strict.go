package redislimit

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// takeStrict asks the store about a request. If carrier is not nil, the request goes with the renewal of this lease.
func (l *Limiter) takeStrict(
	ctx context.Context, q *Quota, key string, n uint64, carrier *lease.Lease, r *receipt,
) (engine.Decision, error) {
	var a script.Answer
	var isPaid bool
	var err error
	sent := l.now()
	if carrier != nil {
		a, isPaid, err = l.carry(ctx, key, n, carrier)
	} else {
		if d, ok := l.refusals.lookup(key, q.numbers, n, sent); ok {
			return d, nil
		}
		ask := script.Ask{Need: n, Want: n, Quota: q.numbers}
		if r != nil {
			ask.Window = script.AnyWindow // so that the answer for a bucket also has a window
		}
		a, err = l.ask(ctx, key, ask)
		isPaid = a.Granted == n
	}
	if err == nil {
		l.chargeDebt(debtID{key, q.numbers})
		d := q.decision(a, isPaid)
		l.refusals.remember(key, q.numbers, n, sent, d)
		if r != nil && carrier == nil {
			r.origin, r.window = fromStore, a.Window
		} else {
			r.setOrigin(fromLease)
		}
		return d, nil
	}
	return l.fallback(q, key, n, err, r)
}

// fallback decides a request by the failure policy, or returns err if that is not an error of the store.
func (l *Limiter) fallback(q *Quota, key string, n uint64, err error, r *receipt) (engine.Decision, error) {
	if !isStoreError(err) {
		return engine.Decision{}, err // the context's error
	}
	l.fallbacks.Add(1)
	switch l.config.onLoss {
	case FailShare:
		r.setOrigin(fromShare)
		var d engine.Decision
		if l.flight != nil {
			d = l.takePlaces(key, q, n, r != nil)
		} else {
			d = l.takeShare(key, q, n)
		}
		d.Limit = q.policy.Limit()
		return d, nil
	case FailOpen:
		r.setOrigin(fromNowhere) // even if a lease was asked first
		if n > q.policy.Limit() {
			return engine.Decision{Limit: q.policy.Limit(), RetryAfter: engine.Never}, nil
		}
		return engine.Decision{Allowed: true, Limit: q.policy.Limit()}, nil
	}
	return engine.Decision{Limit: q.policy.Limit(), RetryAfter: breaker.ProbeEvery}, err
}

func isStoreError(err error) bool { return errors.Is(err, ErrStore) }

// Fallback decides a request for n tokens by the failure policy ([OnLoss]). It is for a caller that has asked the store
// itself and got the error cause. If n is 0, Fallback takes nothing, and reports how many tokens the node's share has
// left.
func (q Quota) Fallback(key string, n uint64, cause error) (engine.Decision, error) {
	if d, ok, err := q.constantDecision(); ok {
		return d, err
	}
	if l := q.limiter; n == 0 && l.share != nil && errors.Is(cause, ErrStore) {
		d := l.share.Peek(l.share.Key(key).With(q.shareQuota), 1)
		d.Limit = q.policy.Limit()
		return d, nil
	}
	return q.limiter.fallback(&q, key, n, cause, nil)
}

func (q *Quota) decision(a script.Answer, allowed bool) engine.Decision {
	return engine.Decision{
		Allowed: allowed, Limit: q.policy.Limit(), Remaining: a.Remaining,
		RetryAfter: a.RetryAfter, ResetAfter: a.ResetAfter,
	}
}

func (l *Limiter) ask(ctx context.Context, key string, ask script.Ask) (script.Answer, error) {
	if err := ctx.Err(); err != nil {
		return script.Answer{}, err
	}
	queue, item := l.route(key, ask)
	replies := make(chan reply, 1)
	var givenUp atomic.Bool
	err := queue.putOne(item, &givenUp, func(a script.Answer, err error) { replies <- reply{answer: a, err: err} })
	if err != nil {
		return script.Answer{}, err
	}
	defer givenUp.Store(true)
	r := wait(ctx, replies)
	return r.answer, r.err
}

// carry asks the store for the n tokens of a request, together with a renewal of the lease. It reports whether the
// renewal pays for the request. If the context ends before the answer comes, these tokens are lost.
func (l *Limiter) carry(ctx context.Context, key string, n uint64, keyLease *lease.Lease) (script.Answer, bool, error) {
	queue, item := l.route(key, keyLease.Renewal(l.now(), n, true))
	replies := make(chan reply, 1)
	err := queue.putOne(item, nil, func(a script.Answer, err error) {
		if err != nil {
			keyLease.Fail(l.now())
			replies <- reply{err: err}
			return
		}
		replies <- reply{answer: a, isPaid: keyLease.Apply(a, l.now())}
	})
	if err != nil {
		keyLease.Fail(l.now())
		return script.Answer{}, false, err
	}
	r := wait(ctx, replies)
	return r.answer, r.isPaid, r.err
}

type reply struct {
	answer  script.Answer
	answers []script.Answer // for a group
	isPaid  bool            // whether a request that a renewal carried is paid
	err     error
}

// wait waits for the reply, which the queue always sends within its time limit, or until the context is done.
func wait(ctx context.Context, replies <-chan reply) reply {
	select {
	case r := <-replies:
		return r
	case <-ctx.Done():
		return reply{err: ctx.Err()}
	}
}
