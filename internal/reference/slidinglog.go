package reference

import (
	"math"
	"slices"
	"time"
)

// A SlidingLog is the list of the takes of one key, with their times. A take at the instant t counts until the instant
// t + length.
type SlidingLog struct {
	limit     uint64
	length    int64
	entries   []entry // the oldest first
	newest    int64   // the time of the newest entry, even if it was refunded
	retention int64   // how long entries stay, even if the window is shorter: see Keep
	size      uint64  // for how many tokens there is room
}

type entry struct {
	at int64
	n  uint64
}

// NewSlidingLog returns an empty list.
func NewSlidingLog(limit uint64, length time.Duration) *SlidingLog {
	return &SlidingLog{limit: limit, length: int64(length)}
}

func (l *SlidingLog) entriesInWindow(nanos int64) []entry {
	for i, e := range l.entries {
		if nanos-e.at < l.length {
			return l.entries[i:]
		}
	}
	return nil
}

// Count returns how many tokens were taken in the window that ends at an instant.
func (l *SlidingLog) Count(nanos int64) uint64 {
	sum := uint64(0)
	for _, e := range l.entriesInWindow(nanos) {
		sum += e.n
	}
	return sum
}

// Take takes n tokens if the window that ends at the instant has room for them. A late take gets the time of the newest
// entry.
func (l *SlidingLog) Take(nanos int64, n uint64) bool {
	if n > l.Remaining(nanos) {
		return false
	}
	if n > 0 {
		l.newest = max(l.newest, nanos)
		l.entries = append(l.entries, entry{l.newest, n})
	}
	return true
}

// Remaining returns for how many tokens the window that ends at the instant has room.
func (l *SlidingLog) Remaining(nanos int64) uint64 { return l.limit - min(l.Count(nanos), l.limit) }

// RetryAfter returns how long it takes until enough entries have left the window for a take of n tokens.
func (l *SlidingLog) RetryAfter(nanos int64, n uint64) int64 {
	if n > l.limit {
		return math.MaxInt64
	}
	if l.Remaining(nanos) >= n {
		return 0
	}
	for _, e := range l.entries {
		if left := e.at + l.length; left > nanos && l.Remaining(left) >= n {
			return left - nanos
		}
	}
	panic("reference: when all have left there is room")
}

// ResetAfter returns how long it takes until the oldest entry leaves the window.
func (l *SlidingLog) ResetAfter(nanos int64) int64 {
	if entries := l.entriesInWindow(nanos); len(entries) > 0 {
		return entries[0].at + l.length - nanos
	}
	return 0
}

// Refund removes the n oldest tokens of the window that ends at the time of the refund. It also removes the entries
// that can never count again.
func (l *SlidingLog) Refund(nanos int64, n uint64) {
	entries := l.entriesInWindow(nanos)
	if len(entries) == 0 || n == 0 || l.isFull(nanos) {
		return
	}
	for i := range entries {
		e := &entries[i]
		part := min(n, e.n)
		n, e.n = n-part, e.n-part
	}
	l.entries = slices.DeleteFunc(l.entries, func(e entry) bool { return e.n == 0 || nanos-e.at >= max(l.length, l.retention) })
}

// Keep sets how long entries stay (retention), and for how many tokens there is room (size). Entries may stay for
// longer than the window, because they may count in a longer window. If the entries take up all the room, a refund
// gives nothing back, because there may be older entries that also count but had no room.
func (l *SlidingLog) Keep(retention time.Duration, size uint64) {
	l.retention, l.size = int64(retention), size
}

func (l *SlidingLog) isFull(nanos int64) bool {
	sum := uint64(0)
	for _, e := range l.entries {
		if nanos-e.at < l.retention {
			sum += e.n
		}
	}
	return l.retention > l.length && sum >= l.size
}

// Reset empties the list.
func (l *SlidingLog) Reset() { l.entries, l.newest = nil, 0 }

// Idle reports whether all entries have left the window.
func (l *SlidingLog) Idle(nanos int64) bool { return len(l.entriesInWindow(nanos)) == 0 }

// Stays reports whether a Reset could change something even if the log is idle. The entries of an idle log still take
// up room until the newest one, even if it was refunded, is older than [SlidingLog.Keep] says.
func (l *SlidingLog) Stays(nanos int64) bool {
	return len(l.entries) > 0 && nanos-l.newest < max(l.length, l.retention)
}

// Change returns the same list under another limit. The new window must not be longer than the current window.
func (l *SlidingLog) Change(limit uint64, length time.Duration) *SlidingLog {
	return &SlidingLog{limit, int64(length), l.entries, l.newest, l.retention, l.size}
}
