package reading

import (
	"hash/maphash"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-go/weir/internal/spelling"
)

// A Parsed caches what a rule has read from a request, for the next rules. The zero Parsed is ready for use. The
// functions of this package find it in the request's context, under [ParsedKey]. Without it, they read what they need
// each time. For ordinary requests and few rules, this is just as fast.
//
// The target and header of the request must not change while a Parsed is in use. A Parsed is not safe for concurrent
// use.
type Parsed struct {
	path       parsedPath
	query      parsedPairs
	cookies    parsedPairs
	fields     parsedFields
	texts      []parsedText
	textBuffer [2]parsedText // enough for most requests
	values     []parsedValues
	methods    map[string]bool // other methods that servers may read from the request
	work       int             // for tests: a count of steps that take some nanoseconds each
}

// ParsedKey is the key of a *[Parsed] in a context.
type ParsedKey struct{}

func parsedOf(r *http.Request) *Parsed {
	p, _ := r.Context().Value(ParsedKey{}).(*Parsed)
	return p
}

// IsCostly reports whether it takes noticeable time to read the request several times. It does if the target and header
// are longer than two kibibytes, or if the path has several readings.
func IsCostly(r *http.Request) bool {
	const costlySize = 2 << 10
	size := len(r.URL.Path) + len(r.URL.RawQuery) + len(r.Host)
	for _, lines := range r.Header {
		for _, line := range lines {
			size += len(line)
		}
		if size > costlySize {
			return true
		}
	}
	return size > costlySize || !isPlain(r.URL.EscapedPath())
}

// TooLong returns the part of a request that is not read because reading it would take too long, or "". Answer a
// request with such a part with 400. It meets every rule for a path or parameter. Its path, parameters and cookies do
// not give it a separate key.
//
// A host is not read if it is longer than a host name may be. A field is not read if it has more than 128 lines.
func TooLong(r *http.Request) string {
	switch {
	case pathTooLong(r):
		return "the path"
	case tooManyPairs(r.URL.RawQuery, "&", ";"):
		return "the query"
	case tooManyCookies(r.Header["Cookie"]):
		return "the cookies"
	case len(r.Host) > maxHost:
		return "the host"
	}
	for name, lines := range r.Header {
		if len(lines) > maxLines {
			return "the field " + name
		}
	}
	return ""
}

// pathTooLong reports whether the path is not read.
func pathTooLong(r *http.Request) bool {
	if p := parsedOf(r); p != nil {
		p.measurePath(r.URL)
		return p.path.tooLong
	}
	rs := readingsOf(r.URL)
	return rs.tooLong()
}

const (
	maxHost  = 255 + len(":65535") // RFC 1035, section 2.3.4
	maxLines = 128                 // common servers accept 100 fields in all
)

// maxPairs bounds the parameters of a query, and also the cookies. Common servers accept 1,000 parameters, and browsers
// store a few hundred cookies for a site.
const maxPairs = 2048

func tooManyPairs(s string, separators ...string) bool {
	if len(s) < maxPairs {
		return false
	}
	n := 0
	for _, separator := range separators {
		n += strings.Count(s, separator)
	}
	return n > maxPairs
}

func tooManyCookies(lines []string) bool {
	n := len(lines)
	for _, line := range lines {
		n += strings.Count(line, ";") + strings.Count(line, "=")
	}
	return n > maxPairs
}

// parsedPath caches the different readings of a path, and results that were computed from them.
type parsedPath struct {
	measured bool // tooLong is known
	read     bool
	tooLong  bool     // the path is not read
	pending  readings // the readings that have not been made yet
	readings [][]string
	sums     []uint64 // a checksum of each reading
	clean    string   // the result of [cleanPath]
	index    *Index
	matched  []uint64  // for the index: a bit for each match
	keys     [2]string // results of [KeyPath], without and with keepCase

	unambiguousKnown bool
	unambiguous      bool // all servers read the path in the same way
}

// readings returns the different readings of a path. If the path is too long or absent, ok is false.
func (p *Parsed) readings(u *url.URL) (readings [][]string, ok bool) {
	if p.path.read {
		return p.path.readings, !p.path.tooLong
	}
	p.path.read = true
	if p.measurePath(u); p.path.tooLong || u.Opaque != "" {
		p.path.tooLong = true
		return nil, false
	}
	pending := &p.path.pending
	plain := pending.plain // if set, cutAtEnd returns nil for every reading
	segments, more := pending.next(make([]string, 0, 1+strings.Count(u.Path, "/")))
	for ; more; segments, more = pending.next(make([]string, 0, cap(segments))) {
		p.work += len(segments) + len(u.Path)/8
		p.addReading(segments)
		if plain {
			continue
		}
		if cut := cutAtEnd(segments); cut != nil {
			p.addReading(cut)
		}
	}
	return p.path.readings, true
}

// addReading adds a reading unless it was added before.
func (p *Parsed) addReading(segments []string) {
	sum := uint64(len(segments)) // different readings seldom have the same sum, so few are compared completely
	for _, s := range segments {
		sum = sum*31 + uint64(len(s))
		if s != "" {
			sum = sum*31 + uint64(s[0])<<8 + uint64(s[len(s)-1])
		}
	}
	for i, earlier := range p.path.sums {
		if earlier == sum && slices.Equal(p.path.readings[i], segments) {
			return
		}
	}
	p.path.readings, p.path.sums = append(p.path.readings, segments), append(p.path.sums, sum)
}

