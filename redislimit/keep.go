package redislimit

import (
	"time"

	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// keep does the background work. It probes a lost part of the store. It charges the store with the tokens that shares
// admitted and the costs beyond holds. It renews places in flight, gives back unused tokens of leases, and forgets idle
// leases and old refusals. It writes debts to the file, compares settings with other nodes, and checks whether the
// store drops keys.
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

// work does the part of keep that a closed limiter continues ([Limiter.outlive]).
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

// probeLost sends a probe to each part of the store that is lost, to find out whether it is back.
func (l *Limiter) probeLost() {
	queues := l.ways.Load().queues
	for part := range queues {
		if queues[part].breaker.IsOpen() {
			l.probe(&queues[part], part)
		}
	}
}

// probe finds out whether a lost part of the store is back, unless the last probe was a moment ago. A probe takes a
// token of a key that no request can name, and gives the token back. A read would not be enough, because some servers
// answer but refuse writes.
func (l *Limiter) probe(queue *queue, part int) {
	key := l.namer.probe(part)
	var quota script.Quota
	if l.limit.IsOfQuotas() {
		quota = script.Quota{Tokens: 1, Units: 1}
	}
	take := script.Item{Limit: l.limit, Key: key, Ask: script.Ask{Debt: 1, Quota: quota}}
	_ = queue.putOne(take, nil, func(_ script.Answer, err error) { // not sent if the last probe was a moment ago
		if err == nil {
			back := script.Item{Limit: l.limit, Key: key, Ask: script.Ask{Returned: 1, Window: script.AnyWindow, Quota: quota}}
			_ = queue.putOne(back, nil, func(script.Answer, error) {})
		}
	})
}

// canWait reports whether a question about the key can be sent now if the question is not urgent. The key's part of the
// store must not be lost, and the queue must not be busy. During a loss, the lease keeps its tokens, so that requests
// can spend them.
func (l *Limiter) canWait(key string) bool {
	queue := l.queueOf(key)
	return !queue.isLost() && !queue.isBusy()
}

// look settles or forgets a lease if this is necessary.
func (l *Limiter) look(key string, held *lease.Lease) {
	settle, gone := held.Expire(l.now())
	if settle {
		l.askFor(held, key, held.Settlement(l.now()))
	}
	if gone {
		l.forget(key, held)
	}
}
