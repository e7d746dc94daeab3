package redislimit

import (
	"time"

	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// keep does what no request does: it asks a part of the store that is lost whether it is back, has the store charged
// with what the shares admitted, gives back what leases did not use, and forgets idle leases and old refusals.
func (l *Limiter) keep() {
	ticker := time.NewTicker(defaults.KeepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
		}
		for part := range l.queues {
			if l.queues[part].breaker.IsOpen() {
				l.probe(part)
			}
		}
		l.known.sweep(l.now())
		if l.share != nil {
			for key := range l.share.owed.Keys {
				if l.canWait(key) {
					l.settle(key)
				}
			}
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

// probe asks a lost part of the store whether it is back, unless it was asked lately: a look at a key that no
// request can name, which changes nothing.
func (l *Limiter) probe(part int) {
	_ = l.queues[part].put(question{ // refused if it is not time yet
		key: l.namer.probe(part), ask: script.Ask{}, answered: func(script.Answer, error) {},
	})
}

// canWait reports whether what is not urgent can be asked about a key now: its part of the store is not lost, so that
// leases are left alone there, to be spent, and the queue is not busy.
func (l *Limiter) canWait(key string) bool {
	queue := l.queueOf(key)
	return !queue.breaker.IsOpen() && !queue.isBusy()
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
