package usage

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
)

type framing uint8

const (
	unknown  framing = iota // the first byte determines it
	whole                   // one document, or an array of documents
	lines                   // one document per line
	events                  // server-sent events
	binaries                // Amazon's event stream
)

// frames finds the documents in the bytes that are written.
type frames struct {
	of        framing
	usageOnly bool // the event has a usage and nothing else for the client
	over      bool // the event has ended

	// These fields are for server-sent events.
	name  [6]byte // first bytes of the field's name in the current line
	named int     // number of bytes of the name so far; above 6 if the name is longer
	value int     // number of bytes of the value so far; -1 before the colon
	empty bool    // the current line is empty so far
	cr    bool    // the last byte was a carriage return
	end   [6]byte // the first bytes of the data, to recognize [DONE]

	// These fields are for binary frames.
	head  [12]byte
	had   int    // number of bytes in head
	left  uint32 // number of bytes of the part that are left
	part  part
	size  uint32 // size of the payload
	names [512]byte
	kept  int
}

type part uint8

const (
	prelude part = iota
	headers
	payload
	checksum
	lost // a frame was not valid, so the rest is not read
)

func (f *frames) begin(contentType string) {
	f.value, f.empty = -1, true
	kind, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "text/event-stream":
		f.of = events
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines":
		f.of = lines
	case "application/vnd.amazon.eventstream":
		f.of = binaries
	}
}

// step reads up to the end of an event. It may pass the ends of events that have only text.
func (f *frames) step(s *Scanner, p []byte) (n int, event bool) {
	if f.of == unknown {
		for n < len(p) && (isBlank(p[n]) || p[n] >= 0x80) { // blanks, or a byte order mark
			n++
		}
		if n == len(p) {
			return n, false
		}
		if f.of = whole; strings.IndexByte("{[\"-0123456789tfn", p[n]) < 0 {
			f.of = events
		}
		p = p[n:]
	}
	var m int
	switch f.of {
	case lines:
		m = f.line(s, p)
	case events:
		if f.over {
			f.over, f.usageOnly = false, false
		}
		m, event = f.events(s, p)
		f.over = event
	case binaries:
		m = f.binary(s, p)
	default:
		s.doc.write(p)
		m = len(p)
	}
	return n + m, event
}

func (f *frames) line(s *Scanner, p []byte) int {
	if n := f.resume(s, p); n > 0 {
		return n
	}
	if s.doc.isBetween() {
		if n, ok := s.passes(p, ""); ok {
			if p[n] == '\r' {
				n++
			}
			return n + 1
		}
	}
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		if !s.doc.isBetween() || !f.hold(s, p, p) {
			s.doc.write(p)
		}
		return len(p)
	}
	if s.doc.isBetween() {
		s.shape.begin(bytes.TrimSuffix(p[:end], []byte{'\r'}))
	}
	s.doc.write(p[:end+1])
	s.reset() // even if the line was not a complete document
	return end + 1
}

// maxBegan is the largest length of the beginning of a line that the method hold stores.
const maxBegan = maxShape + 8 // 8 is for the name of a field

// hold stores the beginning of a line until the rest of the line comes. It returns false if it has not stored the
// beginning. The parameter document is the part of the line that begins a document.
func (f *frames) hold(s *Scanner, line, document []byte) bool {
	if len(line) > maxBegan || !s.shape.begins(document) {
		return false
	}
	s.shape.began = append(s.shape.began[:0], line...)
	return true
}

// resume reads the rest of a line whose beginning is stored. It returns how many bytes it has read. If p does not have
// the end of the line, resume reads only the stored beginning and returns 0.
func (f *frames) resume(s *Scanner, p []byte) (n int) {
	if len(s.shape.began) == 0 {
		return 0
	}
	end := bytes.IndexByte(p, '\n')
	if end < 0 || len(s.shape.began)+end > maxBegan {
		f.release(s)
		return 0
	}
	s.shape.began = append(s.shape.began, p[:end+1]...)
	f.read(s)
	return end + 1
}

// release reads the stored beginning of a line.
func (f *frames) release(s *Scanner) {
	if len(s.shape.began) > 0 {
		s.shape.known = false // so that it is not stored again
		f.read(s)
	}
}

func (f *frames) read(s *Scanner) {
	line := s.shape.began
	s.shape.began = s.shape.began[:0]
	if f.of == lines {
		f.line(s, line)
	} else {
		f.events(s, line)
	}
}

// events reads at most up to the end of an event.
func (f *frames) events(s *Scanner, p []byte) (n int, event bool) {
	for i := f.resume(s, p); i < len(p); i++ {
		if f.empty && !f.cr && s.doc.isBetween() {
			read, event := f.passed(s, p[i:])
			if i += read; event || i == len(p) {
				return i, event
			}
		}
		c := p[i]
		if f.cr && c == '\n' {
			f.cr = false
			continue
		}
		f.cr = c == '\r'
		switch {
		case c == '\n' || c == '\r':
			if f.endLine(s) {
				if f.cr && i+1 < len(p) && p[i+1] == '\n' {
					f.cr = false
					i++
				}
				return i + 1, true
			}
		case f.value < 0:
			f.empty = false
			f.inName(c)
		default:
			i += f.inValue(s, p[i:]) - 1
		}
	}
	return len(p), false
}

