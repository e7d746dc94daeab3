package accesslog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the longest line that is read, in bytes without its line end. It bounds memory: web servers limit a
// request head to a few kilobytes, so a longer line is damaged.
const MaxLine = 1 << 20

// ErrLineTooLong means that a line of more than MaxLine bytes was skipped. Reading can continue after it.
var ErrLineTooLong = fmt.Errorf("the line is longer than %d bytes", MaxLine)

// lineEnd is room for the longest line end, "\r\n".
const lineEnd = 2

// lines splits a stream, which may be compressed, into lines. Its one buffer has little more than MaxLine bytes.
type lines struct {
	source  *sticky       // the given stream
	raw     *bufio.Reader // source with a buffer
	text    *bufio.Reader // raw decompressed; nil until the first bytes were read
	coding  string        // the coding of raw; "" for none
	number  int           // number of the line that next returned last, from 1
	skipped int           // number of lines that start has skipped because they were too long
}

func newLines(r io.Reader) *lines {
	source := &sticky{r: r}
	return &lines{source: source, raw: bufio.NewReaderSize(source, 64<<10)}
}

// next returns the next line without its line end. The line is valid until the following call of next. The error is
// io.EOF at the end. After ErrLineTooLong, reading can continue. Any other error is final. It says what is wrong, and
// after which line.
func (l *lines) next() ([]byte, error) {
	if err := l.open(); err != nil {
		return nil, err
	}
	if l.skipped > 0 {
		l.skipped--
		l.number++
		return nil, ErrLineTooLong
	}
	line, tooLong, err := l.slice()
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		// If the stream fails, the bytes since the last line end are not a line.
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

// slice returns the next line with its line end, or only the last part of a line that is too long.
func (l *lines) slice() (line []byte, tooLong bool, err error) {
	line, err = l.text.ReadSlice('\n')
	for errors.Is(err, bufio.ErrBufferFull) {
		tooLong = true
		_, err = l.text.ReadSlice('\n')
	}
	return line, tooLong, err
}

// start returns the beginning of the text, up to the size of the buffer, without lines that are too long. The result
// complete says whether this is the complete text. start must be called before next. If it cannot read even one line,
// it returns the error of next.
func (l *lines) start() (text []byte, complete bool, err error) {
	if err := l.open(); err != nil {
		return nil, false, err
	}
	text, err = l.text.Peek(l.text.Size())
	for err == nil && bytes.IndexByte(text, '\n') < 0 {
		if _, _, err = l.slice(); err != nil && !errors.Is(err, io.EOF) {
			return nil, false, l.explain(err)
		}
		l.skipped++
		text, err = l.text.Peek(l.text.Size())
	}
	if err == nil || errors.Is(err, io.EOF) {
		return text, err != nil, nil
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // a part of a line before a failure is not a line
	if len(text) == 0 {
		return nil, false, l.explain(err)
	}
	return text, true, nil
}

// open recognizes the coding of the text by the first bytes, and decodes the text.
func (l *lines) open() error {
	if l.text != nil {
		return nil
	}
	text, coding, err := decode(l.raw)
	if err != nil && l.source.failed() {
		return l.explain(err)
	}
	if err != nil {
		return err
	}
	l.coding, l.text = coding, bufio.NewReaderSize(&sticky{r: text}, MaxLine+lineEnd)
	return nil
}

// explain returns the error of a failed stream: either the source failed, or its data are damaged.
func (l *lines) explain(err error) error {
	if l.source.failed() {
		return fmt.Errorf("reading stopped after line %d: %w", l.number, l.source.err)
	}
	return damageError(err, l.coding, l.number)
}

// sticky repeats an error at each later call, even io.EOF. Without it, an error during Peek would be lost, because
// bufio.Reader forgets it.
type sticky struct {
	r   io.Reader
	err error
}

func (s *sticky) Read(p []byte) (n int, err error) {
	if s.err != nil {
		return 0, s.err
	}
	n, s.err = s.r.Read(p)
	return n, s.err
}

func (s *sticky) failed() bool { return s.err != nil && !errors.Is(s.err, io.EOF) }
