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
	line      []byte
	holes     []hole
	varying   []hole // texts, and other holes whose contents have differed before
	separator []byte // bytes from the last varying hole of a line to the first one of the next line; empty until known
	known     bool
	learning  bool   // the line to learn from is being read
	pending   []byte // beginning of a line that has had the shape so far, so that it has only text
}

// A hole is the place of a value in a line. The value is line[from:to].
type hole struct {
	from, to         int
	isText, isNumber bool
	varies           bool
}

// begin makes the shape learn from a line. The caller must read this line next, in one piece.
func (s *shape) begin(line []byte) {
	s.known, s.learning = false, len(line) <= maxShape
	if s.learning {
		s.line, s.holes = append(s.line[:0], line...), slices.Grow(s.holes[:0], usualHoles)
	}
}

func (s *shape) value(n *node, k kind, from, to int) {
	free := n == nil || n.field == none || n.field == fText
	if !free || k != kindString && k != kindNumber {
		return
	}
	if len(s.holes) == maxHoles {
		s.learning = false
		return
	}
	text := k == kindString && n != nil && n.field == fText
	s.holes = append(s.holes, hole{from: from, to: to, isText: text, isNumber: k == kindNumber, varies: text})
}

func (s *shape) end(reports bool, pos int) {
	s.known, s.learning = s.learning && !reports && pos == len(s.line)-1, false
	s.updateVarying()
}

func (s *shape) updateVarying() {
	s.varying = s.varying[:0]
	for _, h := range s.holes {
		if h.varies {
			s.varying = append(s.varying, h)
		}
	}
	s.separator = s.separator[:0]
}

// matches reports whether a piece begins with a complete line that has the shape. It returns the length of the line
// without its end, and the number of bytes of text in the line.
//
// The parameter prefix is the text in a line before the document. If it is not "", the results may include the next
// lines of the shape. If stopAtEvent is true, such a line is included only if another document with the prefix begins
// after it.
func (s *shape) matches(piece []byte, prefix string, stopAtEvent bool) (n, text int, ok bool) {
	if !s.known {
		return 0, 0, false
	}
	if n, text, ok = s.compare(s.varying, piece, prefix, stopAtEvent); ok {
		return n, text, true
	}
	if n, text, ok = s.compare(s.holes, piece, "", stopAtEvent); ok {
		s.markVarying(piece[:n])
	}
	return n, text, ok
}

// compare does what matches does, for lines that differ only in the given holes. If prefix is "", it compares only one
// line.
func (s *shape) compare(holes []hole, piece []byte, prefix string, stopAtEvent bool) (n, text int, ok bool) {
	first, last := len(s.line), len(s.line)
	if len(holes) > 0 {
		first, last = holes[0].from, holes[len(holes)-1].to
	}
	if !bytes.HasPrefix(piece, s.line[:first]) {
		return 0, 0, false
	}
	tail := s.line[last:]
	rest, size := piece[first:], 0
	if prefix != "" && len(holes) == 1 && holes[0].isText && len(s.separator) > 0 {
		if length, size := measureTexts(rest, s.separator); length > 0 {
			rest = rest[length:]
			n, text, ok = len(piece)-len(rest)-len(s.separator)+len(tail), size, true
		}
	}
	for {
		for i := range holes {
			h := &holes[i]
			if i > 0 {
				literal := s.line[holes[i-1].to:h.from]
				if !bytes.HasPrefix(rest, literal) {
					return n, text, ok
				}
				rest = rest[len(literal):]
			}
			length, textSize := h.length(rest)
			if length < 0 {
				return n, text, ok
			}
			if rest = rest[length:]; h.isText {
				size += textSize
			}
		}
		if len(s.separator) == 0 || prefix == "" || !bytes.HasPrefix(rest, s.separator) {
			break
		}
		n, text, ok = len(piece)-len(rest)+len(tail), text+size, true
		rest, size = rest[len(s.separator):], 0
	}
	if ok && stopAtEvent || !bytes.HasPrefix(rest, tail) || !isEnd(rest[len(tail):]) {
		return n, text, ok
	}
	n, text = len(piece)-len(rest)+len(tail), text+size
	if left := len(piece) - n; prefix != "" && left > len(s.line)/2 && left > len(s.separator) {
		s.learnSeparator(piece[n:], prefix, first, last)
	}
	return n, text, true
}

// measureTexts measures the texts at the beginning of rest. They are separated by the bytes in separator. It returns
// how many bytes the texts and the separators have. The result size is the size of the texts without escapes.
func measureTexts(rest, separator []byte) (n, size int) {
	for {
		end, special := n, uint64(0)
		for special == 0 && end+8 <= len(rest) {
			special = firstSpecial(binary.LittleEndian.Uint64(rest[end:]))
			end += 8
		}
		text := 0
		if special != 0 {
			end += bits.TrailingZeros64(special)/8 - 8
			text = end - n
		}
		if special == 0 || rest[end] != '"' { // an escape, or the end of rest
			var length int
			if length, text = textLength(rest[n:]); length < 0 {
				return n, size
			}
			end = n + length
		}
		if len(rest)-end < len(separator) || !bytes.Equal(rest[end:end+len(separator)], separator) {
			return n, size
		}
		n, size = end+len(separator), size+text
	}
}

