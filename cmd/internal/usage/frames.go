package usage

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
)

type framing uint8

const (
	unknown   framing = iota // the first byte determines it
	wholeBody                // one document, or an array of documents
	lines                    // one document per line
	events                   // server-sent events
	binaries                 // Amazon's event stream
)

// frames finds the documents in the bytes that are written.
type frames struct {
	framing    framing
	usageOnly  bool // the event has a usage and nothing else for the client
	eventEnded bool // the last step has read the end of an event

	// These fields are for server-sent events.
	name      [6]byte // first bytes of the field's name in the current line
	nameLen   int     // number of bytes of the name so far; above 6 if the name is longer
	valueLen  int     // number of bytes of the value so far; -1 before the colon
	emptyLine bool    // the current line is empty so far
	cr        bool    // the last byte was a carriage return
	dataStart [6]byte // the first bytes of the data, to recognize [DONE]

	// These fields are for binary frames.
	head        [12]byte
	headLen     int    // number of bytes in head
	left        uint32 // number of bytes of the part that are left
	part        part
	size        uint32 // size of the payload
	headerBytes [512]byte
	headerLen   int
}

type part uint8

const (
	prelude part = iota
	headers
	payload
	checksum
	invalidFrame // a frame was not valid, so the rest is not read
)

func (f *frames) begin(contentType string) {
	f.valueLen, f.emptyLine = -1, true
	kind, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "text/event-stream":
		f.framing = events
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines":
		f.framing = lines
	case "application/vnd.amazon.eventstream":
		f.framing = binaries
	}
}

// step reads up to the end of an event. It may pass the ends of events that have only text.
func (f *frames) step(s *Scanner, p []byte) (n int, event bool) {
	if f.framing == unknown {
		for n < len(p) && (isBlank(p[n]) || p[n] >= 0x80) { // blanks, or a byte order mark
			n++
		}
		if n == len(p) {
			return n, false
		}
		if f.framing = wholeBody; strings.IndexByte("{[\"-0123456789tfn", p[n]) < 0 {
			f.framing = events
		}
		p = p[n:]
	}
	var m int
	switch f.framing {
	case lines:
		m = f.line(s, p)
	case events:
		if f.eventEnded {
			f.eventEnded, f.usageOnly = false, false
		}
		m, event = f.events(s, p)
		f.eventEnded = event
	case binaries:
		m = f.binary(s, p)
	default:
		s.doc.write(p)
		m = len(p)
	}
	return n + m, event
}

