package accesslog

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the longest line, in bytes without its line end, that Lines
// returns. Web servers limit a request head to a few kilobytes, so a longer
// line is damage, and memory must not grow with it.
const MaxLine = 1 << 20

// ErrLineTooLong stands for a line of more than MaxLine bytes, which was passed
// over: reading can go on behind it.
var ErrLineTooLong = fmt.Errorf("the line is longer than %d bytes", MaxLine)

// lineEnd is room for the longest line end, "\r\n".
const lineEnd = 2

// Lines cuts a stream, plain or gzip, into lines. It holds one buffer of a
// little more than MaxLine bytes whatever the input. Not safe for concurrent use.
type Lines struct {
	raw    *bufio.Reader // as given
	text   *bufio.Reader // decompressed; nil until the first two bytes were seen
	number int
}

// NewLines returns the lines of r. Gzip is recognised by its first two bytes,
// not by a name, so it works on a pipe too; several gzip members in a row, as
// concatenated rotated logs have, are one stream.
func NewLines(r io.Reader) *Lines {
	return &Lines{raw: bufio.NewReaderSize(r, 64<<10)}
}

// Number is the number of the line that Next returned last, counted from 1;
// 0 before the first.
func (l *Lines) Number() int { return l.number }

// Next returns the next line without its line end; the slice is valid until the
// following call. At the end of the input the error is io.EOF. ErrLineTooLong
// takes the place of one line; any other error is final, says what is wrong
// with the input and after which line.
func (l *Lines) Next() ([]byte, error) {
	if l.text == nil {
		if err := l.detect(); err != nil {
			return nil, l.explain(err)
		}
	}
	line, err := l.text.ReadSlice('\n')
	tooLong := errors.Is(err, bufio.ErrBufferFull)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = l.text.ReadSlice('\n')
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		// A piece of a line in front of a failure is not a line.
		return nil, l.explain(err)
	case err != nil && len(line) == 0 && !tooLong:
		return nil, io.EOF
	}
	l.number++
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	if tooLong || len(line) > MaxLine {
		return nil, ErrLineTooLong
	}
	return line, nil
}

// detect looks at the first two bytes to choose between plain text and gzip.
func (l *Lines) detect() error {
	magic, err := l.raw.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var text io.Reader = l.raw
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if text, err = gzip.NewReader(l.raw); err != nil {
			return err
		}
	}
	l.text = bufio.NewReaderSize(text, MaxLine+lineEnd)
	return nil
}

// explain says what a failing stream means, and what to do about it.
func (l *Lines) explain(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the gzip data breaks off after line %d: the file is truncated; "+
			"get a complete copy, or pipe what is left of it through gunzip: %w", l.number, err)
	case errors.As(err, &corrupt), errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
		return fmt.Errorf("the gzip data is damaged after line %d; get an intact copy: %w", l.number, err)
	default:
		return fmt.Errorf("reading stopped after line %d: %w", l.number, err)
	}
}
