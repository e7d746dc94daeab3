package usage

import (
	"unicode/utf16"
	"unicode/utf8"
)

// A node is a step on a wanted path in a JSON document. The last step is the wanted value.
type node struct {
	keys      map[string]*node // nodes for the keys of an object
	items     *node            // node for the items of an array
	field     field            // meaning of the value at the end of a path; none for a step on the way
	recursive bool             // the field also applies to all values below
}

// descend returns the node at a path of keys, beginning at the node n. It makes nodes that are missing. The key "[]"
// means every item of an array.
func (n *node) descend(path ...string) *node {
	for _, key := range path {
		next := n.items
		if key != "[]" {
			next = n.keys[key]
		}
		if next == nil {
			next = &node{}
			if key == "[]" {
				n.items = next
			} else if n.keys == nil {
				n.keys = map[string]*node{key: next}
			} else {
				n.keys[key] = next
			}
		}
		n = next
	}
	return n
}

type kind uint8

const (
	kindString kind = iota
	kindNumber
	kindLiteral // true, false, null
	kindObject
	kindArray
)

// A sink gets the values of a document.
type sink interface {
	// value is called at the end of a string, a number or a literal, and at the start of an object or an array. The
	// parameter n is the node of the value, or nil if the value is at no wanted path. text has the first bytes of the
	// value without escapes, at most maxText. size is the length of a string.
	value(d *document, n *node, k kind, text []byte, size int)
	// documentDone is called at the end of a document. Another document may follow.
	documentDone(d *document)
}

const (
	maxText  = 128  // largest number of stored bytes of a key or a value
	maxNodes = 16   // largest number of levels of wanted paths
	maxDepth = 1024 // largest number of levels of a document
)

// A step says what must come next in a document.
type step uint8

const (
	wantValue step = iota
	wantItem       // or the end of an array
	wantKey        // or the end of an object
	wantNextKey
	wantColon
	wantMore
	inString
	inEscape
	inUnicode
	inNumber
	inLiteral
	broken // what was written is not JSON; everything is ignored until the next document
)

// A document reads JSON that is written in pieces. It uses the same memory for every input.
type document struct {
	sink      sink
	root      *node
	fold      bool // keys are compared without regard to case
	step      step
	isKey     bool // the current string is a key
	depth     int
	nodes     [maxNodes]*node // nodes of the containers around the current place; nodes[0] is the root
	array     [maxDepth / 64]uint64
	next      *node // node of the next value
	text      [maxText]byte
	textLen   int // number of bytes in text
	size      int // length of the current string
	code      rune
	digits    int  // number of digits of code so far
	truncated bool // the text did not fit into text

	// The current value has the bytes [valueStart:valueEnd] of the current piece. Its quotes are not included.
	valueStart, valueEnd int
}

// isBetween reports whether a document may begin here.
func (d *document) isBetween() bool { return d.depth == 0 && d.step == wantValue }

// isKeyAt reports whether a value of the kind k that ends here is a key.
func (d *document) isKeyAt(k kind) bool { return k == kindString && d.isKey }

func (d *document) reset() {
	d.step, d.depth, d.next = wantValue, 0, d.root
}

