package redislimit

import (
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/breaker"
	"github.com/weir-go/weir/redislimit/internal/script"
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

	spent *xsync.Map[owing, engine.Key] // keys of which the share may lack something
	most  int                           // of these
	next  int64                         // when to look which lack nothing; of the goroutine that keeps the limiter
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

// charge charges n tokens, whether they are there or not.
func (s *share) charge(key string, q *Quota, n uint64) (d engine.Decision, added bool) {
	added = s.change(key, q, func() uint64 {
		d, _ = s.Charge(s.Key(key).With(q.share), n)
		return n
	})
	return d, added
}

// change has take take tokens of a key from the share, and return how many. They are owed, and taken from the shares of
// the kin. It reports whether there was room for the debt.
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

// refund gives n tokens back that the share admitted.
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

// resetShare makes a key as if no share of the limit had admitted anything of it.
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

// shareOf returns a key of the share that stands for what another limiter of the limit owes, or this one. It returns
// false if no request is decided so here.
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
	return key, !l.limit.IsOfQuotas() // the share does not hold this quota, so no request has it
}

// spendShare takes n tokens from the share that another limiter of the limit owes, or this one. A smaller share than
// that is in debt, as after any change of numbers.
func (l *Limiter) spendShare(from *Limiter, of owing, n uint64) {
	if l.share == nil {
		return
	}
	if key, ok := l.shareOf(from, of); ok {
		_, _ = l.share.Charge(key, n) // what exceeds the bound of a debt does not count
		l.share.spend(of, key)
	}
}

// spend notes that the share may lack something of a key.
func (s *share) spend(of owing, key engine.Key) {
	s.spent.Compute(of, func(old engine.Key, known bool) (engine.Key, xsync.ComputeOp) {
		if known || s.spent.Size() >= s.most {
			return old, xsync.CancelOp
		}
		return key, xsync.UpdateOp
	})
}

// sweepEvery is how often a limiter looks which keys lack nothing.
const sweepEvery = 5 * time.Second

// sweep forgets the keys of which the share lacks nothing.
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
