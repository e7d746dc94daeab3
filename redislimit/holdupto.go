package redislimit

import (
	"context"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
	"github.com/weir-go/weir/redislimit/internal/shares"
)

// HoldUpTo takes as many tokens as are available, at most the number most, for a request that can use fewer: see
// [engine.Limiter.HoldUpTo]. If fewer tokens than the number least are available, the request is refused and takes
// nothing, even with [ChargeRefusals]. If least is 0, it counts as 1. If least is above the limit, it counts as the
// limit. If most is 0, nothing is taken, and the cost is charged when the hold is settled.
//
// [Hold.Taken] returns how many tokens were taken. Tokens that other nodes have in hand, or that are on their way to
// this node, are not available. Otherwise HoldUpTo works as [Limiter.Hold] does.
func (l *Limiter) HoldUpTo(ctx context.Context, key string, least, most uint64) (*Hold, engine.Decision, error) {
	return l.own.HoldUpTo(ctx, key, least, most)
}

// HoldUpTo is [Limiter.HoldUpTo] under the quota.
func (q Quota) HoldUpTo(ctx context.Context, key string, least, most uint64) (*Hold, engine.Decision, error) {
	if err := q.refuses("HoldUpTo"); err != nil {
		return new(Hold), engine.Decision{}, err
	}
	var r receipt
	n, d, err := q.takeUpTo(ctx, key, least, most, &r)
	h := q.held(key, n, d, r)
	if h == nil {
		h = new(Hold)
	}
	return h, d, err
}

func (q *Quota) leastOf(least uint64) uint64 { return min(max(least, 1), q.policy.Limit()) }

func (q *Quota) askUpTo(least, most, inHand uint64) script.Ask {
	return script.Ask{Need: least - min(least, inHand), Want: most - inHand, All: true, Quota: q.numbers}
}

// takeUpTo takes the available tokens, returns how many, and notes in r where it took them.
func (q *Quota) takeUpTo(ctx context.Context, key string, least, most uint64, r *receipt) (uint64, engine.Decision, error) {
	if d, fixed, err := q.fixed(); fixed {
		return 0, d, err
	}
	l, sent := q.limiter, q.limiter.now()
	least = q.leastOf(least)
	if l.terms == nil {
		if d, known := l.known.of(key, q.numbers, least, sent); known {
			return 0, d, nil
		}
	}
	inHand := l.takeInHand(key, most)
	if inHand == most && most >= least {
		r.are(fromLease)
		d := engine.Decision{Allowed: true, Limit: q.policy.Limit()}
		if held, ok := l.leases.Load(key); ok {
			d = l.decision(held, true)
		}
		return most, d, nil
	}
	ask := q.askUpTo(least, most, inHand)
	if most == 0 && l.terms != nil {
		there, _ := l.inHand(key)
		ask = q.askUpTo(least, 0, 0)
		ask.Need -= min(ask.Need, there)
	}
	ask.Window = script.AnyWindow // so that the answer for a bucket also has a window
	a, err := l.ask(ctx, key, ask)
	switch {
	case err == nil:
		l.settle(owing{key, q.numbers})
		d := q.answered(a, a.RetryAfter == 0)
		if inHand == 0 { // otherwise the question asked for fewer tokens than the request
			l.known.remember(key, q.numbers, least, sent, d)
		}
		if !d.Allowed {
			q.putBack(key, inHand)
			return 0, d, nil
		}
		if r.from, r.window = fromStore, a.Window; inHand > 0 {
			r.from = fromLease
		}
		return inHand + a.Granted, d, nil
	case inHand >= least:
		r.are(fromLease)
		return inHand, engine.Decision{Allowed: true, Limit: q.policy.Limit()}, nil
	}
	q.putBack(key, inHand)
	return q.fallbackUpTo(key, least, most, err, r)
}

// takeInHand takes at most n of the tokens in hand, and returns how many.
func (l *Limiter) takeInHand(key string, n uint64) uint64 {
	if l.terms == nil {
		return 0
	}
	held, ok := l.leases.Load(key)
	if !ok {
		return 0
	}
	tokens, _ := held.Held()
	if n = min(n, tokens); n == 0 {
		return 0
	}
	v, renew := held.Take(n, l.now)
	if renew {
		l.renew(held, key, n)
	}
	if v != lease.Admitted {
		return 0
	}
	return n
}

func (q *Quota) fallbackUpTo(key string, least, most uint64, cause error, r *receipt) (uint64, engine.Decision, error) {
	l := q.limiter
	if l.share == nil || !isStore(cause) {
		d, err := l.fallback(q, key, least, cause, r)
		return 0, d, err
	}
	l.fallbacks.Add(1)
	r.are(fromShare)
	d, n := l.share.takeUpTo(l, key, q, least, most)
	d.Limit = q.policy.Limit()
	return n, d, nil
}

// takeUpTo takes the available tokens of the share. If the share is less than one token, it takes at most one token.
func (s *share) takeUpTo(l *Limiter, key string, q *Quota, least, most uint64) (d engine.Decision, n uint64) {
	of := s.Key(key).With(q.share)
	switch {
	case shares.Interval(q.policy, l.divisor()) > 0 && least == 1 && most > 0:
		if d = l.takeShare(key, q, 1); d.Allowed {
			n = 1
		}
		return d, n
	case least > s.Peek(of, 1).Limit: // larger than the share, but not than the limit
		return engine.Decision{RetryAfter: breaker.ProbeEvery}, 0
	}
	s.change(key, q, func() uint64 {
		var taken engine.Receipt
		if d, taken = s.HoldUpTo(of, least, most); d.Allowed {
			n = taken.Taken()
		}
		return n
	})
	l.outlive()
	return d, n
}