// cleanPath caches the result of the function cleanPath.
func (p *Parsed) cleanPath(path string) string {
	if p == nil {
		return cleanPath(path)
	}
	if p.path.clean == "" {
		p.path.clean = cleanPath(path)
	}
	return p.path.clean
}

var seed = maphash.MakeSeed()

// measurePath finds out whether the path is too long. A second call for a request does nothing.
func (p *Parsed) measurePath(u *url.URL) {
	if !p.path.measured {
		p.path.measured, p.path.pending = true, readingsOf(u)
		p.path.tooLong = p.path.pending.tooLong()
	}
}

// keyPath caches the result of [KeyPath].
func (p *Parsed) keyPath(u *url.URL, keepCase bool) string {
	if p == nil {
		return KeyPath(u, keepCase)
	}
	key := &p.path.keys[0]
	if keepCase {
		key = &p.path.keys[1]
	}
	if *key == "" {
		*key = keyPath(u, keepCase, p.sharedKey)
		p.work += len(*key) / 8
	}
	return *key
}

// sharedKey does the same as the function sharedKey, but uses the cached readings.
func (p *Parsed) sharedKey(u *url.URL) (string, bool) {
	readings, ok := p.readings(u)
	var common commonKey
	for i := 0; ok && i < len(readings); i++ {
		p.work += len(readings[i])
		ok = common.add(readings[i])
	}
	return common.key(), ok
}

type parsedPairs struct {
	read    bool
	tooMany bool     // there are more pairs than the bound
	hashes  []uint64 // hashes of the names, and of the names of lists
	pairs   []pair
}

// A pair is a parameter or a cookie. It is stored as it was sent, but its name has no escapes.
type pair struct {
	name, value string
	inner       bool // a cookie after a comma or a blank
}

// grow makes room for n pairs.
func (ps *parsedPairs) grow(n int) {
	ps.hashes, ps.pairs = slices.Grow(ps.hashes, n), slices.Grow(ps.pairs, n)
}

// add appends a pair. The method forEach finds the pair under the given name.
func (ps *parsedPairs) add(name string, p pair) {
	ps.hashes, ps.pairs = append(ps.hashes, hashName(name)), append(ps.pairs, p)
}

func hashName(name string) uint64 {
	var buffer [64]byte
	return maphash.Bytes(seed, spelling.AppendName(buffer[:0], name))
}

// forEach calls visit with every pair whose name a server may read as the given name.
func (ps *parsedPairs) forEach(name string, visit func(pair)) {
	if strings.ContainsAny(name, "%+ \x00") { // undoing escapes would change the name
		for _, p := range ps.pairs {
			visit(p)
		}
		return
	}
	hash := hashName(name)
	for i, h := range ps.hashes {
		if h == hash {
			visit(ps.pairs[i])
		}
	}
}

// A parsedText caches a value by which a bucket is selected.
type parsedText struct {
	kind  textKind
	name  string
	value string
	ok    bool
}

// parsedValues caches the values of a parameter.
type parsedValues struct {
	name   string
	values []queryValue
}

type textKind uint8

const (
	textHeader textKind = iota
	textCookie
	textQuery
)

// text returns a value that selects a bucket. It calls read once, and caches the result.
func (p *Parsed) text(kind textKind, r *http.Request, name string, read func(*http.Request, string) (string, bool)) (string, bool) {
	if p == nil {
		return read(r, name)
	}
	p.work++
	for i := range p.texts {
		if t := &p.texts[i]; t.kind == kind && t.name == name {
			return t.value, t.ok
		}
	}
	value, ok := read(r, name)
	if p.texts == nil {
		p.texts = p.textBuffer[:0]
	}
	p.texts = append(p.texts, parsedText{kind, name, value, ok})
	return value, ok
}

// HeaderKey returns the value of a header that selects a bucket: see httplimit.HeaderValue.
func HeaderKey(r *http.Request, name string) (value string, ok bool) {
	return parsedOf(r).text(textHeader, r, name, readHeader)
}

func readHeader(r *http.Request, name string) (value string, ok bool) {
	p := parsedOf(r)
	if lines := r.Header[name]; p == nil || len(lines) == 0 || len(lines) == 1 && len(lines[0]) <= shortLine {
		return spelling.OneLine(name, lines)
	}
	for i, line := range p.linesOf(r, name) {
		if i > 0 && line.text != value {
			return "", false
		}
		value = line.text
	}
	return value, true
}

// CookieKey returns the value of a cookie that selects a bucket: see httplimit.CookieValue.
func CookieKey(r *http.Request, name string) (value string, ok bool) {
	return parsedOf(r).text(textCookie, r, name, readCookie)
}

// QueryKey returns the value of a parameter that selects a bucket. It returns "" if the parameter is absent or empty.
// All spellings that some server reads as the same value give the same text: V, V+ and %56 give "V". ok is false in
// these cases:
//
//   - Readings of the query give the parameter different values ([QueryValues]).
//   - The value has a zero byte.
//   - The query has too many parameters to be read.
func QueryKey(r *http.Request, name string) (value string, ok bool) {
	return parsedOf(r).text(textQuery, r, name, readQuery)
}
