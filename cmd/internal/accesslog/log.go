package accesslog

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Log is the entries of one file or several. Not safe for concurrent use.
//
// Memory does not grow with the log: a file is open only while entries of its time are read, and holds then a buffer of
// a little more than MaxLine bytes, what its compression needs, and up to 16,384 entries that are sorted, divided by
// the number of files that were open when they were read.
type Log struct {
	format *format // nil if it is to be detected
	client string  // the header field that has the client; "" for that of the format
	lines  int     // that are held to be sorted, at most
	files  []*file

	looked  bool
	looking error   // why the files cannot be read; nil if they can
	waiting []*file // not open yet, by the times at which they begin
	active  []*file

	bytes int64 // read so far, as stored
	watch func(read int64)
}

// NewLog returns the log that is in one stream, which may be compressed. Its format is detected.
func NewLog(r io.Reader) *Log {
	l := &Log{lines: orderLines}
	l.files = []*file{{log: l, stream: io.NopCloser(r)}}
	return l
}

// AsLogged has the entries of each file come in the order of its lines, with Entry.Late as if they were sorted. It is
// called before the first Next.
func (l *Log) AsLogged() { l.lines = 1 }

// LineError says what is wrong with a line that is no entry.
type LineError struct {
	File string // of several; "" if there is only one
	Line int    // from 1
	Err  error
}

// Error returns "line 3: what is wrong with it", after the name of the file if there are several.
func (e *LineError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("line %d: %v", e.Line, e.Err)
	}
	return fmt.Sprintf("%s, line %d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns the reason.
func (e *LineError) Unwrap() error { return e.Err }

// asLineError returns what is wrong with a line; nil for another error, and without one.
func asLineError(err error) *LineError {
	if err == nil {
		return nil // without an allocation
	}
	var line *LineError
	errors.As(err, &line)
	return line
}

// Next returns the next entry, which is valid until the following call. The error is io.EOF at the end, a *LineError
// for a line that is no entry, after which reading goes on, and anything else is final.
//
// The entries of several files are merged: the next is always the earliest of those that come next in their files. So
// it does not matter in which order rotated logs are given, and the logs of several machines become one. Within a file
// entries are sorted by their times ([Entry].Late), as far as 16,384 lines or 4 MiB of text reach, divided by the
// number of files that are open. A line that is too late for that is handed on as it is, or is a *LineError if it is
// late by more than a minute. Entries of the same time stay in the order of the file, and of the files.
func (l *Log) Next() (*Entry, error) {
	if err := l.look(); err != nil {
		return nil, err
	}
	for {
		if err := l.makeReady(); err != nil {
			return nil, err
		}
		f := l.earliest()
		if len(l.waiting) > 0 && (f == nil || !l.waiting[0].begins.After(f.entry.Time)) {
			if err := l.activate(l.waiting[0]); err != nil {
				return nil, err
			}
			l.waiting = l.waiting[1:]
			continue
		}
		if f == nil {
			return nil, io.EOF
		}
		f.ready = false
		return f.entry, nil
	}
}

// makeReady reads one entry of each active file of which the last was taken. A file at its end is let go.
func (l *Log) makeReady() error {
	for i := 0; i < len(l.active); i++ {
		f := l.active[i]
		if f.ready {
			continue
		}
		err := f.next()
		if errors.Is(err, io.EOF) {
			l.active = slices.Delete(l.active, i, i+1)
			i--
			err = f.close()
		}
		if err != nil {
			return l.named(f, err)
		}
	}
	return nil
}

// earliest returns the active file whose next entry is the earliest; nil if there is none.
func (l *Log) earliest() (first *file) {
	for _, f := range l.active {
		if first == nil {
			first = f
			continue
		}
		order := f.entry.Time.Compare(first.entry.Time)
		if order < 0 || order == 0 && f.index < first.index {
			first = f
		}
	}
	return first
}

func (l *Log) activate(f *file) error {
	l.active = append(l.active, f)
	if f.lines != nil {
		return nil // it stayed open
	}
	return l.named(f, f.open())
}

// look finds the format of every file, once.
func (l *Log) look() error {
	if l.looked {
		return l.looking
	}
	l.looked = true
	for _, f := range l.files {
		if l.looking = l.named(f, f.look()); l.looking != nil {
			return l.looking
		}
	}
	l.waiting = slices.Clone(l.files)
	slices.SortStableFunc(l.waiting, func(a, b *file) int { return a.begins.Compare(b.begins) })
	return nil
}

// Rewind makes Next begin again with the first entry, and reports whether that is possible: not for standard input and
// what else can be read once only.
func (l *Log) Rewind() bool {
	for _, f := range l.files {
		if !f.reopens() {
			return false
		}
	}
	for _, f := range l.files {
		_ = f.close() // it was only read
		f.ready, f.leaps, f.order = false, leaps{}, order{}
	}
	l.looked, l.waiting, l.active, l.bytes = false, nil, nil, 0
	return true
}

// nameOf is what a file is called in messages: nothing if there is no other.
func (l *Log) nameOf(f *file) string {
	if len(l.files) == 1 {
		return ""
	}
	return f.name
}

// named puts the name of a file before an error, if there are several files.
func (l *Log) named(f *file, err error) error {
	if name := l.nameOf(f); err != nil && name != "" && asLineError(err) == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return err
}

// Fields returns what the log holds of each request: what all its files do. The error is the one that Next gives.
func (l *Log) Fields() (Fields, error) {
	if err := l.look(); err != nil {
		return Fields{}, err
	}
	var all *Fields
	for _, f := range l.files {
		switch {
		case f.format == nil: // empty
		case all == nil:
			all = &f.fields
		default:
			both := all.and(f.fields)
			all = &both
		}
	}
	if all == nil {
		return Fields{}, nil
	}
	return *all, nil
}

// Format returns the names of the formats of the files, such as "combined" or "alb, haproxy"; "" as long as Next and
// Fields were not called, and for a log without a line.
func (l *Log) Format() string {
	var names []string
	for _, f := range l.files {
		if f.format != nil && !slices.Contains(names, f.format.name) {
			names = append(names, f.format.name)
		}
	}
	return strings.Join(names, ", ")
}

// Name is what the log is called: the name of its file, or how many there are.
func (l *Log) Name() string {
	if len(l.files) == 1 {
		return l.files[0].name
	}
	return fmt.Sprintf("%d files", len(l.files))
}

// Size is how many bytes all files have, as stored; -1 when that cannot be known, as for a pipe.
func (l *Log) Size() (size int64) {
	for _, f := range l.files {
		if f.info == nil || !f.info.Mode().IsRegular() {
			return -1
		}
		size += f.info.Size()
	}
	return size
}

// Watch lets a function know how many bytes, as stored, were read so far.
func (l *Log) Watch(watch func(read int64)) { l.watch = watch }

func (l *Log) count(n int) {
	l.bytes += int64(n)
	if l.watch != nil {
		l.watch(l.bytes)
	}
}

// Close lets the files go.
func (l *Log) Close() (err error) {
	for _, f := range l.files {
		err = errors.Join(err, f.close())
	}
	return err
}
