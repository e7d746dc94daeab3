package accesslog

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

const (
	// longLeap is by how much the date of a line may be later than all before it, without a question.
	longLeap = 366 * 24 * time.Hour
	// leapLines is how many lines in a row that leap so far are believed.
	leapLines = 16
)

// leaps finds the lines of a file whose date is more than a year too late: if such a date were believed, all that
// follows would be late. The first lines, and those that leap, are held back until it is known. They are wrong if more
// of the lines around them are a year before them. So is a single one at the end.
type leaps struct {
	passed    int       // entries that were handed on
	latest    time.Time // of those
	held      []held    // lines of which it is not known yet
	first     time.Time // of the first entry that is held
	far, back int       // of the entries that are held: those about that time, and those a year before it
	known     []held    // lines that come next
	end       error     // what comes behind them
}

// held is an entry, or what is wrong with its line.
type held struct {
	entry Entry
	line  int
	wrong *LineError
}

// next returns the next entry of the file, which is valid until the following call, or what is wrong with its line.
func (l *leaps) next(f *file) (*Entry, error) {
	for {
		if len(l.known) > 0 {
			h := &l.known[0]
			l.known = l.known[1:]
			if h.wrong != nil {
				return nil, h.wrong
			}
			return &h.entry, nil
		}
		if l.end != nil {
			return nil, l.end
		}
		e, err := f.parse()
		switch wrong := asLineError(err); {
		case wrong != nil && len(l.held) == 0:
			return nil, wrong
		case wrong != nil:
			l.held = append(l.held, held{wrong: wrong})
		case err != nil:
			l.end = err
			l.settle(f, l.passed >= leapLines && l.far == 1)
		case len(l.held) == 0 && l.passed > 0 && e.Time.Sub(l.latest) <= longLeap:
			l.pass(e)
			return e, nil
		default:
			l.hold(f, e)
		}
	}
}

// pass notes that an entry is handed on.
func (l *leaps) pass(e *Entry) {
	l.passed++
	if e.Time.After(l.latest) {
		l.latest = e.Time
	}
}

// hold holds an entry back, and all that are held no longer than is needed.
func (l *leaps) hold(f *file, e *Entry) {
	if len(l.held) > 0 && e.Time.Sub(l.first) > longLeap {
		l.settle(f, false) // what is held is not it
	}
	if len(l.held) == 0 {
		l.first = e.Time
	}
	l.held = append(l.held, held{entry: e.clone(), line: f.lines.number})
	before := 0
	if l.passed > 0 {
		before = 1 // the line before the leap
	}
	if l.isFar(e) {
		l.far++
	} else if l.back++; before+l.back > l.far {
		l.settle(f, true)
	}
	if l.far == leapLines {
		l.settle(f, false)
	}
}

func (l *leaps) isFar(e *Entry) bool { return l.first.Sub(e.Time) <= longLeap }

// settle hands on what is held, with the lines that are far as entries or as wrong.
func (l *leaps) settle(f *file, areWrong bool) {
	for i := range l.held {
		switch h := &l.held[i]; {
		case h.wrong != nil:
		case areWrong && l.isFar(&h.entry):
			h.wrong = &LineError{f.log.nameOf(f), h.line, fmt.Errorf(
				"the date %s is more than a year later than those of the lines around it", h.entry.Time.Format(time.RFC3339))}
		default:
			l.pass(&h.entry)
		}
	}
	l.known, l.held = append(l.known, l.held...), nil
	l.far, l.back = 0, 0
}

// clone returns an entry that stays valid.
func (e *Entry) clone() Entry {
	c := *e
	for _, text := range []*[]byte{&c.Client, &c.Method, &c.Target, &c.Proto, &c.Host} {
		*text = bytes.Clone(*text)
	}
	c.Headers = slices.Clone(c.Headers)
	for i := range c.Headers {
		c.Headers[i].Value = bytes.Clone(c.Headers[i].Value)
	}
	return c
}
