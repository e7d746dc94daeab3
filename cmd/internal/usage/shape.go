package usage

import (
	"bytes"
	"strings"
)

const (
	maxShape = 2 << 10 // bytes of a line whose shape is known
	maxHoles = 64
)

// A shape is the form of the latest line whose event has only text, because the events of a stream differ in few
// places. A line of the same shape is compared instead of being read, which takes a fifth of the time.
//
// Text may differ, and so may strings and numbers that have no meaning here: these are holes. Everything else must be
// the same: keys, types of events, and what the answer says about its end. So a line of the shape differs from the
// earlier line only in the length of its text.
type shape struct {
	line     []byte
	holes    []hole
	known    bool
	learning bool // the line is being read
}

// A hole is a value of the line: its bytes from from to to.
type hole struct {
	from, to     int
	text, number bool
}

// begin has the shape become that of a line which is read next, in one piece.
func (s *shape) begin(line []byte) {
	s.known, s.learning = false, len(line) <= maxShape
	if s.learning {
		s.line, s.holes = append(s.line[:0], line...), s.holes[:0]
	}
}

// value notes a value of the line that is read.
func (s *shape) value(at *node, k kind, from, to int) {
	free := at == nil || at.field == none || at.field == fText
	if !free || k != isString && k != isNumber {
		return
	}
	if len(s.holes) == maxHoles {
		s.learning = false
		return
	}
	s.holes = append(s.holes, hole{from, to, k == isString && at != nil && at.field == fText, k == isNumber})
}

// end ends the line, whose last byte that was read is at.
func (s *shape) end(says bool, at int) {
	s.known, s.learning = s.learning && !says && at == len(s.line)-1, false
}

// matches reports whether a line has the shape, and how many bytes of text it has.
func (s *shape) matches(line []byte) (text int, ok bool) {
	if !s.known {
		return 0, false
	}
	from := 0 // of what must be the same
	for _, h := range s.holes {
		same := s.line[from:h.from]
		if !bytes.HasPrefix(line, same) {
			return 0, false
		}
		line = line[len(same):]
		from = h.to
		n, size := 0, 0
		if h.number {
			n = numeric(line)
		} else {
			n, size = quoted(line)
		}
		if n < 0 {
			return 0, false
		}
		if h.text {
			text += size
		}
		line = line[n:]
	}
	return text, bytes.Equal(line, s.line[from:])
}

// numeric returns the length of the number that a line begins with; -1 for none.
func numeric(line []byte) (n int) {
	for n < len(line) && strings.IndexByte("0123456789.-+eE", line[n]) >= 0 {
		n++
	}
	if n == 0 {
		return -1
	}
	return n
}

// quoted returns the length of the text at the start of a line, including its closing quote, and the size of the text
// without escapes. It returns -1 if there is no text, and for escapes of code points.
func quoted(line []byte) (n, size int) {
	for {
		end := bytes.IndexByte(line[n:], '"')
		if end < 0 {
			return -1, 0
		}
		escape := bytes.IndexByte(line[n:n+end], '\\')
		if escape < 0 {
			return n + end, size + end
		}
		if n += escape + 2; n > len(line) || line[n-1] == 'u' {
			return -1, 0
		}
		size += escape + 1
	}
}

// passes reports whether a line need not be read, because its shape is known; its text is counted. The line must be
// complete and have exactly one document.
func (s *Scanner) passes(line []byte) bool {
	text, ok := s.shape.matches(line)
	if !ok {
		s.shape.begin(line)
		return false
	}
	s.text += uint64(text)
	s.frames.usageOnly = false
	return true
}
