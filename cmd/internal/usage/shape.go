package usage

import (
	"bytes"
	"strings"
)

const (
	maxShape = 2 << 10 // bytes of a line whose shape is known
	maxHoles = 64
)

// A shape is that of the latest line with an event that says nothing but text: events of a stream differ in few places.
// A line of the same shape is compared with it instead of being read, which takes a fifth of the time.
//
// Strings and numbers that nothing is known of, and text, may differ: these are holes. All else must be the same: keys,
// the types of events, what the answer says of its end. So a line of the shape says what the line itself has said, but
// for the length of its text.
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

// quoted returns the length of the text that a line begins with, up to its quote, and the size of that without escapes.
// It is -1 for none, and for escapes of code points.
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

// passes reports whether a whole line with a document, which begins and ends in it, needs not be read: its shape is
// known, and its text is counted.
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
