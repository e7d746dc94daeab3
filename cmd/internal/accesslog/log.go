package accesslog

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A Log has the entries of one or more files. It is not safe for concurrent use.
//
// Memory does not grow with the log. A file is open only while Next reads entries of its time range. An open file needs
// a buffer of little more than MaxLine bytes, and memory for decompression. To sort lines, all open files together hold
// back at most 16,384 lines and 4 MiB of text, in equal shares. A log that needs more is sorted on disk, with at most
// about ten times sortBytes of memory.
type Log struct {
	format *format // nil to detect it
	client string  // the header field that has the client; "" if the format has it
	files  []*file

	detected  bool
	detectErr error   // why no format was detected, or a file cannot be read; nil if all is well
	pending   []*file // not open yet, sorted by the time of their first entry
	active    []*file

	window   int            // at most this many lines are held to be sorted
	lastTime time.Time      // time of the entry that was passed on last
	sorter   *sorter        // sorts a log on disk
	sorted   *sortedEntries // the entries of sorter; nil until all were added
	onEntry  func(*Entry)

	bytes      int64 // bytes that were read so far, as stored
	onProgress func(activity string, read int64)
}

// NewLog returns the log in a stream, which may be compressed. The format is detected.
func NewLog(r io.Reader) *Log {
	l := &Log{window: manyLines}
	l.files = []*file{{log: l, stream: &spool{stream: io.NopCloser(r)}}}
	return l
}

// DisableSorting turns sorting off until Widen is called. This is fastest for a log that is in order. It must be called
// before the first Next.
func (l *Log) DisableSorting() { l.window = noLines }

// ErrUnsorted says that an entry came too late to be sorted among the lines that are held back.
var ErrUnsorted = errors.New("an entry is too late for the lines that are held back for sorting")

// OnEntry sets a function that gets every entry, in the order of the lines of its file. Whenever Next returns an entry,
// the function gets an entry of the same file. But if the log is sorted on disk, the function gets all entries before
// Next returns the first. OnEntry must be called before the first Next, and not together with [Log.DisableSorting]. nil
// means no function.
func (l *Log) OnEntry(fn func(*Entry)) { l.onEntry = fn }

// LineError says what is wrong with a line that is not an entry.
type LineError struct {
	File string // the name of the file; "" if there is only one
	Line int    // from 1
	Err  error
}

// Error returns "line 3: " and the error, after the name of the file if there are several.
func (e *LineError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("line %d: %v", e.Line, e.Err)
	}
	return fmt.Sprintf("%s, line %d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns the reason.
func (e *LineError) Unwrap() error { return e.Err }

func asLineError(err error) *LineError {
	if err == nil {
		return nil // without an allocation
	}
	var lineErr *LineError
	errors.As(err, &lineErr)
	return lineErr
}

// Next returns the next entry, which is valid until the following call. The error is io.EOF at the end. A *LineError
// means that a line is not an entry; reading may continue after it. Any other error is final, except that [Log.Widen]
// starts over after ErrUnsorted.
//
// The entries are ordered by time. Entries of the same time are in the order of their files, then of their lines. So
// the logs of several machines become one log.
func (l *Log) Next() (*Entry, error) {
	if err := l.detectFormats(); err != nil {
		return nil, err
	}
	for l.sorted == nil {
		f, err := l.earliest()
		if errors.Is(err, io.EOF) && l.sorter != nil {
			l.sorted = l.sorter.entries()
			break
		}
		if err != nil {
			return nil, err
		}
		f.ready = false
		if l.onEntry != nil {
			f.reorder.passEntry(l.onEntry)
		}
		if l.sorter == nil {
			if f.entry.Time.Before(l.lastTime) {
				return nil, ErrUnsorted
			}
			l.lastTime = f.entry.Time
			return f.entry, nil
		}
		if err := l.sorter.add(f.entry); err != nil {
			return nil, err
		}
	}
	e, err := l.sorted.next()
	if l.onProgress != nil {
		l.onProgress("sorting", int64(float64(l.bytes)*l.sorted.progress()))
	}
	return e, err
}

// earliest returns the active file with the earliest next entry. If several files have an entry of this time, it
// returns the first of them. If there are no files, it returns io.EOF.
func (l *Log) earliest() (*file, error) {
	for {
		if err := l.makeReady(); err != nil {
			return nil, err
		}
		f := l.earliestActive()
		if len(l.pending) > 0 && (f == nil || !l.pending[0].startTime.After(f.entry.Time)) {
			if err := l.activate(l.pending[0]); err != nil {
				return nil, err
			}
			l.pending = l.pending[1:]
			continue
		}
		if f == nil {
			return nil, io.EOF
		}
		return f, nil
	}
}

// makeReady reads the next entry of each active file whose previous entry Next has returned. It closes a file at its
// end.
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
			err = f.finish()
		}
		if err != nil {
			return l.withName(f, err)
		}
	}
	return nil
}

