// Package breaker stops calls to a store that does not answer. Times are arguments, in nanoseconds of a monotonic
// clock, so that the simulator can run the same code.
package breaker

import (
	"sync/atomic"
	"time"
)

// ProbeEvery is the time between two probes of a lost store.
const ProbeEvery = 250 * time.Millisecond

// A Breaker is open while its store counts as lost. An open breaker allows only the probe, one call in every
// [ProbeEvery]. Any success closes it. It opens when calls have failed for some time without a success. The number of
// failed calls does not matter, because all calls in flight at one moment fail together. The zero Breaker is closed.
// All methods may be called from any goroutine.
type Breaker struct {
	lastAnswer  atomic.Int64 // when a call last succeeded
	silentSince atomic.Int64 // when the first call that failed after the last success was sent; 0 for none
	probeAt     atomic.Int64 // while the breaker is open: when the next probe is due; otherwise 0
	openedAt    atomic.Int64 // when the breaker last opened, or when a call last tried to open it; never decreases
	lastLate    atomic.Int64 // when a call was last answered after its timeout
}

// If the store's answers come too late, a breaker waits this many times the usual duration before it opens.
const lateFactor = 5

// IsOpen reports whether the store counts as lost.
func (b *Breaker) IsOpen() bool { return b.probeAt.Load() != 0 }

// IsFailing reports whether calls have failed, without a success, for at least the given duration.
func (b *Breaker) IsFailing(now int64, after time.Duration) bool {
	since := b.silentSince.Load()
	return since != 0 && now-since >= int64(after)
}

// LostSince reports whether the store counts as lost. If so, since is the time when the breaker opened, or of the last
// success if that was later.
func (b *Breaker) LostSince() (since int64, isLost bool) {
	isLost = b.IsOpen() // read first, so that the other times are from this loss or later
	return max(b.openedAt.Load(), b.lastAnswer.Load()), isLost
}

// Allows reports whether a call may be made now.
func (b *Breaker) Allows(now int64) bool {
	at := b.probeAt.Load()
	return at == 0 || now >= at && b.probeAt.CompareAndSwap(at, now+int64(ProbeEvery))
}

// Succeeded notes an answer, which closes the breaker, and reports whether it was open.
func (b *Breaker) Succeeded(now int64) (closed bool) {
	b.lastAnswer.Store(now)
	b.silentSince.Store(0)
	return b.IsOpen() && b.probeAt.Swap(0) != 0
}

// Late notes that a call was answered after its timeout. The store may only be busy, so the breaker waits longer before
// it opens.
func (b *Breaker) Late(now int64) { b.lastLate.Store(now) }

// Failed notes that a call failed now. The call was sent at the time sent, or counts as sent at the last success if
// that was later. If calls have failed, without a success, for at least the given duration, Failed opens the breaker
// and returns true.
func (b *Breaker) Failed(sent, now int64, after time.Duration) (opened bool) {
	b.silentSince.CompareAndSwap(0, max(sent, b.lastAnswer.Load()))
	since := b.silentSince.Load()
	if since == 0 || now-since < int64(after) || b.IsOpen() {
		return false
	}
	if late := b.lastLate.Load(); late > since && now-late < int64(after) && now-since < lateFactor*int64(after) {
		return false
	}
	// The time is stored first, so a caller that finds the breaker open finds this time, too. The time must never
	// decrease: a call that is delayed here may have an earlier time than the call that opens the breaker.
	for old := b.openedAt.Load(); old < now && !b.openedAt.CompareAndSwap(old, now); old = b.openedAt.Load() {
	}
	return b.probeAt.CompareAndSwap(0, now+int64(ProbeEvery))
}
