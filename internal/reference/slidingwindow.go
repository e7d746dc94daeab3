package reference

import (
	"math"
	"math/big"
	"time"
)

// A SlidingWindow is one key's sliding window counter: the tokens taken in the clock's current window, and in its
// previous window. The window that ends now covers a fraction of the previous window. That fraction of the previous
// count is added to the current count.
type SlidingWindow struct {
	limit             uint64
	length            int64
	index             int64 // number, since 1970, of the window that was counted last
	previous, current uint64
}

// NewSlidingWindow returns counters that have counted nothing.
func NewSlidingWindow(limit uint64, length time.Duration) *SlidingWindow {
	return &SlidingWindow{limit: limit, length: int64(length)}
}

// stateAt returns the state at an instant: the window of the clock that contains the instant, and the counts. If
// the instant is before the last counted window, it returns the state at the beginning of that window.
func (w *SlidingWindow) stateAt(nanos int64) SlidingWindow {
	state := *w
	state.index = max(nanos/w.length, w.index)
	switch state.index - w.index {
	case 0:
	case 1:
		state.previous, state.current = w.current, 0
	default:
		state.previous, state.current = 0, 0
	}
	return state
}

// Estimate returns the counters' estimate of how many tokens were taken in the window that ends at an instant.
func (w *SlidingWindow) Estimate(nanos int64) uint64 {
	state := w.stateAt(nanos)
	weighted := state.weighted(nanos)
	return weighted.Quo(weighted, big.NewInt(w.length)).Uint64() + state.current
}

// estimateUp returns the estimate rounded up, but 0 if Estimate returns 0.
func (w *SlidingWindow) estimateUp(nanos int64) uint64 {
	state := w.stateAt(nanos)
	if w.Estimate(nanos) == 0 {
		return 0
	}
	return quotientUp(state.weighted(nanos), big.NewInt(w.length)).Uint64() + state.current
}

// weighted returns the tokens of the previous window, multiplied by a number of nanoseconds. These are the
// nanoseconds of the previous window that the window ending at the instant covers.
func (w *SlidingWindow) weighted(nanos int64) *big.Int {
	covered := big.NewInt((w.index+1)*w.length - max(nanos, w.index*w.length))
	return covered.Mul(covered, integer(w.previous))
}

// Counts returns the tokens taken in the clock's previous window and in the current one.
func (w *SlidingWindow) Counts(nanos int64) (previous, current uint64) {
	state := w.stateAt(nanos)
	return state.previous, state.current
}

// Take takes n tokens if the estimate allows it.
func (w *SlidingWindow) Take(nanos int64, n uint64) bool {
	if n > w.Remaining(nanos) {
		return false
	}
	*w = w.stateAt(nanos)
	w.current += n
	return true
}

// Remaining returns the limit less the estimate, at least 0.
func (w *SlidingWindow) Remaining(nanos int64) uint64 {
	return w.limit - min(w.Estimate(nanos), w.limit)
}

// RetryAfter searches for the first instant that admits n tokens. The estimate never grows with time. It is zero two
// lengths after the beginning of the window that was counted last.
func (w *SlidingWindow) RetryAfter(nanos int64, n uint64) int64 {
	if n > w.limit {
		return math.MaxInt64
	}
	refused, admitted := nanos-1, max(nanos, (w.index+2)*w.length)
	for admitted-refused > 1 {
		if middle := refused + (admitted-refused)/2; w.Remaining(middle) >= n {
			admitted = middle
		} else {
			refused = middle
		}
	}
	return admitted - nanos
}

// ResetAfter returns how long it takes until the clock's window is over. If the counters are zero, it returns 0.
func (w *SlidingWindow) ResetAfter(nanos int64) int64 {
	state := w.stateAt(nanos)
	if w.Estimate(nanos) == 0 {
		return 0
	}
	return (state.index+1)*w.length - nanos
}

// Refund gives n tokens back, first to the current window.
func (w *SlidingWindow) Refund(nanos int64, n uint64) {
	state := w.stateAt(nanos)
	if state.previous == 0 && state.current == 0 {
		return // nothing to give back; a late call may still see the counts
	}
	*w = state
	fromCurrent := min(n, w.current)
	w.current -= fromCurrent
	w.previous -= min(n-fromCurrent, w.previous)
}

// Reset forgets both counts.
func (w *SlidingWindow) Reset() { w.index, w.previous, w.current = 0, 0, 0 }

// Idle reports whether the estimate is 0.
func (w *SlidingWindow) Idle(nanos int64) bool { return w.Estimate(nanos) == 0 }

// Change returns the counters with other numbers. A key whose estimate is 0 starts with empty counters. If the window
// has the same length, both counts stay. Otherwise the estimate, rounded up, becomes the count of one new window. This
// is the window in which the last tokens may have been taken, or a later window. There are two times: when the count
// would have disappeared without the change, and when the tokens have come back at the new rate. The count does not
// disappear before the earlier of the two times.
func (w *SlidingWindow) Change(nanos int64, limit uint64, length time.Duration, limits Limits) *SlidingWindow {
	to := SlidingWindow{limit: limit, length: int64(length), index: nanos / int64(length)}
	if w.Estimate(nanos) == 0 { // an idle key has taken nothing
		return &to
	}
	state := w.stateAt(nanos)
	if to.length == w.length {
		state.limit = limit
		return &state
	}
	to.current = w.estimateUp(nanos)
	gone := (state.index + 2) * w.length
	if state.current == 0 {
		gone -= w.length
	}
	gone += max(0, to.length-w.length)
	latest := max(nanos, limits.Latest)
	count := integer(max(to.current, 2)) // one token may be above the limit, because the estimate is rounded up
	longest := quotientUp(new(big.Int).Mul(big.NewInt(limits.Longest), count), new(big.Int).Sub(count, big.NewInt(1)))
	gone = min(gone, addClamped(latest, limits.duration(to.current, to.length, longest)))
	to.index = max(latest/to.length, (gone-1)/to.length-1)
	return &to
}