func (f *frames) line(s *Scanner, p []byte) int {
	if n := f.readPending(s, p); n > 0 {
		return n
	}
	if s.doc.isBetween() {
		if n, ok := s.countKnownLine(p, ""); ok {
			if p[n] == '\r' {
				n++
			}
			return n + 1
		}
	}
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		if !s.doc.isBetween() || !f.storeStart(s, p, p) {
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

// maxPending is the largest length of the beginning of a line that storeStart stores.
const maxPending = maxShape + 8 // 8 is for the name of a field

// storeStart stores the beginning of a line until the rest of the line comes. It returns false if it has not stored the
// beginning. The parameter document is the part of the line that begins a document.
func (f *frames) storeStart(s *Scanner, line, document []byte) bool {
	if len(line) > maxPending || !s.shape.matchesStart(document) {
		return false
	}
	s.shape.pending = append(s.shape.pending[:0], line...)
	return true
}

// readPending reads the rest of a line whose beginning is stored. It returns how many bytes it has read. If p does not
// have the end of the line, readPending reads only the stored beginning and returns 0.
func (f *frames) readPending(s *Scanner, p []byte) (n int) {
	if len(s.shape.pending) == 0 {
		return 0
	}
	end := bytes.IndexByte(p, '\n')
	if end < 0 || len(s.shape.pending)+end > maxPending {
		f.flushPending(s)
		return 0
	}
	s.shape.pending = append(s.shape.pending, p[:end+1]...)
	f.readLine(s)
	return end + 1
}

// flushPending reads the stored beginning of a line.
func (f *frames) flushPending(s *Scanner) {
	if len(s.shape.pending) > 0 {
		s.shape.known = false // so that it is not stored again
		f.readLine(s)
	}
}

func (f *frames) readLine(s *Scanner) {
	line := s.shape.pending
	s.shape.pending = s.shape.pending[:0]
	if f.framing == lines {
		f.line(s, line)
	} else {
		f.events(s, line)
	}
}

// events reads at most up to the end of an event.
func (f *frames) events(s *Scanner, p []byte) (n int, event bool) {
	for i := f.readPending(s, p); i < len(p); i++ {
		if f.emptyLine && !f.cr && s.doc.isBetween() {
			length, event := f.readKnownLines(s, p[i:])
			if i += length; event || i == len(p) {
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
		case f.valueLen < 0:
			f.emptyLine = false
			f.readName(c)
		default:
			i += f.readValue(s, p[i:]) - 1
		}
	}
	return len(p), false
}

// readKnownLines reads complete lines between documents that need not be read byte by byte. These are lines without
// data and lines with the known shape. It stops after an event that has more than text. If the last line is incomplete
// and may have the shape, readKnownLines stores it.
func (f *frames) readKnownLines(s *Scanner, p []byte) (n int, event bool) {
	for n < len(p) {
		line := p[n:]
		if line[0] == '\n' { // no document ends here
			if n++; s.stopAtEvent {
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
			if length, ok := s.countKnownLine(document, "data:"); ok {
				if n += len("data:") + length + 1; p[n-1] == '\r' {
					n++
				}
				continue
			}
		}
		switch {
		case isData && end < 0:
			if f.storeStart(s, line, document) {
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

func (f *frames) readName(c byte) {
	switch {
	case c == ':':
		f.valueLen = 0
	case f.nameLen == 0 && c >= 0x80: // a byte order mark
	default:
		if f.nameLen < len(f.name) {
			f.name[f.nameLen] = c
		}
		f.nameLen++
	}
}

// readValue reads the rest of the value of a line. It returns how many bytes it has read.
func (f *frames) readValue(s *Scanner, p []byte) (n int) {
	data := p
	if n = bytes.IndexByte(data, '\n'); n >= 0 {
		data = p[:n]
	}
	if n = bytes.IndexByte(data, '\r'); n >= 0 {
		data = p[:n]
	}
	n = len(data)
	for i := 0; i < n && f.valueLen < len(f.dataStart); i++ {
		if f.valueLen == 0 && data[i] == ' ' {
			continue
		}
		f.dataStart[f.valueLen] = data[i]
		f.valueLen++
	}
	if f.isData() {
		s.doc.write(data)
	}
	return n
}

func (f *frames) isData() bool { return f.nameLen == 4 && string(f.name[:4]) == "data" }

// endLine ends a line. If the line is empty, it ends the event, and endLine returns true.
func (f *frames) endLine(s *Scanner) (event bool) {
	s.shape.learning = false
	switch {
	case f.emptyLine:
		s.doc.write([]byte{'\n'})
		s.reset()
		event = true
	case f.isData() && f.valueLen == len(f.dataStart) && string(f.dataStart[:]) == "[DONE]":
		s.done = true
		s.final = s.final || s.raw.isComplete()
		s.reset()
	case f.isData():
		s.doc.write([]byte{'\n'})
	}
	f.emptyLine, f.nameLen, f.valueLen = true, 0, -1
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
		n = copy(f.head[f.headLen:], p)
		if f.headLen += n; f.headLen == len(f.head) {
			f.beginFrame(s)
		}
	case headers, payload, checksum:
		n = int(min(uint64(len(p)), uint64(f.left)))
		f.left -= uint32(n)
		f.readPart(s, p[:n])
	case invalidFrame:
		n = len(p)
	}
	for f.left == 0 && f.part != prelude && f.part != invalidFrame {
		f.nextPart(s)
	}
	return n
}

func (f *frames) beginFrame(s *Scanner) {
	total, headerSize := binary.BigEndian.Uint32(f.head[0:]), binary.BigEndian.Uint32(f.head[4:])
	if total < 16 || total > maxFrame || headerSize > maxHeaders || headerSize > total-16 ||
		crc32.ChecksumIEEE(f.head[:8]) != binary.BigEndian.Uint32(f.head[8:]) {
		f.part = invalidFrame
		return
	}
	f.part, f.left, f.size, f.headerLen, f.headLen = headers, headerSize, total-headerSize-16, 0, 0
	s.reset()
}

func (f *frames) readPart(s *Scanner, p []byte) {
	switch f.part {
	case headers:
		f.headerLen += copy(f.headerBytes[f.headerLen:], p)
	case payload:
		s.doc.write(p)
	case prelude, checksum, invalidFrame:
	}
}

func (f *frames) nextPart(s *Scanner) {
	switch f.part {
	case headers:
		s.event = event{isMetadata: header(f.headerBytes[:f.headerLen], ":event-type") == "metadata"}
		f.part, f.left = payload, f.size
	case payload:
		f.part, f.left = checksum, 4
	case checksum:
		s.endDocument()
		f.part = prelude
	case prelude, invalidFrame:
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
