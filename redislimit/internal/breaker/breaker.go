// Package breaker stops calls to a store that does not answer. The methods get the current time as an argument, in
// nanoseconds of a clock that never goes back. So the simulator can run the same code as a limiter.
package breaker

import (
	"sync/atomic"
	"time"
)

// ProbeEvery is the time between two probes, which ask a lost store whether it is back.
const ProbeEvery = 250 * time.Millisecond

// A Breaker is open while its store counts as lost. An open breaker allows only one call in every [ProbeEvery], the
// probe. A breaker opens when calls have failed for some time without a success. Any success closes it. The number of
// failed calls does not matter, because all calls that are in flight at one moment fail together. The zero Breaker is
// closed. All its methods may be called from any goroutine.
type Breaker struct {
	answered atomic.Int64 // when a call last succeeded
	silent   atomic.Int64 // when the first of the calls that have failed since the last success was sent; 0 for none
	probeAt  atomic.Int64 // while the breaker is open: when the next probe is due; otherwise 0
	opened   atomic.Int64 // when the breaker last opened, or when a call last tried to open it; never decreases
	late     atomic.Int64 // when a call was last answered after its timeout
}

// latest is a factor. If answers come, but too late, the breaker waits up to this many times as long before it opens.
const latest = 5

// IsOpen reports whether the store counts as lost.
func (b *Breaker) IsOpen() bool { return b.probeAt.Load() != 0 }

// IsFailing reports whether calls have failed, without a success, for at least as long as the parameter after says.
func (b *Breaker) IsFailing(now int64, after time.Duration) bool {
	since := b.silent.Load()
	return since != 0 && now-since >= int64(after)
}

// LostSince reports whether the store counts as lost, and since when. The returned time is not before the last success,
// and not before the breaker opened.
func (b *Breaker) LostSince() (since int64, lost bool) {
	lost = b.IsOpen() // read first, so that the other times are from this loss or later
	return max(b.opened.Load(), b.answered.Load()), lost
}

// Allows reports whether a call may be made now. A closed breaker allows every call. An open breaker allows only one
// probe in every [ProbeEvery].
func (b *Breaker) Allows(now int64) bool {
	at := b.probeAt.Load()
	return at == 0 || now >= at && b.probeAt.CompareAndSwap(at, now+int64(ProbeEvery))
}

// Succeeded closes the breaker: the store has answered a call. It reports whether the breaker was open.
func (b *Breaker) Succeeded(now int64) (closed bool) {
	b.answered.Store(now)
	b.silent.Store(0)
	return b.IsOpen() && b.probeAt.Swap(0) != 0
}

// Late notes that a call timed out and was answered afterwards. The store is alive but may be busier than usual, so the
// breaker waits longer before it counts the store as lost.
func (b *Breaker) Late(now int64) { b.late.Store(now) }

// Failed notes that a call failed. The parameter sent is the time at which the call was sent, and now is the time at
// which it failed. If calls have failed, without a success, for at least as long as the parameter after says, Failed
// opens the breaker. A call that was sent before the last success counts as sent at that success. Failed reports
// whether it opened the breaker.
func (b *Breaker) Failed(sent, now int64, after time.Duration) (opened bool) {
	b.silent.CompareAndSwap(0, max(sent, b.answered.Load()))
	since := b.silent.Load()
	if since == 0 || now-since < int64(after) || b.IsOpen() {
		return false
	}
	if late := b.late.Load(); late > since && now-late < int64(after) && now-since < latest*int64(after) {
		return false
	}
	// The time is stored before the breaker opens, so a caller that finds the breaker open finds this time. The time
	// must never decrease: a call that is delayed here may have an earlier time than a call that has opened the breaker
	// meanwhile.
	for old := b.opened.Load(); old < now && !b.opened.CompareAndSwap(old, now); old = b.opened.Load() {
	}
	return b.probeAt.CompareAndSwap(0, now+int64(ProbeEvery))
}
