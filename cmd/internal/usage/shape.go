package usage

import "bytes"

const (
	maxShape = 2 << 10 // bytes of a line whose shape is known
	maxHoles = 64
)

// A shape is the form of the latest line whose event has only text, because the events of a stream differ in few
// places. A line of the same shape is compared instead of being read, which takes a tenth of the time.
//
// Text may differ, and so may strings and numbers that have no meaning here: these are holes. Everything else must be
// the same: keys, types of events, and what the answer says about its end. So a line of the shape differs from the
// earlier line only in the length of its text.
//
// Most holes have the same content in all events of a stream, such as the name of the model. A line is first compared
// as if only text and the holes that have differed so far may differ. So most of the line is one comparison.
type shape struct {
	line     []byte
	holes    []hole
	varying  []hole // text, and holes in which lines have differed
	known    bool
	learning bool   // the line is being read
	began    []byte // a line that has come in part, and is like this one so far: it has said nothing but text
}

// A hole is a value of the line: its bytes from from to to.
type hole struct {
	from, to     int
	text, number bool
	varies       bool
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
	text := k == isString && at != nil && at.field == fText
	s.holes = append(s.holes, hole{from: from, to: to, text: text, number: k == isNumber, varies: text})
}

// end ends the line, whose last byte that was read is at.
func (s *shape) end(says bool, at int) {
	s.known, s.learning = s.learning && !says && at == len(s.line)-1, false
	s.vary()
}

// vary lists the holes that vary.
func (s *shape) vary() {
	s.varying = s.varying[:0]
	for _, h := range s.holes {
		if h.varies {
			s.varying = append(s.varying, h)
		}
	}
}

// matches reports whether a piece begins with a whole line that has the shape. It returns the length of the line
// without its end, and how many bytes of text the line has.
func (s *shape) matches(piece []byte) (n, text int, ok bool) {
	if !s.known {
		return 0, 0, false
	}
	if n, text, ok = s.compare(s.varying, piece); ok {
		return n, text, true
	}
	if n, text, ok = s.compare(s.holes, piece); ok {
		s.note(piece[:n])
	}
	return n, text, ok
}

// compare is matches of a line that differs in some holes alone.
func (s *shape) compare(holes []hole, piece []byte) (n, text int, ok bool) {
	from, rest := 0, piece // of what must be the same
	for i := range holes {
		h := &holes[i]
		same := s.line[from:h.from]
		if !bytes.HasPrefix(rest, same) {
			return 0, 0, false
		}
		rest = rest[len(same):]
		from = h.to
		length, size := h.length(rest)
		if length < 0 {
			return 0, 0, false
		}
		if h.text {
			text += size
		}
		rest = rest[length:]
	}
	same := s.line[from:]
	if !bytes.HasPrefix(rest, same) {
		return 0, 0, false
	}
	rest = rest[len(same):]
	if len(rest) > 0 && rest[0] == '\n' || len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n' {
		return len(piece) - len(rest), text, true
	}
	return 0, 0, false
}

// note has the holes vary in which a line of the shape differs from that of the shape.
func (s *shape) note(line []byte) {
	moved := 0 // how much longer the line is so far
	for i := range s.holes {
		h := &s.holes[i]
		n, _ := h.length(line[h.from+moved:])
		h.varies = h.varies || !bytes.Equal(line[h.from+moved:][:n], s.line[h.from:h.to])
		moved += n - (h.to - h.from)
	}
	s.vary()
}

// begins reports whether a line that has come in part is like that of the shape so far. What it has said so far is then
// text alone.
func (s *shape) begins(line []byte) bool {
	if !s.known {
		return false
	}
	from := 0
	for i := range s.varying {
		h := &s.varying[i]
		same := s.line[from:h.from]
		if len(line) < len(same) {
			return bytes.HasPrefix(same, line)
		}
		if !bytes.HasPrefix(line, same) {
			return false
		}
		line = line[len(same):]
		from = h.to
		n, _ := h.length(line)
		if n == open {
			return true
		} else if n < 0 {
			return false
		}
		line = line[n:]
	}
	return bytes.HasPrefix(s.line[from:], line)
}

// What length returns of what is not the whole of a value.
const (
	open   = -1 // it ends behind the line
	unlike = -2 // it is of another kind, or must be read
)

// length returns how many bytes of a line the value in a hole has, and the size of a text without escapes.
func (h *hole) length(line []byte) (n, size int) {
	if h.number {
		return numeric(line), 0
	}
	return quoted(line)
}

// numeric returns the length of the number that a line begins with.
func numeric(line []byte) (n int) {
	for n < len(line) && inNumeric[line[n]] {
		n++
	}
	switch {
	case len(line) > 0 && (n == 0 || line[0] != '-' && line[0] < '0' || line[0] > '9'):
		return unlike
	case n == len(line):
		return open
	}
	return n
}

// inNumeric are the bytes of numbers.
var inNumeric = func() (is [256]bool) {
	for _, c := range []byte("0123456789.-+eE") {
		is[c] = true
	}
	return is
}()

// quoted returns the length of the text that a line begins with, up to its quote, and the size of that without escapes.
// It returns unlike for escapes of code points, and for what ends a line.
func quoted(line []byte) (n, size int) {
	for i, c := range line[:min(len(line), 32)] { // most texts are short and plain
		if c == '"' {
			return i, i
		} else if c < ' ' || c == '\\' {
			break
		}
	}
	for end := -1; ; {
		if end < n {
			quote := bytes.IndexByte(line[n:], '"')
			if quote < 0 {
				return unquoted(line), 0
			}
			end = n + quote
		}
		escape := bytes.IndexByte(line[n:end], '\\')
		if escape < 0 {
			if isOver(line[:end]) {
				return unlike, 0
			}
			return end, size + end - n
		}
		if n += escape + 2; line[n-1] == 'u' {
			return unlike, 0
		}
		size += escape + 1
	}
}

// unquoted returns what quoted does of a text without a quote.
func unquoted(line []byte) int {
	if bytes.Contains(line, []byte(`\u`)) || isOver(line) {
		return unlike
	}
	return open
}

// isOver reports whether a line ends in a text.
func isOver(text []byte) bool {
	return bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0
}

// passes reports whether a piece begins with a whole line with a document, which begins and ends in it, that needs not
// be read: its shape is known, and its text is counted. It returns the length of the line without its end.
func (s *Scanner) passes(piece []byte) (n int, ok bool) {
	n, text, ok := s.shape.matches(piece)
	if ok {
		s.text += uint64(text)
		s.frames.usageOnly = false
	}
	return n, ok
}
