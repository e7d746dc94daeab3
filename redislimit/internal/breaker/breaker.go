// Package breaker stops calls to a store that does not answer. Time is an argument, in nanoseconds of a clock
// that never goes back, so that the simulator runs the same code as a limiter.
package breaker

import (
	"sync/atomic"
	"time"
)

// ProbeEvery is how often a store that counts as lost is asked whether it is back.
const ProbeEvery = 250 * time.Millisecond

// A Breaker is open while its store counts as lost: then only one probe passes in every [ProbeEvery]. It opens
// after several failures in a row, and any success closes it. The zero Breaker is closed. All its methods may be
// called from any goroutine.
type Breaker struct {
	failures atomic.Int64 // in a row
	probeAt  atomic.Int64 // while it is open: the time of the next probe; else 0
}

// IsOpen reports whether the store counts as lost.
func (b *Breaker) IsOpen() bool { return b.probeAt.Load() != 0 }

// Allows reports whether a call may be made now: any call while it is closed, else one probe at a time.
func (b *Breaker) Allows(now int64) bool {
	at := b.probeAt.Load()
	return at == 0 || now >= at && b.probeAt.CompareAndSwap(at, now+int64(ProbeEvery))
}

// Succeeded closes the breaker: the store has answered.
func (b *Breaker) Succeeded() {
	if b.failures.Load() != 0 {
		b.failures.Store(0)
	}
	if b.IsOpen() {
		b.probeAt.Store(0)
	}
}

// Failed counts a call that failed, and opens the breaker if that makes as many in a row as most says.
func (b *Breaker) Failed(now int64, most int) {
	if b.failures.Add(1) >= int64(most) {
		b.probeAt.CompareAndSwap(0, now+int64(ProbeEvery))
	}
}