// maxSeparator bounds how many bytes between two documents are compared at once. These bytes have, for example, the
// name of an event.
const maxSeparator = 128

// learnSeparator stores the bytes between two holes: the last varying hole of a line, and the first varying hole of the
// next line with a document. The parameter rest has the bytes after the line. Only lines without data may be in
// between.
func (s *shape) learnSeparator(rest []byte, prefix string, first, last int) {
	rest = rest[:min(len(rest), maxSeparator)]
	for pos := 0; ; {
		end := bytes.IndexByte(rest[pos:], '\n')
		if end < 0 || bytes.IndexByte(bytes.TrimSuffix(rest[pos:pos+end], []byte{'\r'}), '\r') >= 0 {
			return
		}
		pos += end + 1
		if next := rest[pos:]; bytes.HasPrefix(next, []byte(prefix)) {
			pos += len(prefix)
			s.separator = append(slices.Grow(s.separator[:0], len(s.line)-last+pos+first), s.line[last:]...)
			s.separator = append(append(s.separator, rest[:pos]...), s.line[:first]...)
			return
		} else if len(next) == 0 || next[0] >= 0x80 { // a byte order mark is not part of a name
			return
		}
	}
}

func isEnd(rest []byte) bool {
	return len(rest) > 0 && rest[0] == '\n' || len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n'
}

// markVarying marks the holes as varying in which a line differs from the line of the shape.
func (s *shape) markVarying(line []byte) {
	shift := 0 // how much longer the line is so far
	for i := range s.holes {
		h := &s.holes[i]
		n, _ := h.length(line[h.from+shift:])
		h.varies = h.varies || !bytes.Equal(line[h.from+shift:][:n], s.line[h.from:h.to])
		shift += n - (h.to - h.from)
	}
	s.updateVarying()
}

// matchesStart reports whether the beginning of a line has the shape so far. The line then has only text so far.
func (s *shape) matchesStart(line []byte) bool {
	if !s.known {
		return false
	}
	from := 0
	for i := range s.varying {
		h := &s.varying[i]
		literal := s.line[from:h.from]
		if len(line) < len(literal) {
			return bytes.HasPrefix(literal, line)
		}
		if !bytes.HasPrefix(line, literal) {
			return false
		}
		line = line[len(literal):]
		from = h.to
		n, _ := h.length(line)
		if n == incomplete {
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
	incomplete = -1 // the bytes end before the value does
	mismatch   = -2 // the value is of another kind, or must be read
)

// length returns the length in bytes of the value in a hole. The result size is the size of a text without its escapes.
func (h *hole) length(line []byte) (n, size int) {
	if h.isNumber {
		return numberLength(line), 0
	}
	return textLength(line)
}

func numberLength(line []byte) (n int) {
	for n < len(line) && isNumberByte[line[n]] {
		n++
	}
	switch {
	case len(line) > 0 && (n == 0 || line[0] != '-' && line[0] < '0' || line[0] > '9'):
		return mismatch
	case n == len(line):
		return incomplete
	}
	return n
}

var isNumberByte = func() (set [256]bool) {
	for _, c := range []byte("0123456789.-+eE") {
		set[c] = true
	}
	return set
}()

// textLength returns the length of a text up to its closing quote, and the size of the text without escapes. If the
// text has a line end or an escape of a code point, it returns mismatch.
func textLength(line []byte) (n, size int) {
	escapes := 0
	for n < len(line) {
		if n+8 <= len(line) {
			special := firstSpecial(binary.LittleEndian.Uint64(line[n : n+8]))
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
			return mismatch, 0
		case '\\':
			if n++; n < len(line) && line[n] == 'u' {
				return mismatch, 0
			}
			escapes++
		}
		n++
	}
	return incomplete, 0
}

// firstSpecial finds the first byte in a word that is a quote, a backslash or a control character. The lowest bit that
// is set in the result is the top bit of this byte. If the word has no such byte, the result is 0.
func firstSpecial(word uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, backslash := word^ones*'"', word^ones*'\\'
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (word-ones*' ')&^word) & tops
}

// countKnownLine reports whether a piece begins with a complete line of the known shape. If so, it counts the text of
// the line, and returns the line's length without its end. The parameter prefix is the text in a line before the
// document. If it is not "", countKnownLine also counts further lines of the shape.
func (s *Scanner) countKnownLine(piece []byte, prefix string) (n int, ok bool) {
	n, text, ok := s.shape.matches(piece, prefix, s.stopAtEvent)
	if ok {
		s.text += uint64(text)
		s.frames.usageOnly = false
	}
	return n, ok
}
