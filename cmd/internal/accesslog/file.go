package accesslog

import (
	"errors"
	"io"
	"io/fs"
	"time"
)

type file struct {
	log   *Log
	name  string // for messages; "" if there is none
	path  string // "" if the file cannot be opened again
	index int    // in the order given
	info  fs.FileInfo

	stream  io.ReadCloser // nil while it is not open
	lines   *lines
	parser  parser
	dates   dateFilter
	reorder reorderBuffer
	entry   *Entry // the next entry
	ready   bool   // entry has been read, and Next has not returned it

	format    *format // nil if there are only blank lines
	fields    Fields
	startTime time.Time // the time of the earliest entry of its sample; zero if the sample has no entry
}

// reopens reports whether the file can be read from its start any number of times.
func (f *file) reopens() bool { return f.path != Stdin && f.info != nil && f.info.Mode().IsRegular() }

func (f *file) open() error {
	if err := f.openStream(); err != nil {
		return err
	}
	f.lines = newLines(&counter{f.stream, f.log})
	return nil
}

func (f *file) openStream() (err error) {
	if f.stream == nil {
		f.stream, err = openStream(f.path)
	}
	return err
}

// detectFormat finds the format of the file, and then closes the file, because the system bounds the number of open
// files. It does not close the only file of a log, or a file that cannot be opened again.
func (f *file) detectFormat() error {
	if len(f.log.files) == 1 || !f.reopens() {
		return f.detectIn(f.open)
	}
	return errors.Join(f.detectIn(func() error {
		err := f.openStream()
		f.lines = newLines(f.stream) // not counted: it will be read again
		return err
	}), f.close())
}

func (f *file) detectIn(open func() error) error {
	if err := open(); err != nil {
		return err
	}
	start, complete, err := f.lines.start()
	if err != nil {
		return err
	}
	if len(start) == 0 && f.lines.skipped > 0 {
		return ErrLineTooLong // all first lines are too long
	}
	s, err := detect(start, complete, f.log.format)
	f.format, f.fields, f.startTime = s.format, s.fields, s.startTime
	return err
}

func (f *file) next() (err error) {
	f.entry, err = f.reorder.next(f)
	f.ready = err == nil
	return err
}

func (f *file) parse() (*Entry, error) {
	line, err := f.lines.next()
	if err == nil {
		format := f.format
		if format == nil {
			format = combined
		}
		err = f.parser.parse(format, line)
		f.parser.entry.line = f.lines.number
		if err == nil && f.log.client != "" {
			err = f.parser.entry.setForwarded(f.log.client)
		}
	} else if !errors.Is(err, ErrLineTooLong) {
		return nil, err
	}
	if err != nil {
		return nil, &LineError{f.log.nameOf(f), f.lines.number, err}
	}
	return &f.parser.entry, nil
}

// rewind makes the next read start at the beginning of the file.
func (f *file) rewind() error {
	f.ready, f.dates, f.reorder = false, dateFilter{}, reorderBuffer{}
	if s, isSpool := f.stream.(*spool); isSpool {
		f.lines = nil
		return s.rewind()
	}
	return f.close()
}

// finish closes the file at its end. A stream stays open, since it cannot be opened again.
func (f *file) finish() error {
	if _, isSpool := f.stream.(*spool); isSpool {
		f.lines = nil
		return nil
	}
	return f.close()
}

func (f *file) close() (err error) {
	if f.stream != nil {
		err = f.stream.Close()
	}
	f.stream, f.lines = nil, nil
	return err
}

// A counter counts the bytes that are read from a file, before they are decompressed.
type counter struct {
	r   io.Reader
	log *Log
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.log.count(n)
	return n, err
}
