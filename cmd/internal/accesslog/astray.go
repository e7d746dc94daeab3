package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// around is a number of lines. The date of a line is compared with the dates of this many lines before it and this
	// many lines after it.
	around = 16
	// A date may be up to farAhead later, and up to farBehind earlier, than the dates of all lines around it. farBehind
	// is larger, because a server may log a long request with the time at which it began, but no server logs a request
	// before the request arrives.
	farAhead, farBehind = 30 * time.Minute, 24 * time.Hour
	// farOff is used instead of farAhead and farBehind for a line that has fewer than around lines before it or after
	// it.
	farOff = 366 * 24 * time.Hour
)

// ErrAstray means that the date of a line is far from the dates of the lines around it.
var ErrAstray = errors.New("far from the dates of the lines around it")

// astray finds the lines of a file whose date is far from the dates of all lines around it. If such a date were
// trusted, the request would count at a wrong time. A line is in doubt if its date is not near the date of a line
// before it. Such a line is held back until the lines after it have been read. The date is wrong if the dates of the
// lines after it are near each other and are far from it, in the same direction as the dates of the lines before it.
// Otherwise the log continues at another time, as in files that were concatenated in any order.
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

// next returns the next entry of the file, or the error of its line. The entry is valid until the following call.
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

// readOn reads one more line and holds it.
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

// pass notes the time of an entry that is passed on.
func (a *astray) pass(at time.Time) {
	a.recent[a.passed%around] = at
	a.passed++
}

// isNear reports whether a date is near the date of one of the entries before it.
func (a *astray) isNear(at time.Time) bool {
	for i := range min(a.passed, around) {
		if off := at.Sub(a.recent[(a.passed-1-i)%around]); off <= farAhead && off >= -farBehind {
			return true
		}
	}
	return false
}

// behind returns how many entries are held after the first held line.
func (a *astray) behind() (n int) {
	for i := range a.held[1:] {
		if a.held[1+i].wrong == nil {
			n++
		}
	}
	return n
}

// judge returns the error of the first held line, or nil if the date of this line is right.
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

// isFar reports whether a date is far, in one direction, from all dates before it and from most dates after it. A
// distance is far if it is larger than the parameter least, and larger than the distance between the nearest and the
// farthest of these dates. Of the dates after it, isFar ignores the nearest quarter, because these dates may be wrong
// in the same way. If there are fewer than around of these dates, isFar ignores the nearest half.
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
