package redislimit

import (
	"github.com/puzpuzpuz/xsync/v4"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// local decides a request if the node can, and known is then true. Otherwise the request goes to the store. If carrier
// is not nil, the request goes with the renewal of this lease.
func (l *Limiter) local(key string, n uint64) (_ engine.Decision, known bool, carrier *lease.Lease) {
	for {
		held, ok := l.leases.Load(key)
		if !ok {
			if l.cold != nil {
				if d := l.cold.Take(key, n); d.Allowed {
					limit := l.limit.Tokens()
					d = engine.Decision{Allowed: true, Limit: limit, Remaining: limit - (l.terms.First - d.Remaining)}
					return d, true, nil
				}
			}
			if held, ok = l.lease(key); !ok {
				return engine.Decision{}, false, nil
			}
		}
		v, renew := held.Take(n, l.now)
		if renew && v == lease.Unknown {
			return engine.Decision{}, false, held
		}
		if renew {
			l.renew(held, key, n)
		}
		switch v {
		case lease.Admitted:
			return l.decision(held, true), true, nil
		case lease.Refused:
			return l.decision(held, false), !l.isLost(key), nil
		case lease.Unknown:
			return engine.Decision{}, false, nil
		}
		l.forget(key, held) // the lease is retired, so the table must not keep it
	}
}

// lease makes a lease for a key, which begins with a debt for the key's first requests.
func (l *Limiter) lease(key string) (*lease.Lease, bool) {
	if l.leases.Size() >= l.config.maxKeys {
		return nil, false
	}
	held, _ := l.leases.LoadOrCompute(key, func() (*lease.Lease, bool) {
		debt := uint64(0)
		if l.cold != nil {
			debt = l.terms.First - l.cold.Peek(l.cold.Key(key), 1).Remaining
			l.cold.Refund(l.cold.Key(key), debt) // this lease charges this debt; the next lease charges a later debt
		}
		return lease.New(l.terms, min(debt, l.terms.Overdraft)), false
	})
	return held, true
}

func (l *Limiter) forget(key string, held *lease.Lease) {
	l.leases.Compute(key, func(present *lease.Lease, _ bool) (*lease.Lease, xsync.ComputeOp) {
		if present == held {
			return nil, xsync.DeleteOp
		}
		return present, xsync.CancelOp
	})
}

// decision returns a decision by a lease, with RetryAfter and ResetAfter from the store's last answer.
func (l *Limiter) decision(held *lease.Lease, allowed bool) engine.Decision {
	d := engine.Decision{Allowed: allowed, Limit: l.limit.Tokens(), Remaining: held.Remaining()}
	retry, reset := held.Waits(l.now())
	d.ResetAfter = reset
	if !allowed {
		d.RetryAfter, d.Remaining = retry, 0
	}
	return d
}

func (l *Limiter) isLost(key string) bool {
	return l.queueOf(key).isLost()
}

// renew asks the store for more tokens, because of a request of n tokens that does not wait for the answer.
func (l *Limiter) renew(held *lease.Lease, key string, n uint64) {
	l.askFor(held, key, held.Renewal(l.now(), n, false))
}

func (l *Limiter) askFor(held *lease.Lease, key string, ask script.Ask) {
	queue, item := l.place(key, ask)
	err := queue.putOne(item, nil, func(a script.Answer, err error) {
		if err != nil {
			held.Fail(l.now())
			return
		}
		held.Apply(a, l.now())
		l.settle(owing{key: key})
	})
	if err != nil {
		held.Fail(l.now())
	}
}
