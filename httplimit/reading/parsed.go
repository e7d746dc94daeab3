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
	path    parsedPath
	query   parsedPairs
	cookies parsedPairs
	fields  parsedFields
	texts   []parsedText
	room    [2]parsedText // enough for most requests
	values  []parsedValues
	methods map[string]bool // other methods that servers may read from the request
	work    int             // for tests: a count of steps that take some nanoseconds each
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
	const long = 2 << 10
	size := len(r.URL.Path) + len(r.URL.RawQuery) + len(r.Host)
	for _, lines := range r.Header {
		for _, line := range lines {
			size += len(line)
		}
		if size > long {
			return true
		}
	}
	return size > long || !isPlain(r.URL.EscapedPath())
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
		p.judgePath(r.URL)
		return p.path.long
	}
	all := readingsOf(r.URL)
	return all.tooLong()
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
	seen  bool // it is known whether the path is too long
	read  bool
	long  bool     // the path is not read
	from  readings // the readings that have not been made yet
	all   [][]string
	sums  []uint64 // a checksum of each reading
	clean string   // the result of [cleanPath]
	index *Index
	met   []uint64  // for the index: a bit for each match
	keys  [2]string // results of [KeyPath], without and with keepCase

	judged, one bool // judged: the value of one is known; one: all servers read the path in the same way
}

// readings returns the different readings of a path. If the path is too long or absent, ok is false.
func (p *Parsed) readings(u *url.URL) (all [][]string, ok bool) {
	if p.path.read {
		return p.path.all, !p.path.long
	}
	p.path.read = true
	if p.judgePath(u); p.path.long || u.Opaque != "" {
		p.path.long = true
		return nil, false
	}
	from := &p.path.from
	plain := from.plain // if set, endOf finds nothing in any reading
	segments, more := from.next(make([]string, 0, 1+strings.Count(u.Path, "/")))
	for ; more; segments, more = from.next(make([]string, 0, cap(segments))) {
		p.work += len(segments) + len(u.Path)/8
		p.addReading(segments)
		if plain {
			continue
		}
		if end := endOf(segments); end != nil {
			p.addReading(end)
		}
	}
	return p.path.all, true
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
	for i, same := range p.path.sums {
		if same == sum && slices.Equal(p.path.all[i], segments) {
			return
		}
	}
	p.path.all, p.path.sums = append(p.path.all, segments), append(p.path.sums, sum)
}

// cleanPath caches the result of the function cleanPath.
func (p *Parsed) cleanPath(of string) string {
	if p == nil {
		return cleanPath(of)
	}
	if p.path.clean == "" {
		p.path.clean = cleanPath(of)
	}
	return p.path.clean
}

var seed = maphash.MakeSeed()

// judgePath finds out whether the path is too long. A second call for a request does nothing.
func (p *Parsed) judgePath(u *url.URL) {
	if !p.path.seen {
		p.path.seen, p.path.from = true, readingsOf(u)
		p.path.long = p.path.from.tooLong()
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
		*key = keyPath(u, keepCase, p.oneKey)
		p.work += len(*key) / 8
	}
	return *key
}

// oneKey does the same as the function oneKey, but uses the cached readings.
func (p *Parsed) oneKey(u *url.URL) (string, bool) {
	all, ok := p.readings(u)
	var one commonKey
	for i := 0; ok && i < len(all); i++ {
		p.work += len(all[i])
		ok = one.add(all[i])
	}
	return one.key(), ok
}

type parsedPairs struct {
	read   bool
	long   bool     // there are more pairs than the bound
	hashes []uint64 // hashes of the names, and of the names of lists
	all    []pair
}

// A pair is a parameter or a cookie. It is stored as it was sent, but its name has no escapes.
type pair struct {
	name, value string
	inner       bool // a cookie after a comma or a blank
}

// room makes room for some pairs.
func (ps *parsedPairs) room(n int) {
	ps.hashes, ps.all = slices.Grow(ps.hashes, n), slices.Grow(ps.all, n)
}

// add appends a pair. The method each finds the pair under the name in the argument found.
func (ps *parsedPairs) add(found string, of pair) {
	ps.hashes, ps.all = append(ps.hashes, hashName(found)), append(ps.all, of)
}

func hashName(name string) uint64 {
	var room [64]byte
	return maphash.Bytes(seed, spelling.AppendName(room[:0], name))
}

// The method each calls its last argument with every pair whose name a server may read as the given name.
func (ps *parsedPairs) each(name string, one func(pair)) {
	if strings.ContainsAny(name, "%+ \x00") { // undoing escapes would change the name
		for _, of := range ps.all {
			one(of)
		}
		return
	}
	hash := hashName(name)
	for i, h := range ps.hashes {
		if h == hash {
			one(ps.all[i])
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
		p.texts = p.room[:0]
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