// write reads a piece. If some bytes are not JSON, it ignores everything after them until reset is called.
func (d *document) write(p []byte) {
	for i := 0; i < len(p); i++ {
		switch d.step {
		case inString:
			i = d.readString(p, i)
		case inEscape:
			d.escape(p[i])
		case inUnicode:
			d.unicode(p[i])
		case broken:
			return
		case inNumber, inLiteral:
			if c := p[i]; c != ',' && c != ']' && c != '}' && !isBlank(c) && c != ':' && c != '"' {
				d.keep(c)
				continue
			}
			d.valueEnd = i
			d.scalar()
			i-- // so that the byte that ends the value is read again
		case wantValue, wantItem, wantKey, wantNextKey, wantColon, wantMore:
			if c := p[i]; !isBlank(c) {
				if d.valueStart = i; c == '"' {
					d.valueStart = i + 1
				}
				d.token(c)
			}
		}
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// token reads a byte between values.
func (d *document) token(c byte) {
	switch d.step {
	case wantColon:
		if d.step = broken; c == ':' {
			d.step = wantValue
		}
	case wantKey, wantNextKey:
		switch {
		case c == '"':
			d.begin(inString)
			d.isKey = true
		case c == '}' && d.step == wantKey:
			d.close(false)
		default:
			d.step = broken
		}
	case wantMore:
		switch {
		case c == ',' && d.isArray():
			d.step, d.next = wantValue, d.item()
		case c == ',':
			d.step = wantNextKey
		case c == ']' || c == '}':
			d.close(c == ']')
		default:
			d.step = broken
		}
	case wantItem:
		if c == ']' {
			d.close(true)
			return
		}
		d.beginValue(c)
	default:
		d.beginValue(c)
	}
}

func (d *document) beginValue(c byte) {
	switch {
	case c == '"':
		d.begin(inString)
		d.isKey = false
	case c == '{' || c == '[':
		d.open(c == '[')
	case c == '-' || c >= '0' && c <= '9':
		d.begin(inNumber)
		d.keep(c)
	case c == 't' || c == 'f' || c == 'n':
		d.begin(inLiteral)
		d.keep(c)
	default:
		d.step = broken
	}
}

func (d *document) begin(s step) { d.step, d.textLen, d.size, d.truncated = s, 0, 0, false }

// keep stores a byte of a text, if there is room.
func (d *document) keep(c byte) {
	d.size++
	if d.textLen == len(d.text) {
		d.truncated = true
		return
	}
	d.text[d.textLen] = c
	d.textLen++
}

// readString reads the bytes of a string, beginning at p[i]. It returns the index of the last byte that it has read.
func (d *document) readString(p []byte, i int) int {
	end := i
	for end < len(p) && p[end] != '"' && p[end] != '\\' {
		end++
	}
	n := copy(d.text[d.textLen:], p[i:end])
	d.textLen += n
	d.size += end - i
	d.truncated = d.truncated || n < end-i
	switch {
	case end == len(p):
	case p[end] == '"':
		d.valueEnd = end
		d.endString()
	default:
		d.step = inEscape
	}
	return end
}

func (d *document) escape(c byte) {
	d.step = inString
	switch c {
	case 'u':
		d.step, d.code, d.digits = inUnicode, 0, 0
	case 'n', 'r', 't', 'b', 'f':
		d.keep(' ')
	default:
		d.keep(c)
	}
}

func (d *document) unicode(c byte) {
	switch {
	case c >= '0' && c <= '9':
		d.code = d.code<<4 | rune(c-'0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		d.code = d.code<<4 | rune(c|0x20-'a'+10)
	default:
		d.step = broken
		return
	}
	if d.digits++; d.digits < 4 {
		return
	}
	d.step = inString
	if utf16.IsSurrogate(d.code) { // half of a surrogate pair; together, both halves are four bytes
		d.keep('?')
		d.keep('?')
		return
	}
	var encoded [utf8.UTFMax]byte
	for _, b := range encoded[:utf8.EncodeRune(encoded[:], d.code)] {
		d.keep(b)
	}
}

func (d *document) endString() {
	text := d.text[:d.textLen]
	if !d.isKey {
		d.sink.value(d, d.next, kindString, text, d.size)
		d.endValue()
		return
	}
	d.step = wantColon
	d.sink.value(d, nil, kindString, nil, d.size)
	container := d.container()
	if d.next = nil; container == nil {
		return
	}
	if d.fold {
		text = fold(text)
	}
	if !d.truncated {
		d.next = container.keys[string(text)]
	}
	if d.next == nil && container.recursive {
		d.next = container
	}
}

// scalar ends a number or a literal.
func (d *document) scalar() {
	k := kindNumber
	if d.step == inLiteral {
		switch string(d.text[:d.textLen]) {
		case "true", "false", "null":
			k = kindLiteral
		default:
			d.step = broken
			return
		}
	}
	if d.truncated {
		d.textLen = 0 // the value is at no wanted path
	}
	d.sink.value(d, d.next, k, d.text[:d.textLen], d.size)
	d.endValue()
}

func (d *document) endValue() {
	if d.step = wantMore; d.depth == 0 {
		d.end()
	}
}

func (d *document) end() {
	d.reset()
	d.sink.documentDone(d)
}

func (d *document) isArray() bool {
	return d.array[(d.depth-1)/64]>>((d.depth-1)%64)&1 != 0
}

func (d *document) container() *node {
	if d.depth == 0 || d.depth > maxNodes {
		return nil
	}
	return d.nodes[d.depth-1]
}

// item returns the node of an item in the innermost container, which must be an array.
func (d *document) item() *node {
	container := d.container()
	if container == nil || container.items == nil && !container.recursive {
		return nil
	}
	if container.items == nil {
		return container
	}
	return container.items
}

func (d *document) open(array bool) {
	if d.depth == maxDepth {
		d.step = broken
		return
	}
	k := kindObject
	if array {
		k = kindArray
	}
	d.sink.value(d, d.next, k, nil, 0)
	word, bit := d.depth/64, uint64(1)<<(d.depth%64)
	if d.array[word] &^= bit; array {
		d.array[word] |= bit
	}
	if d.depth < maxNodes {
		d.nodes[d.depth] = d.next
	}
	d.depth++
	if d.step = wantKey; array {
		d.step, d.next = wantItem, d.item()
	}
}

func (d *document) close(array bool) {
	if d.depth == 0 || d.isArray() != array {
		d.step = broken
		return
	}
	d.depth--
	d.endValue()
}
