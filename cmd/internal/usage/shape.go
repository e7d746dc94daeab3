package usage

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

const (
	maxShape = 2 << 10 // length of the longest line whose shape is remembered, in bytes
	maxHoles = 64

	usualHoles = 16
)

// A shape is the form of a line whose event has only text. It is learned from the latest such line. The events of a
// stream differ in few places. So comparing a line with the shape takes only a tenth of the time of reading the line.
//
// Some values may differ between lines of one shape: texts, and strings and numbers that do not matter for the usage.
// The places of these values are holes. Keys, types of events, and values that report the end of the answer must be
// equal. So for the usage, two lines of one shape differ only in the length of their text.
//
// Most holes never differ, such as the name of the model. So the first comparison of a line permits differences only in
// texts and in holes that have differed before. Most of the line is then compared at once. If a piece has several lines
// of the shape, the bytes from the last hole of a line to the first hole of the next line are also compared at once.
type shape struct {
	line     []byte
	holes    []hole
	varying  []hole // texts, and other holes whose contents have differed before
	between  []byte // bytes from the last varying hole of a line to the first one of the next line; empty until known
	known    bool
	learning bool   // the line to learn from is being read
	began    []byte // beginning of a line that has had the shape so far, so that it has only text
}

// A hole is the place of a value in a line. The value has the bytes [from:to] of the line.
type hole struct {
	from, to     int
	text, number bool
	varies       bool
}

// begin makes the shape learn from a line. The caller must read this line next, in one piece.
func (s *shape) begin(line []byte) {
	s.known, s.learning = false, len(line) <= maxShape
	if s.learning {
		s.line, s.holes = append(s.line[:0], line...), slices.Grow(s.holes[:0], usualHoles)
	}
}

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

func (s *shape) end(says bool, at int) {
	s.known, s.learning = s.learning && !says && at == len(s.line)-1, false
	s.vary()
}

func (s *shape) vary() {
	s.varying = s.varying[:0]
	for _, h := range s.holes {
		if h.varies {
			s.varying = append(s.varying, h)
		}
	}
	s.between = s.between[:0]
}

// matches reports whether a piece begins with a complete line that has the shape. It returns the length of the line
// without its end, and the number of bytes of text in the line.
//
// The parameter prefix is the text in a line before the document. If it is not "", the results may include the next
// lines of the shape. If ends is true, such a line is included only if another document with the prefix begins after
// it.
func (s *shape) matches(piece []byte, prefix string, ends bool) (n, text int, ok bool) {
	if !s.known {
		return 0, 0, false
	}
	if n, text, ok = s.compare(s.varying, piece, prefix, ends); ok {
		return n, text, true
	}
	if n, text, ok = s.compare(s.holes, piece, "", ends); ok {
		s.note(piece[:n])
	}
	return n, text, ok
}

// compare does what matches does, for lines that differ only in the given holes. If prefix is "", it compares only one
// line.
func (s *shape) compare(holes []hole, piece []byte, prefix string, ends bool) (n, text int, ok bool) {
	first, last := len(s.line), len(s.line)
	if len(holes) > 0 {
		first, last = holes[0].from, holes[len(holes)-1].to
	}
	if !bytes.HasPrefix(piece, s.line[:first]) {
		return 0, 0, false
	}
	tail := s.line[last:]
	rest, size := piece[first:], 0
	if prefix != "" && len(holes) == 1 && holes[0].text && len(s.between) > 0 {
		if run, size := texts(rest, s.between); run > 0 {
			rest = rest[run:]
			n, text, ok = len(piece)-len(rest)-len(s.between)+len(tail), size, true
		}
	}
	for {
		for i := range holes {
			h := &holes[i]
			if i > 0 {
				same := s.line[holes[i-1].to:h.from]
				if !bytes.HasPrefix(rest, same) {
					return n, text, ok
				}
				rest = rest[len(same):]
			}
			length, bytes := h.length(rest)
			if length < 0 {
				return n, text, ok
			}
			if rest = rest[length:]; h.text {
				size += bytes
			}
		}
		if len(s.between) == 0 || prefix == "" || !bytes.HasPrefix(rest, s.between) {
			break
		}
		n, text, ok = len(piece)-len(rest)+len(tail), text+size, true
		rest, size = rest[len(s.between):], 0
	}
	if ok && ends || !bytes.HasPrefix(rest, tail) || !isEnd(rest[len(tail):]) {
		return n, text, ok
	}
	n, text = len(piece)-len(rest)+len(tail), text+size
	if left := len(piece) - n; prefix != "" && left > len(s.line)/2 && left > len(s.between) {
		s.follow(piece[n:], prefix, first, last)
	}
	return n, text, true
}

