package redislimit

import (
	"time"

	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// keep does what no request does: it asks a part of the store that is lost whether it is back, has the store charged
// with what the shares admitted and holds lacked, renews places in flight, gives back what leases did not use, forgets
// idle leases and old refusals, writes down what is owed, and compares settings with other nodes. It also watches
// whether the store drops keys.
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
		l.follow()
		queues := l.ways.Load().queues
		for part := range queues {
			if queues[part].breaker.IsOpen() {
				l.probe(&queues[part], part)
			}
		}
		l.known.sweep(l.now())
		if l.share != nil {
			l.share.slow.Drop(func(key string) bool { return !l.isLost(key) })
		}
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
}

// probe asks a lost part of the store whether it is back, unless it was asked lately: a token is taken of a key that no
// request can name, and given back. A look would not do, because there are servers that answer and decline to write.
func (l *Limiter) probe(queue *queue, part int) {
	key := l.namer.probe(part)
	var quota script.Quota
	if l.limit.IsOfQuotas() {
		quota = script.Quota{Tokens: 1, Units: 1}
	}
	take := script.Item{Limit: l.limit, Key: key, Ask: script.Ask{Debt: 1, Quota: quota}}
	_ = queue.putOne(take, nil, func(_ script.Answer, err error) { // refused if it is not time yet
		if err == nil {
			back := script.Item{Limit: l.limit, Key: key, Ask: script.Ask{Returned: 1, Window: script.AnyWindow, Quota: quota}}
			_ = queue.putOne(back, nil, func(script.Answer, error) {})
		}
	})
}

// canWait reports whether what is not urgent can be asked about a key now: its part of the store is not lost, so that
// leases are left alone there, to be spent, and the queue is not busy.
func (l *Limiter) canWait(key string) bool {
	queue := l.queueOf(key)
	return !queue.isLost() && !queue.isBusy()
}

// look looks at a lease.
func (l *Limiter) look(key string, held *lease.Lease) {
	settle, gone := held.Expire(l.now())
	if settle {
		l.askFor(held, key, held.Settlement(l.now()))
	}
	if gone {
		l.forget(key, held)
	}
}
