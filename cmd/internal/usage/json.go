package usage

import (
	"unicode/utf16"
	"unicode/utf8"
)

// A node is a step on a wanted path in a JSON document. The last step is the wanted value.
type node struct {
	keys  map[string]*node // nodes for the keys of an object
	items *node            // node for the items of an array
	field field            // meaning of the value at the end of a path; none for a step on the way
	all   bool             // the field also applies to all values below
}

// The method at returns the node at a path of keys, beginning at the node n. It makes nodes that are missing. The key
// "[]" means every item of an array.
func (n *node) at(path ...string) *node {
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
	isString kind = iota
	isNumber
	isLiteral // true, false, null
	isObject
	isArray
)

// A sink gets the values of a document.
type sink interface {
	// value is called at the end of a string, a number or a literal, and at the start of an object or an array. The
	// parameter at is the node of the value, or nil if the value is at no wanted path. text has the first bytes of the
	// value without escapes, at most maxText. size is the length of a string.
	value(d *document, at *node, k kind, text []byte, size int)
	// ended is called at the end of a document. Another document may follow.
	ended(d *document)
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
	sink  sink
	root  *node
	fold  bool // keys are compared without regard to case
	step  step
	isKey bool // the current string is a key
	depth int
	nodes [maxNodes]*node // nodes of the containers around the current place; nodes[0] is the root
	array [maxDepth / 64]uint64
	at    *node // node of the next value
	text  [maxText]byte
	kept  int // number of bytes in text
	size  int // length of the current string
	code  rune
	digit int  // number of digits of code so far
	over  bool // the text did not fit into text

	// The current value has the bytes [from:to] of the current piece. Its quotes are not included.
	from, to int
}

// isBetween reports whether a document may begin here.
func (d *document) isBetween() bool { return d.depth == 0 && d.step == wantValue }

// isKeyAt reports whether a value of the kind k that ends here is a key.
func (d *document) isKeyAt(k kind) bool { return k == isString && d.isKey }

func (d *document) reset() {
	d.step, d.depth, d.at = wantValue, 0, d.root
}

// write reads a piece. If some bytes are not JSON, it ignores everything after them until reset is called.
func (d *document) write(p []byte) {
	for i := 0; i < len(p); i++ {
		switch d.step {
		case inString:
			i = d.inside(p, i)
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
			d.to = i
			d.scalar()
			i-- // so that the byte that ends the value is read again
		case wantValue, wantItem, wantKey, wantNextKey, wantColon, wantMore:
			if c := p[i]; !isBlank(c) {
				if d.from = i; c == '"' {
					d.from = i + 1
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
			d.step, d.at = wantValue, d.item()
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
		d.first(c)
	default:
		d.first(c)
	}
}

func (d *document) first(c byte) {
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

func (d *document) begin(s step) { d.step, d.kept, d.size, d.over = s, 0, 0, false }

// keep stores a byte of a text, if there is room.
func (d *document) keep(c byte) {
	d.size++
	if d.kept == len(d.text) {
		d.over = true
		return
	}
	d.text[d.kept] = c
	d.kept++
}

// inside reads the bytes of a string, beginning at p[i]. It returns the index of the last byte that it has read.
func (d *document) inside(p []byte, i int) int {
	end := i
	for end < len(p) && p[end] != '"' && p[end] != '\\' {
		end++
	}
	kept := copy(d.text[d.kept:], p[i:end])
	d.kept += kept
	d.size += end - i
	d.over = d.over || kept < end-i
	switch {
	case end == len(p):
	case p[end] == '"':
		d.to = end
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
		d.step, d.code, d.digit = inUnicode, 0, 0
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
	if d.digit++; d.digit < 4 {
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
	text := d.text[:d.kept]
	if !d.isKey {
		d.sink.value(d, d.at, isString, text, d.size)
		d.endValue()
		return
	}
	d.step = wantColon
	d.sink.value(d, nil, isString, nil, d.size)
	in := d.container()
	if d.at = nil; in == nil {
		return
	}
	if d.fold {
		text = fold(text)
	}
	if !d.over {
		d.at = in.keys[string(text)]
	}
	if d.at == nil && in.all {
		d.at = in
	}
}

// scalar ends a number or a literal.
func (d *document) scalar() {
	k := isNumber
	if d.step == inLiteral {
		switch string(d.text[:d.kept]) {
		case "true", "false", "null":
			k = isLiteral
		default:
			d.step = broken
			return
		}
	}
	if d.over {
		d.kept = 0 // the value is at no wanted path
	}
	d.sink.value(d, d.at, k, d.text[:d.kept], d.size)
	d.endValue()
}

func (d *document) endValue() {
	if d.step = wantMore; d.depth == 0 {
		d.end()
	}
}

func (d *document) end() {
	d.reset()
	d.sink.ended(d)
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
	in := d.container()
	if in == nil || in.items == nil && !in.all {
		return nil
	}
	if in.items == nil {
		return in
	}
	return in.items
}

func (d *document) open(array bool) {
	if d.depth == maxDepth {
		d.step = broken
		return
	}
	k := isObject
	if array {
		k = isArray
	}
	d.sink.value(d, d.at, k, nil, 0)
	word, bit := d.depth/64, uint64(1)<<(d.depth%64)
	if d.array[word] &^= bit; array {
		d.array[word] |= bit
	}
	if d.depth < maxNodes {
		d.nodes[d.depth] = d.at
	}
	d.depth++
	if d.step = wantKey; array {
		d.step, d.at = wantItem, d.item()
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