// passed reads complete lines between documents that need not be read byte by byte. These are lines without data and
// lines with the known shape. It stops after an event that has more than text. If the last line is incomplete and may
// have the shape, passed stores it.
func (f *frames) passed(s *Scanner, p []byte) (n int, event bool) {
	for n < len(p) {
		line := p[n:]
		if line[0] == '\n' { // no document ends here
			if n++; s.stops {
				return n, true
			}
			continue
		}
		if line[0] == '\r' || line[0] >= 0x80 { // a byte order mark is not part of a name
			return n, false
		}
		document, isData := bytes.CutPrefix(line, []byte("data:"))
		end := bytes.IndexByte(line, '\n')
		if isData && end >= 0 {
			if length, ok := s.passes(document, "data:"); ok {
				if n += len("data:") + length + 1; p[n-1] == '\r' {
					n++
				}
				continue
			}
		}
		switch {
		case isData && end < 0:
			if f.hold(s, line, document) {
				return len(p), false
			}
			return n, false
		case isData:
			s.shape.begin(bytes.TrimSuffix(document[:end-len("data:")], []byte{'\r'}))
			return n, false
		case end < 0 || line[0] == 'd' || bytes.IndexByte(line[:end-1], '\r') >= 0:
			return n, false
		}
		n += end + 1
	}
	return n, false
}

func (f *frames) inName(c byte) {
	switch {
	case c == ':':
		f.value = 0
	case f.named == 0 && c >= 0x80: // a byte order mark
	default:
		if f.named < len(f.name) {
			f.name[f.named] = c
		}
		f.named++
	}
}

// inValue reads the rest of the value of a line. It returns how many bytes it has read.
func (f *frames) inValue(s *Scanner, p []byte) (n int) {
	data := p
	if n = bytes.IndexByte(data, '\n'); n >= 0 {
		data = p[:n]
	}
	if n = bytes.IndexByte(data, '\r'); n >= 0 {
		data = p[:n]
	}
	n = len(data)
	for i := 0; i < n && f.value < len(f.end); i++ {
		if f.value == 0 && data[i] == ' ' {
			continue
		}
		f.end[f.value] = data[i]
		f.value++
	}
	if f.isData() {
		s.doc.write(data)
	}
	return n
}

func (f *frames) isData() bool { return f.named == 4 && string(f.name[:4]) == "data" }

// endLine ends a line. If the line is empty, it ends the event, and endLine returns true.
func (f *frames) endLine(s *Scanner) (event bool) {
	s.shape.learning = false
	switch {
	case f.empty:
		s.doc.write([]byte{'\n'})
		s.reset()
		event = true
	case f.isData() && f.value == len(f.end) && string(f.end[:]) == "[DONE]":
		s.done = true
		s.final = s.final || s.raw.isWhole()
		s.reset()
	case f.isData():
		s.doc.write([]byte{'\n'})
	}
	f.empty, f.named, f.value = true, 0, -1
	return event
}

// A frame of Amazon's event stream has at most maxFrame bytes, and its headers have at most maxHeaders bytes.
const (
	maxFrame   = 24 << 20
	maxHeaders = 128 << 10
)

// binary reads bytes of the current part of a frame.
func (f *frames) binary(s *Scanner, p []byte) (n int) {
	switch f.part {
	case prelude:
		n = copy(f.head[f.had:], p)
		if f.had += n; f.had == len(f.head) {
			f.beginFrame(s)
		}
	case headers, payload, checksum:
		n = int(min(uint64(len(p)), uint64(f.left)))
		f.left -= uint32(n)
		f.inPart(s, p[:n])
	case lost:
		n = len(p)
	}
	for f.left == 0 && f.part != prelude && f.part != lost {
		f.nextPart(s)
	}
	return n
}

func (f *frames) beginFrame(s *Scanner) {
	total, names := binary.BigEndian.Uint32(f.head[0:]), binary.BigEndian.Uint32(f.head[4:])
	if total < 16 || total > maxFrame || names > maxHeaders || names > total-16 ||
		crc32.ChecksumIEEE(f.head[:8]) != binary.BigEndian.Uint32(f.head[8:]) {
		f.part = lost
		return
	}
	f.part, f.left, f.size, f.kept, f.had = headers, names, total-names-16, 0, 0
	s.reset()
}

func (f *frames) inPart(s *Scanner, p []byte) {
	switch f.part {
	case headers:
		f.kept += copy(f.names[f.kept:], p)
	case payload:
		s.doc.write(p)
	case prelude, checksum, lost:
	}
}

func (f *frames) nextPart(s *Scanner) {
	switch f.part {
	case headers:
		s.event = event{binary: header(f.names[:f.kept], ":event-type") == "metadata"}
		f.part, f.left = payload, f.size
	case payload:
		f.part, f.left = checksum, 4
	case checksum:
		s.leave()
		f.part = prelude
	case prelude, lost:
	}
}

func header(b []byte, name string) string {
	for len(b) > 1 {
		n := int(b[0])
		if len(b) < n+4 || b[n+1] != 7 { // 7 means a text; the wanted headers come before headers of other types
			return ""
		}
		size := int(binary.BigEndian.Uint16(b[n+2:]))
		if len(b) < n+4+size {
			return ""
		}
		if string(b[1:n+1]) == name {
			return string(b[n+4 : n+4+size])
		}
		b = b[n+4+size:]
	}
	return ""
}
