package reading

import (
	"hash/maphash"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-go/weir/internal/spelling"
)

// A Parsed caches what was read from one request, so that the next rule does not read it again. The zero Parsed is
// ready for use. The functions of this package find it in the context of the request, under [ParsedKey]. Without a
// Parsed they read what they need each time, which is just as fast for ordinary requests and a few rules.
//
// The target and the header of the request must not change while it is in use. It is not safe for concurrent use.
type Parsed struct {
	path    parsedPath
	query   parsedPairs
	cookies parsedPairs
	fields  parsedFields
	texts   []parsedText
	room    [2]parsedText // for most requests
	values  []parsedValues
	methods map[string]bool // other methods that servers may read from the request
	work    int             // steps, each of which takes some nanoseconds: for tests
}

// ParsedKey is the key of a *[Parsed] in a context.
type ParsedKey struct{}

// parsedOf returns the Parsed of a request; nil if it has none.
func parsedOf(r *http.Request) *Parsed {
	p, _ := r.Context().Value(ParsedKey{}).(*Parsed)
	return p
}

// IsCostly reports whether it takes noticeable time to read the request several times, because its target and header
// are longer than two kibibytes, or its path has several readings.
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

// TooLong returns the part of a request that is not read, because reading it would take too long; "" if everything is
// read. Such a request meets every rule for a path or parameter, and its path, parameters and cookies do not give it a
// key of its own. Answer it with 400.
//
// A host is not read if it is longer than host names may be, and a field is not read if it has more than 128 lines.
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
	maxLines = 128                 // common servers take 100 fields in all
)

// maxPairs bounds the parameters of a query, and the cookies. Common servers take 1,000 parameters, and browsers keep a
// few hundred cookies of a site.
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

// parsedPath has the different readings of a path, and cached results of them.
type parsedPath struct {
	seen  bool // it is known whether the path is too long
	read  bool
	long  bool     // it is not read
	from  readings // the readings that have not been made yet
	all   [][]string
	sums  []uint64 // of all
	clean string   // of [cleanPath]
	index *Index
	met   []uint64  // of the index: a bit for each match
	keys  [2]string // of [KeyPath]: without, and with the case kept

	judged, one bool // it is known whether all servers read the path in the same way; they do
}

// readings returns the different readings of a path. ok is false if the path is too long, or if there is no path.
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
	plain := from.plain // then no reading has what endOf looks for
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
	sum := uint64(len(segments)) // so that different readings are seldom compared completely
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

// judgePath finds out whether the path is too long, once.
func (p *Parsed) judgePath(u *url.URL) {
	if !p.path.seen {
		p.path.seen, p.path.from = true, readingsOf(u)
		p.path.long = p.path.from.tooLong()
	}
}

// keyPath is [KeyPath], once.
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

// oneKey is the function oneKey, for the cached readings.
func (p *Parsed) oneKey(u *url.URL) (string, bool) {
	all, ok := p.readings(u)
	var one commonKey
	for i := 0; ok && i < len(all); i++ {
		p.work += len(all[i])
		ok = one.add(all[i])
	}
	return one.key(), ok
}

// parsedPairs are the parameters of a query, or cookies.
type parsedPairs struct {
	read   bool
	long   bool     // there are more pairs than the bound
	hashes []uint64 // of the names, and of the names of lists
	all    []pair
}

// A pair is a parameter or a cookie as it was sent, except that escapes in its name are undone.
type pair struct {
	name, value string
	inner       bool // a cookie behind a comma or a blank
}

// room makes room for some pairs.
func (ps *parsedPairs) room(n int) {
	ps.hashes, ps.all = slices.Grow(ps.hashes, n), slices.Grow(ps.all, n)
}

// add appends a pair under the name by which it is found.
func (ps *parsedPairs) add(found string, of pair) {
	ps.hashes, ps.all = append(ps.hashes, hashName(found)), append(ps.all, of)
}

func hashName(name string) uint64 {
	var room [64]byte
	return maphash.Bytes(seed, spelling.AppendName(room[:0], name))
}

// each calls one with the pairs whose name may be the given one.
func (ps *parsedPairs) each(name string, one func(pair)) {
	if strings.ContainsAny(name, "%+ \x00") { // without escapes it would be another name
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

// A parsedText is the value of a field by which a bucket is chosen.
type parsedText struct {
	kind  textKind
	name  string
	value string
	ok    bool
}

// parsedValues are the values of a parameter.
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

// text returns a value by which a bucket is chosen. It caches the result of read.
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

// HeaderKey returns the value of a header that chooses a bucket; "" if it is absent: see httplimit.HeaderValue.
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

// CookieKey returns the value of a cookie that chooses a bucket; "" if it is absent: see httplimit.CookieValue.
func CookieKey(r *http.Request, name string) (value string, ok bool) {
	return parsedOf(r).text(textCookie, r, name, readCookie)
}

// QueryKey returns the value of a parameter that chooses a bucket; "" if it is absent or empty. All spellings of the
// value that a server reads alike give the same text, such as "V" for V, V+ and %56. ok is false if readings of the
// query have different values of the parameter ([QueryValues]), if the value has a zero byte, or if the query has more
// parameters than are read.
func QueryKey(r *http.Request, name string) (value string, ok bool) {
	return parsedOf(r).text(textQuery, r, name, readQuery)
}
