package redislimit

import (
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/shares"
)

// A share decides for a node when the store does not answer. All that it admits is owed to the store, and is charged
// when the store answers again. The share itself is refilled at its own rate only. So over any time the shares of all
// nodes admit at most one limit. In addition, the store admits at most what comes back while some nodes have noticed
// its return and others have not.
type share struct {
	*engine.Limiter
	owed *shares.Debts[owing]
	slow *shares.Slow[string] // keys whose share is less than a token
}

func newShare(policy engine.Policy, maxKeys int, owed *shares.Debts[owing], options []engine.Option) (*share, error) {
	l, err := engine.New(policy, options...)
	if err != nil {
		return nil, err
	}
	return &share{l, owed, shares.NewSlow[string](maxKeys)}, nil
}

// takeShare decides about n tokens when the store did not. A share of less than one token is empty unless the store is
// lost: a single late answer gives no node a token.
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

// take decides about n tokens.
func (s *share) take(key string, q *Quota, n uint64) engine.Decision {
	d := s.TakeKey(s.Key(key).With(q.share), n)
	if d.Allowed {
		s.owed.Add(owing{key, q.numbers}, n)
	}
	if d.RetryAfter == engine.Never && n <= q.policy.Limit() { // larger than the share, but not than the limit
		d.RetryAfter = breaker.ProbeEvery
	}
	return d
}

// charge charges n tokens, whether they are there or not.
func (s *share) charge(key string, q *Quota, n uint64) engine.Decision {
	d, _ := s.Charge(s.Key(key).With(q.share), n)
	s.owed.Add(owing{key, q.numbers}, n)
	return d
}

// refund gives n tokens back that the share admitted.
func (s *share) refund(key string, q *Quota, n uint64) {
	s.Refund(s.Key(key).With(q.share), n)
	s.owed.Forgive(owing{key, q.numbers}, n)
}

// reset makes a key as if the share had admitted nothing of it.
func (s *share) reset(key string) {
	s.Reset(s.Key(key))
	s.slow.DropKey(key)
	for of := range s.owed.Keys {
		if of.key == key {
			s.owed.Drop(of)
		}
	}
}
