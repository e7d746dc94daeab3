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
		case <-l.hurry:
		}
		l.known.sweep(l.now())
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
	l.follow()
	l.probeLost()
	for of := range l.owed.Keys {
		if l.canWait(of.key) {
			l.settle(of)
		}
	}
	l.keepDebts()
	if l.flight != nil {
		l.renewPlaces()
	}
	if l.leases != nil {
		l.leases.Range(func(key string, held *lease.Lease) bool {
			if l.canWait(key) {
				l.look(key, held)
			}
			return true
		})
	}
}

func (l *Limiter) probeLost() {
	queues := l.ways.Load().queues
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
	take := script.Item{Limit: l.limit, Key: key, Ask: script.Ask{Debt: 1, Quota: quota}}
	_ = queue.putOne(take, nil, func(_ script.Answer, err error) { // not sent if the next probe is not due
		if err == nil {
			back := script.Item{Limit: l.limit, Key: key, Ask: script.Ask{Returned: 1, Window: script.AnyWindow, Quota: quota}}
			_ = queue.putOne(back, nil, func(script.Answer, error) {})
		}
	})
}

// canWait reports whether a question that is not urgent can be sent now. During a loss it cannot: a settlement would
// take tokens out of hand that requests can still spend.
func (l *Limiter) canWait(key string) bool {
	queue := l.queueOf(key)
	return !queue.isLost() && !queue.isBusy()
}

func (l *Limiter) look(key string, held *lease.Lease) {
	settle, gone := held.Expire(l.now())
	if settle {
		l.askFor(held, key, held.Settlement(l.now()))
	}
	if gone {
		l.forget(key, held)
	}
}
