// Package waiting decides which questions go into the next call to a store, for the nodes and for the simulator.
package waiting

import (
	"slices"
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

// Next takes the questions of the next call from those that wait, in the order in which they came: as many as have a
// size of most together, or one that is larger. If there are more, it takes the newest ones. Those that wait for
// longest are the ones that will be too late, and to ask them first would make all of them so. Those that are late,
// which are the oldest, and those that it meets and no caller waits for are passed to drop and not asked. It returns
// the call and what waits on. A question is looked at once or twice, however many wait.
func Next[T any](waiting []T, most int, size func(T) int, isLate, isGivenUp func(T) bool, drop func(T)) (call, rest []T) {
	begin, end := 0, len(waiting)
	for begin < end && (isLate(waiting[begin]) || isGivenUp(waiting[begin])) {
		drop(waiting[begin])
		begin++
	}
	for begin < end {
		q := waiting[end-1]
		if isGivenUp(q) {
			drop(q)
		} else if most -= size(q); most < 0 && len(call) > 0 {
			break
		} else {
			call = append(call, q)
		}
		end--
	}
	slices.Reverse(call)
	clear(waiting[:begin])
	clear(waiting[end:])
	return call, waiting[begin:end]
}
