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
	owed *shares.Debts[owing]
	slow *shares.Slow[string] // by key, for shares of less than a token

	spent *xsync.Map[owing, engine.Key] // debts that the share may still lack, each with its key in the share
	most  int                           // the maximum length of spent
	next  int64                         // when to sweep; only for the background goroutine
}

func newShare(policy engine.Policy, maxKeys int, owed *shares.Debts[owing], options []engine.Option) (*share, error) {
	l, err := engine.New(policy, options...)
	if err != nil {
		return nil, err
	}
	return &share{
		Limiter: l, owed: owed, slow: shares.NewSlow[string](maxKeys), spent: xsync.NewMap[owing, engine.Key](), most: maxKeys,
	}, nil
}

// takeShare decides a request that the store did not decide. A share of less than one token stays empty until the store
// is lost, so a single late answer gives a node no token.
func (l *Limiter) takeShare(key string, q *Quota, n uint64) (d engine.Decision) {
	interval := shares.Interval(q.policy, l.divisor())
	if interval == 0 || n > 1 {
		return l.share.take(key, q, n)
	}
	since, lost := l.queueOf(key).lostSince()
	if !lost {
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
		if d = s.TakeKey(s.Key(key).With(q.share), n); d.Allowed {
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
		d, _ = s.Charge(s.Key(key).With(q.share), n)
		return n
	})
	return d, added
}

// change calls take, which takes tokens of a key, and adds these tokens to the debts. It also takes them from the
// limit's other shares.
func (s *share) change(key string, q *Quota, take func() uint64) (added bool) {
	l, of := q.limiter, owing{key, q.numbers}
	l.client.limiters.kin.change(l, func(others []*Limiter) {
		n := take()
		if n == 0 {
			return
		}
		added = s.owed.Add(of, n)
		s.spend(of, s.Key(key).With(q.share))
		for _, other := range others {
			other.spendShare(l, of, n)
		}
	})
	return added
}

func (s *share) refund(key string, q *Quota, n uint64) {
	l, of := q.limiter, owing{key, q.numbers}
	l.client.limiters.kin.change(l, func(others []*Limiter) {
		s.Refund(s.Key(key).With(q.share), n)
		s.owed.Forgive(of, n)
		for _, other := range others {
			if key, ok := other.shareOf(l, of); ok {
				other.share.Refund(key, n)
			}
		}
	})
}

func (l *Limiter) resetShare(key string) {
	if l.share == nil {
		return
	}
	l.client.limiters.kin.change(l, func(others []*Limiter) {
		for _, l := range append(others, l) {
			l.share.Reset(l.share.Key(key))
			for of := range l.owed.Keys {
				if of.key == key {
					l.owed.Drop(of)
				}
			}
		}
	})
	l.share.slow.DropKey(key)
}

// shareOf returns the key that a debt of another limiter has in l's share. ok is false if l decides no requests with
// this key.
func (l *Limiter) shareOf(from *Limiter, of owing) (key engine.Key, ok bool) {
	key = l.share.Key(of.key)
	if of.numbers == (script.Quota{}) {
		return key, !l.limit.IsOfQuotas()
	}
	policy, err := shares.OfQuota(from.policy, of.numbers.Tokens, from.limit.TokenTime(of.numbers), l.divisor())
	if err == nil {
		var quota engine.Quota
		if quota, err = l.share.Quota(policy); err == nil {
			return key.With(quota), true
		}
	}
	return key, !l.limit.IsOfQuotas() // l's share does not have this quota, so no request has it
}

// spendShare takes the tokens of another limiter's debt from l's share, which may then owe tokens.
func (l *Limiter) spendShare(from *Limiter, of owing, n uint64) {
	if l.share == nil {
		return
	}
	if key, ok := l.shareOf(from, of); ok {
		_, _ = l.share.Charge(key, n) // except tokens above the bound of a debt
		l.share.spend(of, key)
	}
}

func (s *share) spend(of owing, key engine.Key) {
	s.spent.Compute(of, func(old engine.Key, known bool) (engine.Key, xsync.ComputeOp) {
		if known || s.spent.Size() >= s.most {
			return old, xsync.CancelOp
		}
		return key, xsync.UpdateOp
	})
}

const sweepEvery = 5 * time.Second

// sweep removes entries of spent whose keys are full again.
func (s *share) sweep(now int64) {
	if now < s.next {
		return
	}
	s.next = now + int64(sweepEvery)
	s.spent.Range(func(of owing, _ engine.Key) bool {
		s.spent.Compute(of, func(key engine.Key, known bool) (engine.Key, xsync.ComputeOp) {
			if n, _ := s.Owed(key); n > 0 || !known {
				return key, xsync.CancelOp
			}
			return key, xsync.DeleteOp
		})
		return true
	})
}
