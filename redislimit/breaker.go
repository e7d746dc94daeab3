package redislimit

import (
	"sync/atomic"
	"time"
)

// probeEvery is how often a store that is lost is asked whether it is back.
const probeEvery = 250 * time.Millisecond

// A breaker stops calls to a part of a store that has failed several times in a row. Its zero value is closed.
type breaker struct {
	failures atomic.Int64 // in a row
	probeAt  atomic.Int64 // when it is open: the time of the next probe; else 0
}

func (b *breaker) isOpen() bool { return b.probeAt.Load() != 0 }

// allows reports whether a call may be made: any, or one every while as a probe.
func (b *breaker) allows(now int64) bool {
	at := b.probeAt.Load()
	return at == 0 || now >= at && b.probeAt.CompareAndSwap(at, now+int64(probeEvery))
}

func (b *breaker) succeeded() {
	if b.failures.Load() != 0 {
		b.failures.Store(0)
	}
	if b.isOpen() {
		b.probeAt.Store(0)
	}
}

func (b *breaker) failed(now int64, most int) {
	if b.failures.Add(1) >= int64(most) {
		b.probeAt.CompareAndSwap(0, now+int64(probeEvery))
	}
}
