package reference

import (
	"math"
	"math/big"
	"time"
)

// A FixedWindow is one key's window. Usually it begins with the first request. An aligned window begins at a multiple
// of its length since 1970. A calendar's window begins with a period of the calendar.
type FixedWindow struct {
	limit   uint64
	length  int64
	aligned bool
	periods Periods // the periods of the calendar, or nil
	end     int64   // the end of the window that began last
	taken   uint64
	since   int64 // the latest change of the length
}

// NewFixedWindow returns a window that has not begun.
func NewFixedWindow(limit uint64, length time.Duration, aligned bool) *FixedWindow {
	return &FixedWindow{limit: limit, length: int64(length), aligned: aligned}
}

// Periods are the periods of a calendar. The method End returns the end of the period that contains an instant.
type Periods interface{ End(nanos int64) int64 }

// NewCalendarWindow returns a window that has not begun. The window will end at the end of the calendar's period in
// which it begins.
func NewCalendarWindow(limit uint64, periods Periods) *FixedWindow {
	return &FixedWindow{limit: limit, periods: periods}
}

// current returns the end and the count of the current window, or of a new window if none is current.
func (w *FixedWindow) current(nanos int64) (end int64, taken uint64) {
	switch {
	case nanos < w.end && (w.taken > 0 || !w.aligned): // otherwise a late call would use an empty window
		return w.end, w.taken
	case w.periods != nil:
		return w.periods.End(nanos), 0
	case w.aligned: // the first whole window since the length changed, or a later one
		return max(w.end, max(nanos-nanos%w.length, w.roundUp(w.since))+w.length), 0
	}
	return nanos + w.length, 0
}

// roundUp returns the first time, from the given instant on, at which a window of the clock begins.
func (w *FixedWindow) roundUp(nanos int64) int64 {
	if part := nanos % w.length; part > 0 {
		return nanos - part + w.length
	}
	return nanos
}

// Take takes n tokens if the window has them.
func (w *FixedWindow) Take(nanos int64, n uint64) bool {
	end, taken := w.current(nanos)
	if taken > w.limit || n > w.limit-taken {
		return false
	}
	w.end, w.taken = end, taken+n
	return true
}

// Remaining returns the tokens that the window still has.
func (w *FixedWindow) Remaining(nanos int64) uint64 {
	_, taken := w.current(nanos)
	return w.limit - min(taken, w.limit)
}

// RetryAfter returns how long it takes until the window has n tokens, or until the next window begins.
func (w *FixedWindow) RetryAfter(nanos int64, n uint64) int64 {
	switch {
	case n > w.limit:
		return math.MaxInt64
	case n <= w.Remaining(nanos):
		return 0
	}
	return w.ResetAfter(nanos)
}

// ResetAfter returns how long it takes until the window is over.
func (w *FixedWindow) ResetAfter(nanos int64) int64 {
	if w.Idle(nanos) {
		return 0
	}
	return w.end - nanos
}

// Refund gives n tokens back to the current window. If no tokens of the window remain taken, the window is over.
func (w *FixedWindow) Refund(nanos int64, n uint64) {
	if w.Idle(nanos) {
		return
	}
	if w.taken -= min(n, w.taken); w.taken == 0 {
		if w.end = nanos; w.aligned {
			w.end -= nanos % w.length
		}
	}
}

// Reset ends the window.
func (w *FixedWindow) Reset() { w.end, w.taken = 0, 0 }

// Idle reports whether there is no window.
func (w *FixedWindow) Idle(nanos int64) bool { return nanos >= w.end }

// Change returns the window with other numbers. Tokens that were already taken still count. The time latest is the last
// one at which tokens may have been taken. The end of the window depends on its length (changeAligned has the rule for
// aligned windows):
//
//   - If the length does not change, the end does not change.
//   - If the window becomes shorter, it keeps its previous end, unless its tokens have come back earlier at the new
//     rate. They start to come back at the time latest, and take at least one new window.
//   - If the window becomes longer, its end moves by the difference of the lengths. It does not move beyond the end of
//     a new window that begins at the time latest, nor beyond the time at which the tokens have come back at the new
//     rate.
func (w *FixedWindow) Change(nanos int64, limit uint64, length time.Duration, limits Limits) *FixedWindow {
	to := NewFixedWindow(limit, length, w.aligned)
	if to.since = w.since; to.length != w.length {
		to.since = nanos
	}
	if w.Idle(nanos) {
		return to
	}
	to.taken, to.end = w.taken, w.end
	latest := max(nanos, limits.Latest)
	switch longer := to.length - w.length; {
	case longer == 0:
		return to
	case w.aligned:
		to.end = w.changeAligned(to, latest, limits)
		return to
	case longer > 0:
		to.end = max(w.end, min(w.end+longer, latest+to.length))
	}
	to.end = min(to.end, addClamped(latest, limits.duration(w.taken, to.length, big.NewInt(limits.Longest))))
	return to
}

// changeAligned returns when an aligned window ends after a change to windows of another length. It ends with the new
// window of the clock in which it would have ended. But at least one whole new window must have passed since a certain
// time. This is the time one old length before the old end, or the time latest if it is earlier. If fewer new windows
// are enough to grant the tokens taken, the window ends after that many.
func (w *FixedWindow) changeAligned(to *FixedWindow, latest int64, limits Limits) int64 {
	firstWhole := to.roundUp(min(w.end-w.length, latest))
	longest := big.NewInt((limits.Longest + to.length - 1) / to.length * to.length)
	windows := quotientUp(limits.duration(w.taken, to.length, longest), big.NewInt(to.length))
	windows.Mul(windows, big.NewInt(to.length))
	return min(max(to.roundUp(w.end), firstWhole+to.length), addClamped(max(latest-latest%to.length, firstWhole), windows))
}
