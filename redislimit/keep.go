package redislimit

import (
	"time"

	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// keep does the background work of a limiter until Close.
func (l *Limiter) keep() {
	ticker := time.NewTicker(defaults.KeepEvery)
	defer ticker.Stop()
	for {
		l.compare()
		l.client.watchEviction(l.now())
		select {
		case <-l.stop:
			return
		case <-ticker.C:
		case <-l.wake:
		}
		l.refusals.sweep(l.now())
		if l.share != nil {
			l.share.slow.Drop(func(key string) bool { return !l.isLost(key) })
			l.share.sweep(l.now())
		}
		l.work()
		l.takeOverFiles()
	}
}

// work is the part of keep that a closed limiter continues ([Limiter.outlive]).
func (l *Limiter) work() {
	l.updateRoutes()
	l.probeLost()
	for id := range l.debts.Keys {
		if l.canSendNonUrgent(id.key) {
			l.chargeDebt(id)
		}
	}
	l.keepDebts()
	if l.flight != nil {
		l.renewPlaces()
	}
	if l.leases != nil {
		l.leases.Range(func(key string, keyLease *lease.Lease) bool {
			if l.canSendNonUrgent(key) {
				l.checkLease(key, keyLease)
			}
			return true
		})
	}
}

func (l *Limiter) probeLost() {
	queues := l.routes.Load().queues
	for part := range queues {
		if queues[part].breaker.IsOpen() {
			l.probe(&queues[part], part)
		}
	}
}

// probe finds out whether a lost part of the store is back, by taking a token of a key that no request can name, and
// giving it back. A read is not enough, because some servers answer but refuse writes.
func (l *Limiter) probe(queue *queue, part int) {
	key := l.namer.probe(part)
	var quota script.Quota
	if l.limit.IsOfQuotas() {
		quota = script.Quota{Tokens: 1, Units: 1}
	}
	charge := script.Item{Limit: l.limit, Key: key, Ask: script.Ask{Debt: 1, Quota: quota}}
	_ = queue.putOne(charge, nil, func(_ script.Answer, err error) { // not sent if the next probe is not due
		if err == nil {
			refund := script.Item{Limit: l.limit, Key: key, Ask: script.Ask{Returned: 1, Window: script.AnyWindow, Quota: quota}}
			_ = queue.putOne(refund, nil, func(script.Answer, error) {})
		}
	})
}

// canSendNonUrgent reports whether a question that is not urgent can be sent now. During a loss it cannot: a settlement
// would take tokens out of hand that requests can still spend.
func (l *Limiter) canSendNonUrgent(key string) bool {
	queue := l.queueOf(key)
	return !queue.isLost() && !queue.isBusy()
}

func (l *Limiter) checkLease(key string, keyLease *lease.Lease) {
	settle, isRetired := keyLease.Expire(l.now())
	if settle {
		l.askForLease(keyLease, key, keyLease.Settlement(l.now()))
	}
	if isRetired {
		l.forget(key, keyLease)
	}
}
