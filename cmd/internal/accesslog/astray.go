package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// around is a number of lines: a line's date is compared with the dates of that many lines before it and after it.
	around = 16
	// A date may be farAhead later, or farBehind earlier, than the dates of all lines around it. farBehind is larger,
	// because a server may log a long request with its start time. No server logs a request before it arrives.
	farAhead, farBehind = 30 * time.Minute, 24 * time.Hour
	// Near the start and the end of a file, where fewer lines can be compared, farOff replaces both bounds.
	farOff = 366 * 24 * time.Hour
)

// ErrAstray means that the date of a line is far from the dates of the lines around it.
var ErrAstray = errors.New("far from the dates of the lines around it")

// astray finds lines with a wrong date, because such a request would count at a wrong time. If the date of a line is
// not near the date of an earlier line, the line waits for the lines after it. Its date is wrong under two conditions.
// All earlier and later dates are far from it in the same direction, and the later dates are near each other. Otherwise
// the log continues at another time, as in concatenated files.
type astray struct {
	recent [around]time.Time // times of the latest entries that were passed on
	passed int
	held   []held // lines that were read but not passed on yet
	end    error  // the error that ended the reading, returned after the held lines
}

// held is an entry, or the error of its line.
type held struct {
	entry Entry
	line  int
	wrong *LineError
}

// next returns the next entry of the file, or the error of its line. The entry is valid until the following call of
// next.
func (a *astray) next(f *file) (*Entry, error) {
	for {
		if len(a.held) == 0 {
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
				a.pass(e.Time)
				return e, nil
			}
			a.hold(f, e)
		}
		h := &a.held[0]
		if h.wrong == nil && !a.isNear(h.entry.Time) && a.end == nil && a.behind() < around {
			a.readOn(f)
			continue
		}
		if h.wrong == nil {
			h.wrong = a.judge(f, h)
		}
		a.held = a.held[1:]
		if h.wrong != nil {
			return nil, h.wrong
		}
		a.pass(h.entry.Time)
		return &h.entry, nil
	}
}

func (a *astray) readOn(f *file) {
	e, err := f.parse()
	switch wrong := asLineError(err); {
	case wrong != nil:
		a.held = append(a.held, held{wrong: wrong})
	case err != nil:
		a.end = err
	default:
		a.hold(f, e)
	}
}

func (a *astray) hold(f *file, e *Entry) {
	a.held = append(a.held, held{entry: e.clone(), line: f.lines.number})
}

func (a *astray) pass(at time.Time) {
	a.recent[a.passed%around] = at
	a.passed++
}

// isNear reports whether a date is near one of the dates before it.
func (a *astray) isNear(at time.Time) bool {
	for i := range min(a.passed, around) {
		if off := at.Sub(a.recent[(a.passed-1-i)%around]); off <= farAhead && off >= -farBehind {
			return true
		}
	}
	return false
}

// The method behind returns how many entries are held in addition to the first held line.
func (a *astray) behind() (n int) {
	for i := range a.held[1:] {
		if a.held[1+i].wrong == nil {
			n++
		}
	}
	return n
}

// judge returns the error of the first held line, or nil if its date is right.
func (a *astray) judge(f *file, h *held) *LineError {
	var before, behind []time.Duration // how much later the date is than the other dates
	for i := range min(a.passed, around) {
		before = append(before, h.entry.Time.Sub(a.recent[i]))
	}
	for i := range a.held[1:] {
		if x := &a.held[1+i]; x.wrong == nil {
			behind = append(behind, h.entry.Time.Sub(x.entry.Time))
		}
	}
	later, earlier := farAhead, farBehind
	if len(before) < around || len(behind) < around {
		later, earlier = farOff, farOff
	}
	where := ""
	switch {
	case len(before) < around && len(behind) == 0: // too few lines to decide
		return nil
	case isFar(before, behind, 1, later):
		where = fmt.Sprintf("later by more than %v", later)
	case len(before) > 0 && isFar(before, behind, -1, earlier):
		where = fmt.Sprintf("earlier by more than %v", earlier)
	default:
		return nil
	}
	return &LineError{f.log.nameOf(f), h.line, fmt.Errorf("the date %s is %w: %s", h.entry.Time.Format(time.RFC3339),
		ErrAstray, where)}
}

// isFar reports whether a date is far, in one direction, from all dates before it and most dates after it. Far means
// farther than least, and farther than these dates are from each other. The nearest quarter of the dates after it is
// ignored, because these dates may be wrong in the same way. If there are fewer than 16 of them (around), the nearest
// half is ignored.
func isFar(before, behind []time.Duration, direction, least time.Duration) bool {
	off := slices.Clone(behind)
	for i := range off {
		off[i] *= direction
	}
	slices.Sort(off)
	few := len(off) / 4
	if len(off) < around {
		few = len(off) / 2 // least is farOff in this case
	}
	off = off[few:]
	for _, d := range before {
		off = append(off, d*direction)
	}
	nearest := slices.Min(off)
	return nearest > least && nearest > slices.Max(off)-nearest
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
