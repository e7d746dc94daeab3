// Package waiting decides which questions go into the next call to a store, for the nodes and for the simulator.
package waiting

import (
	"sync/atomic"
	"time"
)

// A Trip is how long calls take, smoothed. The zero Trip knows nothing yet. It may be used from any goroutine.
type Trip struct{ nanos atomic.Int64 }

// Note notes how long a call took that was answered.
func (t *Trip) Note(took int64) {
	old := t.nanos.Load()
	if old == 0 {
		t.nanos.Store(took)
		return
	}
	t.nanos.Store(old + (took-old)/8) // a lost update is made good by the next one
}

// IsTooLate reports whether a question that has waited so long would not be answered within the timeout any more. One
// that has waited for less than half of it is always asked: how else should be found out that calls are faster now.
func (t *Trip) IsTooLate(waited int64, timeout time.Duration) bool {
	return waited+min(t.nanos.Load(), int64(timeout)/2) > int64(timeout)
}

// Next takes the questions of the next call from those that wait, the oldest first: at most most of them. If there are
// more, it takes the newest ones. Those that wait for longest are the ones that will be too late, and to ask them first
// would make all of them so. What is dropped is passed to drop and not asked. It returns the call and what waits on.
func Next[T any](waiting []T, most int, isDropped func(T) bool, drop func(T)) (call, rest []T) {
	rest = waiting[:0]
	for _, q := range waiting {
		if isDropped(q) {
			drop(q)
		} else {
			rest = append(rest, q)
		}
	}
	clear(waiting[len(rest):])
	from := max(len(rest)-most, 0)
	call = append(call, rest[from:]...)
	clear(rest[from:])
	return call, rest[:from]
}
