package redislimit

import (
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/script"
	"github.com/weir-go/weir/redislimit/internal/shares"
)

// A share decides for a node when the store does not answer. The tokens that it admits are charged to the store
// afterwards. A share gets tokens back only at its own rate, so over any time, all shares together admit at most one
// limit.
type share struct {
	*engine.Limiter
	debts *shares.Debts[debtID]
	slow  *shares.Slow[string] // by key, for shares of less than a token

	spent     *xsync.Map[debtID, engine.Key] // debts whose tokens may still be missing, each with its key in the share
	maxSpent  int                            // the maximum length of spent
	nextSweep int64                          // when to sweep; only for the background goroutine
}

func newShare(policy engine.Policy, maxKeys int, debts *shares.Debts[debtID], options []engine.Option) (*share, error) {
	l, err := engine.New(policy, options...)
	if err != nil {
		return nil, err
	}
	return &share{
		Limiter: l, debts: debts, slow: shares.NewSlow[string](maxKeys), spent: xsync.NewMap[debtID, engine.Key](), maxSpent: maxKeys,
	}, nil
}

// takeShare decides a request that the store did not decide. A share of less than one token stays empty until the store
// is lost, so a single late answer gives a node no token.
func (l *Limiter) takeShare(key string, q *Quota, n uint64) (d engine.Decision) {
	interval := shares.Interval(q.policy, l.divisor())
	if interval == 0 || n > 1 {
		return l.share.take(key, q, n)
	}
	since, isLost := l.queueOf(key).lostSince()
	if !isLost {
		return engine.Decision{RetryAfter: breaker.ProbeEvery}
	}
	wait := l.share.slow.Take(key, since, l.now(), interval, func() bool {
		d = l.share.take(key, q, n)
		return d.Allowed
	})
	if wait > 0 {
		d = engine.Decision{RetryAfter: wait}
	}
	return d
}

func (s *share) take(key string, q *Quota, n uint64) engine.Decision {
	var d engine.Decision
	s.change(key, q, func() uint64 {
		if d = s.TakeKey(s.Key(key).With(q.shareQuota), n); d.Allowed {
			return n
		}
		return 0
	})
	q.limiter.outlive()
	if d.RetryAfter == engine.Never && n <= q.policy.Limit() { // larger than the share, but not than the limit
		d.RetryAfter = breaker.ProbeEvery
	}
	return d
}

// charge takes n tokens, whether the share has them or not.
func (s *share) charge(key string, q *Quota, n uint64) (d engine.Decision, added bool) {
	added = s.change(key, q, func() uint64 {
		d, _ = s.Charge(s.Key(key).With(q.shareQuota), n)
		return n
	})
	return d, added
}

// change calls take, which takes tokens of a key, and adds these tokens to the debts. It also takes them from the
// limit's other shares.
func (s *share) change(key string, q *Quota, take func() uint64) (added bool) {
	l, id := q.limiter, debtID{key, q.numbers}
	l.client.limiters.registry.change(l, func(siblings []*Limiter) {
		n := take()
		if n == 0 {
			return
		}
		added = s.debts.Add(id, n)
		s.noteSpent(id, s.Key(key).With(q.shareQuota))
		for _, sibling := range siblings {
			sibling.spendShare(l, id, n)
		}
	})
	return added
}

func (s *share) refund(key string, q *Quota, n uint64) {
	l, id := q.limiter, debtID{key, q.numbers}
	l.client.limiters.registry.change(l, func(siblings []*Limiter) {
		s.Refund(s.Key(key).With(q.shareQuota), n)
		s.debts.Forgive(id, n)
		for _, sibling := range siblings {
			if key, ok := sibling.shareKey(l, id); ok {
				sibling.share.Refund(key, n)
			}
		}
	})
}

func (l *Limiter) resetShare(key string) {
	if l.share == nil {
		return
	}
	l.client.limiters.registry.change(l, func(siblings []*Limiter) {
		for _, l := range append(siblings, l) {
			l.share.Reset(l.share.Key(key))
			for id := range l.debts.Keys {
				if id.key == key {
					l.debts.Drop(id)
				}
			}
		}
	})
	l.share.slow.DropKey(key)
}

// shareKey returns the key that a debt of another limiter has in l's share. ok is false if l decides no requests with
// this key.
func (l *Limiter) shareKey(from *Limiter, id debtID) (key engine.Key, ok bool) {
	key = l.share.Key(id.key)
	if id.numbers == (script.Quota{}) {
		return key, !l.limit.IsOfQuotas()
	}
	policy, err := shares.OfQuota(from.policy, id.numbers.Tokens, from.limit.TokenTime(id.numbers), l.divisor())
	if err == nil {
		var quota engine.Quota
		if quota, err = l.share.Quota(policy); err == nil {
			return key.With(quota), true
		}
	}
	return key, !l.limit.IsOfQuotas() // l's share does not have this quota, so no request has it
}

// spendShare takes the tokens of another limiter's debt from l's share, which may then owe tokens.
func (l *Limiter) spendShare(from *Limiter, id debtID, n uint64) {
	if l.share == nil {
		return
	}
	if key, ok := l.shareKey(from, id); ok {
		_, _ = l.share.Charge(key, n) // except tokens above the bound of a debt
		l.share.noteSpent(id, key)
	}
}

func (s *share) noteSpent(id debtID, key engine.Key) {
	s.spent.Compute(id, func(old engine.Key, exists bool) (engine.Key, xsync.ComputeOp) {
		if exists || s.spent.Size() >= s.maxSpent {
			return old, xsync.CancelOp
		}
		return key, xsync.UpdateOp
	})
}

const sweepEvery = 5 * time.Second

// sweep removes entries of spent whose keys are full again.
func (s *share) sweep(now int64) {
	if now < s.nextSweep {
		return
	}
	s.nextSweep = now + int64(sweepEvery)
	s.spent.Range(func(id debtID, _ engine.Key) bool {
		s.spent.Compute(id, func(key engine.Key, exists bool) (engine.Key, xsync.ComputeOp) {
			if n, _ := s.Owed(key); n > 0 || !exists {
				return key, xsync.CancelOp
			}
			return key, xsync.DeleteOp
		})
		return true
	})
}
