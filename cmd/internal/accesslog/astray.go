package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// A line's date is compared with the dates of that many lines before it and after it.
	neighbors = 16
	// A date may be farAhead later, or farBehind earlier, than the dates of all lines around it. farBehind is larger,
	// because a server may log a long request with its start time. No server logs a request before it arrives.
	farAhead, farBehind = 30 * time.Minute, 24 * time.Hour
	// Near the start and the end of a file, where fewer lines can be compared, farAtEdge replaces both bounds.
	farAtEdge = 366 * 24 * time.Hour
)

// ErrAstray means that the date of a line is far from the dates of the lines around it.
var ErrAstray = errors.New("far from the dates of the lines around it")

// A dateFilter finds lines with a wrong date, because such a request would count at a wrong time. If the date of a line
// is not near the date of an earlier line, the line is held until the lines after it are read. Its date is wrong under
// two conditions. All dates before and after it are far from it in the same direction, and the dates after it are near
// each other. Otherwise the log continues at another time, as in concatenated files.
type dateFilter struct {
	recent      [neighbors]time.Time // times of the latest entries that were passed on
	recentCount int
	pending     []pendingEntry // lines that were read, but that next has not returned yet
	end         error          // the error that ended the reading, returned after the pending lines
}

// A pendingEntry is an entry, or the error of its line.
type pendingEntry struct {
	entry Entry
	line  int
	err   *LineError
}

// next returns the next entry of the file, or the error of its line. The entry is valid until the following call of
// next.
func (a *dateFilter) next(f *file) (*Entry, error) {
	for {
		if len(a.pending) == 0 {
			if a.end != nil {
				return nil, a.end
			}
			e, err := f.parse()
			if err != nil && asLineError(err) == nil {
				a.end = err
			}
			if err != nil {
				return nil, err
			}
			if a.isNear(e.Time) {
				a.addRecent(e.Time)
				return e, nil
			}
			a.holdBack(f, e)
		}
		first := &a.pending[0]
		if first.err == nil && !a.isNear(first.entry.Time) && a.end == nil && a.countAfter() < neighbors {
			a.readNext(f)
			continue
		}
		if first.err == nil {
			first.err = a.judge(f, first)
		}
		a.pending = a.pending[1:]
		if first.err != nil {
			return nil, first.err
		}
		a.addRecent(first.entry.Time)
		return &first.entry, nil
	}
}

func (a *dateFilter) readNext(f *file) {
	e, err := f.parse()
	switch lineErr := asLineError(err); {
	case lineErr != nil:
		a.pending = append(a.pending, pendingEntry{err: lineErr})
	case err != nil:
		a.end = err
	default:
		a.holdBack(f, e)
	}
}

func (a *dateFilter) holdBack(f *file, e *Entry) {
	a.pending = append(a.pending, pendingEntry{entry: e.clone(), line: f.lines.number})
}

func (a *dateFilter) addRecent(at time.Time) {
	a.recent[a.recentCount%neighbors] = at
	a.recentCount++
}

// isNear reports whether a date is near one of the dates before it.
func (a *dateFilter) isNear(at time.Time) bool {
	for i := range min(a.recentCount, neighbors) {
		if diff := at.Sub(a.recent[(a.recentCount-1-i)%neighbors]); diff <= farAhead && diff >= -farBehind {
			return true
		}
	}
	return false
}

// countAfter returns how many entries are pending after the first pending line.
func (a *dateFilter) countAfter() (n int) {
	for i := range a.pending[1:] {
		if a.pending[1+i].err == nil {
			n++
		}
	}
	return n
}

// judge returns the error of h, the first pending line, or nil if its date is right.
func (a *dateFilter) judge(f *file, h *pendingEntry) *LineError {
	var before, after []time.Duration // how much later the date is than the other dates
	for i := range min(a.recentCount, neighbors) {
		before = append(before, h.entry.Time.Sub(a.recent[i]))
	}
	for i := range a.pending[1:] {
		if next := &a.pending[1+i]; next.err == nil {
			after = append(after, h.entry.Time.Sub(next.entry.Time))
		}
	}
	maxLater, maxEarlier := farAhead, farBehind
	if len(before) < neighbors || len(after) < neighbors {
		maxLater, maxEarlier = farAtEdge, farAtEdge
	}
	deviation := ""
	switch {
	case len(before) < neighbors && len(after) == 0: // too few lines to decide
		return nil
	case isFar(before, after, 1, maxLater):
		deviation = fmt.Sprintf("later by more than %v", maxLater)
	case len(before) > 0 && isFar(before, after, -1, maxEarlier):
		deviation = fmt.Sprintf("earlier by more than %v", maxEarlier)
	default:
		return nil
	}
	return &LineError{f.log.nameOf(f), h.line, fmt.Errorf("the date %s is %w: %s", h.entry.Time.Format(time.RFC3339),
		ErrAstray, deviation)}
}

// isFar reports whether a date is far, in one direction, from all dates before it and most dates after it. Far means
// farther than minDistance, and farther than these dates are from each other. The nearest quarter of the dates after it
// is ignored, because these dates may be wrong in the same way. If there are fewer than neighbors of them, the nearest
// half is ignored.
func isFar(before, after []time.Duration, direction, minDistance time.Duration) bool {
	distances := slices.Clone(after)
	for i := range distances {
		distances[i] *= direction
	}
	slices.Sort(distances)
	ignored := len(distances) / 4
	if len(distances) < neighbors {
		ignored = len(distances) / 2 // minDistance is farAtEdge in this case
	}
	distances = distances[ignored:]
	for _, d := range before {
		distances = append(distances, d*direction)
	}
	nearest := slices.Min(distances)
	return nearest > minDistance && nearest > slices.Max(distances)-nearest
}

// clone returns a copy of the entry that stays valid after the next entry is read.
func (e *Entry) clone() Entry {
	c := *e
	for _, text := range c.texts() {
		*text = bytes.Clone(*text)
	}
	c.Headers = slices.Clone(c.Headers)
	for i := range c.Headers {
		c.Headers[i].Value = bytes.Clone(c.Headers[i].Value)
	}
	return c
}
