package reading

import (
	"hash/maphash"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-go/weir/internal/spelling"
)

// A Parsed keeps what was read of one request, so that the next rule does not read it again. The zero Parsed is ready.
// The functions of this package find it in the context of the request, under [ParsedKey]; without one they read all
// they need each time, which for ordinary requests and a few rules is as quick.
//
// The target and the header of the request must not change meanwhile. It is not safe for concurrent use.
type Parsed struct {
	path    parsedPath
	query   parsedPairs
	cookies parsedPairs
	texts   []parsedText
	room    [2]parsedText // for most requests
	values  []parsedValues
	methods map[string]bool // that the request may be taken for instead
	scanned int             // bytes that expressions have read
	work    int             // steps, each of which takes some nanoseconds: for tests
}

// ParsedKey is the key of a *[Parsed] in a context.
type ParsedKey struct{}

// parsedOf returns what was read of a request; nil if it is not kept.
func parsedOf(r *http.Request) *Parsed {
	p, _ := r.Context().Value(ParsedKey{}).(*Parsed)
	return p
}

// IsCostly reports whether reading the request several times takes noticeable time: its target and cookies are longer
// than a kibibyte, or its path has several readings.
func IsCostly(r *http.Request) bool {
	const long = 1 << 10
	size := len(r.URL.Path) + len(r.URL.RawQuery)
	for _, line := range r.Header["Cookie"] {
		size += len(line)
	}
	return size > long || !isPlain(r.URL.EscapedPath())
}

// TooLong says what in a request is not read, because that would take too long; "" if there is nothing. Such a request
// meets every rule that is for a path or parameter, and has no key of its own by them or by a cookie. Answer it 400.
func TooLong(r *http.Request) string {
	all := readingsOf(r.URL)
	switch {
	case all.tooLong():
		return "the path"
	case tooManyPairs(r.URL.RawQuery, "&", ";"):
		return "the query"
	case tooManyCookies(r.Header["Cookie"]):
		return "the cookies"
	}
	return ""
}

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

// parsedPath are the readings of a path that differ, and what was made of them.
type parsedPath struct {
	read  bool
	long  bool // it is not read
	all   [][]string
	index *Index
	met   []uint64  // of the index: a bit for each match
	keys  [2]string // of [KeyPath]: without, and with the case kept

	judged, one bool // whether all servers read it in the same way is known, and is so
}

// readings returns the readings of a path that differ; not ok if it is too long, or there is none.
func (p *Parsed) readings(u *url.URL) (all [][]string, ok bool) {
	if p.path.read {
		return p.path.all, !p.path.long
	}
	p.path.read = true
	from := readingsOf(u)
	if p.path.long = u.Opaque != "" || from.tooLong(); p.path.long {
		return nil, false
	}
	seen := map[uint64][]string{}
	plain := from.plain // then no reading has what endOf looks for
	for segments, more := from.next(nil); more; segments, more = from.next(nil) {
		p.work += len(segments) + len(u.Path)/8
		p.addReading(seen, segments)
		if end := endOf(segments); !plain && end != nil {
			p.addReading(seen, end)
		}
	}
	return p.path.all, true
}

var seed = maphash.MakeSeed()

func (p *Parsed) addReading(seen map[uint64][]string, segments []string) {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, segment := range segments {
		h.WriteString(segment)
		h.WriteByte('/')
	}
	sum := h.Sum64()
	if same, is := seen[sum]; is && slices.Equal(same, segments) {
		return
	}
	seen[sum] = segments
	p.path.all = append(p.path.all, segments)
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

// oneKey is the function of the same name, of the readings that there are.
func (p *Parsed) oneKey(u *url.URL) (string, bool) {
	all, ok := p.readings(u)
	var one commonKey
	for i := 0; ok && i < len(all); i++ {
		p.work += len(all[i])
		ok = one.add(all[i])
	}
	return one.key, ok
}

// parsedPairs are the parameters of a query, or cookies.
type parsedPairs struct {
	read   bool
	long   bool     // there are more than are read
	hashes []uint64 // of the names, and of those of lists
	all    []pair
}

// A pair is a parameter or a cookie, as it was sent, but for the escapes of its name.
type pair struct {
	name, value string
	inner       bool // a cookie behind a comma or a blank
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
	if strings.ContainsAny(name, "%+ \x00") { // it would be another without escapes
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

// text returns a value by which a bucket is chosen: the one that was read before, or that by read.
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

// HeaderKey returns the value of a header by which a bucket is chosen, "" if it is absent: see httplimit.HeaderValue.
func HeaderKey(r *http.Request, name string) (value string, ok bool) {
	return parsedOf(r).text(textHeader, r, name, readHeader)
}

func readHeader(r *http.Request, name string) (string, bool) {
	return spelling.OneLine(name, r.Header[name])
}

// CookieKey returns the value of a cookie by which a bucket is chosen, "" if it is absent: see httplimit.CookieValue.
func CookieKey(r *http.Request, name string) (value string, ok bool) {
	return parsedOf(r).text(textCookie, r, name, readCookie)
}

// QueryKey returns the value of a parameter by which a bucket is chosen, "" if it is absent or empty: one text for all
// spellings of the value that a server reads alike, such as "V" for V, V+ and %56. It is not ok if a reading of the
// query has another value of the parameter ([QueryValues]), if there is a zero byte in it, or if the query has more
// parameters than are read.
func QueryKey(r *http.Request, name string) (value string, ok bool) {
	return parsedOf(r).text(textQuery, r, name, readQuery)
}
