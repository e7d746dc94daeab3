// Package debounce waits until changing files have settled, because a program may write a file in several parts.
package debounce

import "time"

const (
	// Quiet is how long the files must be unchanged before they count as settled.
	Quiet = 100 * time.Millisecond
	// Longest is the longest wait after a change. Without this bound, a file that is written all the time would keep
	// other files from being read.
	Longest = 2 * time.Second
)

// A Timer fires on its channel C when it is time to handle changes. Make it with [New]. Only one goroutine may use it.
type Timer struct {
	*time.Timer
	firstChange time.Time // the first change that was not handled; zero if there is none
}

// New returns a timer that waits for the first change.
func New() *Timer {
	t := time.NewTimer(Longest)
	t.Stop()
	return &Timer{Timer: t}
}

// Changed notes that something has changed.
func (t *Timer) Changed() {
	if t.firstChange.IsZero() {
		t.firstChange = time.Now()
	}
	t.Reset(min(Quiet, time.Until(t.firstChange.Add(Longest))))
}

// Fired notes that C has fired. A later change makes the timer fire again.
func (t *Timer) Fired() { t.firstChange = time.Time{} }
