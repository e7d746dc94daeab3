// Package debounce waits until files that are being changed stay as they are: who writes a file writes it in pieces.
package debounce

import "time"

const (
	// Quiet is how long no change must come.
	Quiet = 100 * time.Millisecond
	// Longest is how long a change waits at most: a file that is written to all the time must not keep the others from
	// being read.
	Longest = 2 * time.Second
)

// A Timer fires on C when changes are to be looked at. Make one with [New]. It is for one goroutine.
type Timer struct {
	*time.Timer
	since time.Time // of the first change that was not looked at; zero if there is none
}

// New returns a timer that waits for a change.
func New() *Timer {
	t := time.NewTimer(Longest)
	t.Stop()
	return &Timer{Timer: t}
}

// Changed says that something has changed.
func (t *Timer) Changed() {
	if t.since.IsZero() {
		t.since = time.Now()
	}
	t.Reset(min(Quiet, time.Until(t.since.Add(Longest))))
}

// Fired says that C has fired. What changes from now on is looked at again.
func (t *Timer) Fired() { t.since = time.Time{} }