// texts measures the texts at the beginning of rest. They are separated by the bytes in the parameter between. It
// returns how many bytes the texts and the separators have. The result size is the size of the texts without escapes.
func texts(rest, between []byte) (n, size int) {
	for {
		end, special := n, uint64(0)
		for special == 0 && end+8 <= len(rest) {
			special = specials(binary.LittleEndian.Uint64(rest[end:]))
			end += 8
		}
		text := 0
		if special != 0 {
			end += bits.TrailingZeros64(special)/8 - 8
			text = end - n
		}
		if special == 0 || rest[end] != '"' { // an escape, or the end of rest
			var length int
			if length, text = quoted(rest[n:]); length < 0 {
				return n, size
			}
			end = n + length
		}
		if len(rest)-end < len(between) || !bytes.Equal(rest[end:end+len(between)], between) {
			return n, size
		}
		n, size = end+len(between), size+text
	}
}

// maxBetween bounds how many bytes between two documents are compared at once. These bytes have, for example, the name
// of an event.
const maxBetween = 128

// follow notes the bytes between two holes: the last varying hole of a line, and the first varying hole of the next
// line with a document. The parameter rest has the bytes after the line. Only lines without data may be in between.
func (s *shape) follow(rest []byte, prefix string, first, last int) {
	rest = rest[:min(len(rest), maxBetween)]
	for at := 0; ; {
		end := bytes.IndexByte(rest[at:], '\n')
		if end < 0 || bytes.IndexByte(bytes.TrimSuffix(rest[at:at+end], []byte{'\r'}), '\r') >= 0 {
			return
		}
		at += end + 1
		if next := rest[at:]; bytes.HasPrefix(next, []byte(prefix)) {
			at += len(prefix)
			s.between = append(slices.Grow(s.between[:0], len(s.line)-last+at+first), s.line[last:]...)
			s.between = append(append(s.between, rest[:at]...), s.line[:first]...)
			return
		} else if len(next) == 0 || next[0] >= 0x80 { // a byte order mark is not part of a name
			return
		}
	}
}

func isEnd(rest []byte) bool {
	return len(rest) > 0 && rest[0] == '\n' || len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n'
}

// note marks holes as varying: those in which a line differs from the line of the shape.
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

// begins reports whether the beginning of a line has the shape so far. The line then has only text so far.
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

// The function length returns one of these if the value is incomplete or does not fit the hole.
const (
	open   = -1 // the value ends after the line
	unlike = -2 // the value is of another kind, or must be read
)

// length returns the length in bytes of the value in a hole. The result size is the size of a text without its escapes.
func (h *hole) length(line []byte) (n, size int) {
	if h.number {
		return numeric(line), 0
	}
	return quoted(line)
}

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

var inNumeric = func() (is [256]bool) {
	for _, c := range []byte("0123456789.-+eE") {
		is[c] = true
	}
	return is
}()

// quoted returns the length of a text up to its closing quote, and the size of the text without escapes. If the text
// has a line end or an escape of a code point, it returns unlike.
func quoted(line []byte) (n, size int) {
	escapes := 0
	for n < len(line) {
		if n+8 <= len(line) {
			special := specials(binary.LittleEndian.Uint64(line[n : n+8]))
			if special == 0 {
				n += 8
				continue
			}
			n += bits.TrailingZeros64(special) / 8
		}
		switch line[n] {
		case '"':
			return n, n - escapes
		case '\n', '\r':
			return unlike, 0
		case '\\':
			if n++; n < len(line) && line[n] == 'u' {
				return unlike, 0
			}
			escapes++
		}
		n++
	}
	return open, 0
}

// specials finds the first byte in a word that is a quote, a backslash or a control character. The lowest bit that is
// set in the result is the top bit of this byte. If the word has no such byte, the result is 0.
func specials(word uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, backslash := word^ones*'"', word^ones*'\\'
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (word-ones*' ')&^word) & tops
}

// passes reports whether a piece begins with a complete line of the known shape. If so, it counts the text of the line,
// and returns the line's length without its end. The parameter prefix is the text in a line before the document. If it
// is not "", passes also counts further lines of the shape.
func (s *Scanner) passes(piece []byte, prefix string) (n int, ok bool) {
	n, text, ok := s.shape.matches(piece, prefix, s.stops)
	if ok {
		s.text += uint64(text)
		s.frames.usageOnly = false
	}
	return n, ok
}
