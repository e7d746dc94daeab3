package redislimit

import (
	"context"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
	"github.com/weir-go/weir/redislimit/internal/shares"
)

// HoldUpTo takes as many tokens as are available, at most maxTokens, for a request that can use fewer: see
// [engine.Limiter.HoldUpTo]. If fewer than minTokens are available, the request is refused and takes nothing, even with
// [ChargeRefusals]. A minTokens of 0 counts as 1, and a minTokens above the limit counts as the limit. If maxTokens is
// 0, nothing is taken, and the cost is charged when the hold is settled.
//
// [Hold.Taken] returns how many tokens were taken. Tokens that other nodes have in hand, or that are on their way to
// this node, are not available. Otherwise HoldUpTo works as [Limiter.Hold] does.
func (l *Limiter) HoldUpTo(ctx context.Context, key string, minTokens, maxTokens uint64) (*Hold, engine.Decision, error) {
	return l.ownQuota.HoldUpTo(ctx, key, minTokens, maxTokens)
}

// HoldUpTo is [Limiter.HoldUpTo] under the quota.
func (q Quota) HoldUpTo(ctx context.Context, key string, minTokens, maxTokens uint64) (*Hold, engine.Decision, error) {
	if err := q.checkNotInFlight("HoldUpTo"); err != nil {
		return new(Hold), engine.Decision{}, err
	}
	var r receipt
	n, d, err := q.takeUpTo(ctx, key, minTokens, maxTokens, &r)
	h := q.newHold(key, n, d, r)
	if h == nil {
		h = new(Hold)
	}
	return h, d, err
}

func (q *Quota) clampMin(minTokens uint64) uint64 { return min(max(minTokens, 1), q.policy.Limit()) }

func (q *Quota) askUpTo(minTokens, maxTokens, inHand uint64) script.Ask {
	return script.Ask{Need: minTokens - min(minTokens, inHand), Want: maxTokens - inHand, All: true, Quota: q.numbers}
}

// takeUpTo takes the available tokens, returns how many, and notes in r where it took them.
func (q *Quota) takeUpTo(ctx context.Context, key string, minTokens, maxTokens uint64, r *receipt) (uint64, engine.Decision, error) {
	if d, ok, err := q.constantDecision(); ok {
		return 0, d, err
	}
	l, sent := q.limiter, q.limiter.now()
	minTokens = q.clampMin(minTokens)
	if l.terms == nil {
		if d, ok := l.refusals.lookup(key, q.numbers, minTokens, sent); ok {
			return 0, d, nil
		}
	}
	inHand := l.takeInHand(key, maxTokens)
	if inHand == maxTokens && maxTokens >= minTokens {
		r.setOrigin(fromLease)
		d := engine.Decision{Allowed: true, Limit: q.policy.Limit()}
		if keyLease, ok := l.leases.Load(key); ok {
			d = l.decision(keyLease, true)
		}
		return maxTokens, d, nil
	}
	ask := q.askUpTo(minTokens, maxTokens, inHand)
	if maxTokens == 0 && l.terms != nil {
		tokens, _ := l.inHand(key)
		ask = q.askUpTo(minTokens, 0, 0)
		ask.Need -= min(ask.Need, tokens)
	}
	ask.Window = script.AnyWindow // so that the answer for a bucket also has a window
	a, err := l.ask(ctx, key, ask)
	switch {
	case err == nil:
		l.chargeDebt(debtID{key, q.numbers})
		d := q.decision(a, a.RetryAfter == 0)
		if inHand == 0 { // otherwise the question asked for fewer tokens than the request
			l.refusals.remember(key, q.numbers, minTokens, sent, d)
		}
		if !d.Allowed {
			q.putBack(key, inHand)
			return 0, d, nil
		}
		if r.origin, r.window = fromStore, a.Window; inHand > 0 {
			r.origin = fromLease
		}
		return inHand + a.Granted, d, nil
	case inHand >= minTokens:
		r.setOrigin(fromLease)
		return inHand, engine.Decision{Allowed: true, Limit: q.policy.Limit()}, nil
	}
	q.putBack(key, inHand)
	return q.fallbackUpTo(key, minTokens, maxTokens, err, r)
}

// takeInHand takes at most n of the tokens in hand, and returns how many.
func (l *Limiter) takeInHand(key string, n uint64) uint64 {
	if l.terms == nil {
		return 0
	}
	keyLease, ok := l.leases.Load(key)
	if !ok {
		return 0
	}
	tokens, _ := keyLease.Balance()
	if n = min(n, tokens); n == 0 {
		return 0
	}
	v, renew := keyLease.Take(n, l.now)
	if renew {
		l.renew(keyLease, key, n)
	}
	if v != lease.Admitted {
		return 0
	}
	return n
}

func (q *Quota) fallbackUpTo(key string, minTokens, maxTokens uint64, cause error, r *receipt) (uint64, engine.Decision, error) {
	l := q.limiter
	if l.share == nil || !isStoreError(cause) {
		d, err := l.fallback(q, key, minTokens, cause, r)
		return 0, d, err
	}
	l.fallbacks.Add(1)
	r.setOrigin(fromShare)
	d, n := l.share.takeUpTo(l, key, q, minTokens, maxTokens)
	d.Limit = q.policy.Limit()
	return n, d, nil
}

// takeUpTo takes the available tokens of the share. If the share is less than one token, it takes at most one token.
func (s *share) takeUpTo(l *Limiter, key string, q *Quota, minTokens, maxTokens uint64) (d engine.Decision, n uint64) {
	shareKey := s.Key(key).With(q.shareQuota)
	switch {
	case shares.Interval(q.policy, l.divisor()) > 0 && minTokens == 1 && maxTokens > 0:
		if d = l.takeShare(key, q, 1); d.Allowed {
			n = 1
		}
		return d, n
	case minTokens > s.Peek(shareKey, 1).Limit: // larger than the share, but not than the limit
		return engine.Decision{RetryAfter: breaker.ProbeEvery}, 0
	}
	s.change(key, q, func() uint64 {
		var taken engine.Receipt
		if d, taken = s.HoldUpTo(shareKey, minTokens, maxTokens); d.Allowed {
			n = taken.Taken()
		}
		return n
	})
	l.outlive()
	return d, n
}