func (l *Log) earliestActive() (first *file) {
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
	return l.withName(f, f.open())
}

func (l *Log) detectFormats() error {
	if l.detected {
		return l.detectErr
	}
	l.detected = true
	for _, f := range l.files {
		if l.detectErr = l.withName(f, f.detectFormat()); l.detectErr != nil {
			return l.detectErr
		}
	}
	l.pending = slices.Clone(l.files)
	slices.SortStableFunc(l.pending, func(a, b *file) int { return a.startTime.Compare(b.startTime) })
	return nil
}

// Rewind makes Next start over with the first entry. To make this possible for a stream such as standard input, the
// stream is copied while it is read. Without room for the copy, Rewind returns an error.
func (l *Log) Rewind() error {
	for _, f := range l.files {
		if err := l.withName(f, f.rewind()); err != nil {
			return err
		}
	}
	if l.sorter != nil {
		_ = l.sorter.Close() // the file is deleted in any case
		l.sorter = newSorter()
	}
	l.detected, l.pending, l.active, l.bytes, l.lastTime, l.sorted = false, nil, nil, 0, time.Time{}, nil
	return nil
}

// Reopens reports whether the log can start over without a copy. It can if no file is a stream such as standard input.
func (l *Log) Reopens() bool {
	return !slices.ContainsFunc(l.files, func(f *file) bool { return !f.reopens() })
}

// Widen makes Next start over after ErrUnsorted. More lines are then held back, or the log is sorted on disk. Widen
// returns the errors of Rewind.
func (l *Log) Widen() error {
	switch l.window {
	case noLines:
		l.window = fewLines
	case fewLines:
		l.window = manyLines
	default:
		l.window, l.sorter = 1, newSorter()
	}
	return l.Rewind()
}

func (l *Log) nameOf(f *file) string {
	if len(l.files) == 1 {
		return ""
	}
	return f.name
}

func (l *Log) withName(f *file, err error) error {
	if name := l.nameOf(f); err != nil && name != "" && asLineError(err) == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return err
}

// Fields returns the fields that all files of the log have for each request. It returns the error that Next would
// return.
func (l *Log) Fields() (Fields, error) {
	if err := l.detectFormats(); err != nil {
		return Fields{}, err
	}
	var fields *Fields
	for _, f := range l.files {
		switch {
		case f.format == nil: // the file has only blank lines
		case fields == nil:
			fields = &f.fields
		default:
			shared := fields.intersect(f.fields)
			fields = &shared
		}
	}
	if fields == nil {
		return Fields{}, nil
	}
	return *fields, nil
}

// Format returns the formats of the files, such as "combined" or "alb, haproxy". It is "" before the first Next or
// Fields, and for a log without a line.
func (l *Log) Format() string {
	var names []string
	for _, f := range l.files {
		if f.format != nil && !slices.Contains(names, f.format.name) {
			names = append(names, f.format.name)
		}
	}
	return strings.Join(names, ", ")
}

// Name returns the name of the log for people: the name of its file, or the number of its files.
func (l *Log) Name() string {
	if len(l.files) == 1 {
		return l.files[0].name
	}
	return fmt.Sprintf("%d files", len(l.files))
}

// Size returns the stored size of all files, or -1 if it is unknown, as for a pipe.
func (l *Log) Size() (size int64) {
	for _, f := range l.files {
		if f.info == nil || !f.info.Mode().IsRegular() {
			return -1
		}
		size += f.info.Size()
	}
	return size
}

// Watch sets a function that gets a description of the current work and the number of stored bytes that were read so
// far.
func (l *Log) Watch(fn func(activity string, read int64)) { l.onProgress = fn }

func (l *Log) count(n int) {
	l.bytes += int64(n)
	if l.onProgress != nil {
		l.onProgress("reading", l.bytes)
	}
}

// Close closes the files.
func (l *Log) Close() (err error) {
	for _, f := range l.files {
		err = errors.Join(err, f.close())
	}
	if l.sorter != nil {
		err = errors.Join(err, l.sorter.Close())
	}
	return err
}
