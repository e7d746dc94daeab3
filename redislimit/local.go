package redislimit

import (
	"github.com/puzpuzpuz/xsync/v4"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// takeLocal decides a request if the node can. If ok is false, the request must go to the store: if carrier is not nil,
// with the renewal of this lease.
func (l *Limiter) takeLocal(key string, n uint64) (_ engine.Decision, ok bool, carrier *lease.Lease) {
	for {
		keyLease, ok := l.leases.Load(key)
		if !ok {
			if l.firstRequests != nil {
				if d := l.firstRequests.Take(key, n); d.Allowed {
					limit := l.limit.Tokens()
					d = engine.Decision{Allowed: true, Limit: limit, Remaining: limit - (l.terms.First - d.Remaining)}
					return d, true, nil
				}
			}
			if keyLease, ok = l.lease(key); !ok {
				return engine.Decision{}, false, nil
			}
		}
		v, renew := keyLease.Take(n, l.now)
		if renew && v == lease.Unknown {
			return engine.Decision{}, false, keyLease
		}
		if renew {
			l.renew(keyLease, key, n)
		}
		switch v {
		case lease.Admitted:
			return l.decision(keyLease, true), true, nil
		case lease.Refused:
			return l.decision(keyLease, false), !l.isLost(key), nil
		case lease.Unknown:
			return engine.Decision{}, false, nil
		}
		l.forget(key, keyLease) // the lease is retired, so the table must not keep it
	}
}

// lease makes a lease for a key, which begins with a debt for the key's first requests.
func (l *Limiter) lease(key string) (*lease.Lease, bool) {
	if l.leases.Size() >= l.config.maxKeys {
		return nil, false
	}
	keyLease, _ := l.leases.LoadOrCompute(key, func() (*lease.Lease, bool) {
		debt := uint64(0)
		if l.firstRequests != nil {
			debt = l.terms.First - l.firstRequests.Peek(l.firstRequests.Key(key), 1).Remaining
			l.firstRequests.Refund(l.firstRequests.Key(key), debt) // now it is the lease that charges this debt
		}
		return lease.New(l.terms, min(debt, l.terms.Overdraft)), false
	})
	return keyLease, true
}

func (l *Limiter) forget(key string, keyLease *lease.Lease) {
	l.leases.Compute(key, func(current *lease.Lease, _ bool) (*lease.Lease, xsync.ComputeOp) {
		if current == keyLease {
			return nil, xsync.DeleteOp
		}
		return current, xsync.CancelOp
	})
}

// decision returns a decision by a lease, with RetryAfter and ResetAfter from the store's last answer.
func (l *Limiter) decision(keyLease *lease.Lease, allowed bool) engine.Decision {
	d := engine.Decision{Allowed: allowed, Limit: l.limit.Tokens(), Remaining: keyLease.Remaining()}
	retry, reset := keyLease.Waits(l.now())
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
func (l *Limiter) renew(keyLease *lease.Lease, key string, n uint64) {
	l.askForLease(keyLease, key, keyLease.Renewal(l.now(), n, false))
}

func (l *Limiter) askForLease(keyLease *lease.Lease, key string, ask script.Ask) {
	queue, item := l.route(key, ask)
	err := queue.putOne(item, nil, func(a script.Answer, err error) {
		if err != nil {
			keyLease.Fail(l.now())
			return
		}
		keyLease.Apply(a, l.now())
		l.chargeDebt(debtID{key: key})
	})
	if err != nil {
		keyLease.Fail(l.now())
	}
}
