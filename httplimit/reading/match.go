package reading

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"github.com/weir-go/weir/internal/spelling"
)

// A Match selects the requests that satisfy all of its parts. An empty part does not count, so the zero Match selects
// all requests. The methods of a Match do not change it, and are safe for concurrent use.
type Match struct {
	Hosts    []string // in lower case, without a port; "*.example.com" means every name below example.com
	Paths    []Path
	KeepCase bool     // upper and lower case differ in paths
	KeepType bool     // /login is not /login.json
	Methods  []string // GET includes HEAD
	Headers  []Field
	Query    []Field
	Clients  []netip.Prefix
	Not      []Match // exceptions: requests that certainly match any of these are not selected
}

// A Field requires that a header field or query parameter has one of the values. If Values is empty, any value is
// enough. For a header, make the Field with [HeaderField].
type Field struct {
	Name   string
	Values []string
}

// HeaderField returns the Field for a header. It converts the name to the form of [http.CanonicalHeaderKey], and trims
// blanks from the values.
func HeaderField(name string, values ...string) Field {
	f := Field{Name: http.CanonicalHeaderKey(name)}
	for _, value := range values {
		f.Values = append(f.Values, spelling.Line(f.Name, value))
	}
	return f
}

// An AddrFunc returns the address of a request's client. If the client has no address, it returns the zero Addr. An
// example is the method Addr of httplimit.ClientIP.
type AddrFunc func(*http.Request) netip.Addr

// Servers may read a request in different ways. Matches, Meets and IsCertain differ in how they treat such a request.
// Which of them is safe depends on the use of the result.

// Matches reports whether the request matches in net/http's reading of its path. Use it for routes. It does not
// allocate for paths without double slashes and dots.
func (m *Match) Matches(r *http.Request) bool {
	return m.MatchesHost(r.Host) && m.matchesPath(r) && m.meetsMethod(r.Method) &&
		m.matchesFields(r)
}

// Meets reports whether the request matches in any reading. Use it for limits, so that no spelling avoids a limit. The
// parameter client may be nil unless [Match.UsesClient] reports true. Meets does not allocate for plain paths of up to
// 32 segments.
func (m *Match) Meets(r *http.Request, client AddrFunc) bool {
	return m.meetsExceptPath(r, client) && m.meetsPath(r)
}

// IsCertain reports whether the request matches in every server's reading. Use it for exceptions from a limit, because
// a doubtful request must not be exempt. The path must not be ambiguous. Path and method must match as they are
// written. Every value of a wanted field must be a wanted value.
func (m *Match) IsCertain(r *http.Request, client AddrFunc) bool {
	return m.MatchesHost(r.Host) && m.matchesMethod(r.Method) && (len(m.Methods) == 0 || !isOverridden(r)) &&
		m.certainFields(r) && m.isCertainQuery(r) &&
		m.matchesClient(r, client) && (len(m.Paths) == 0 || m.matchesPath(r) && HasOneReading(r))
}

// HasOneReading reports whether all servers read the path of a request in the same way, except for the case of letters.
func HasOneReading(r *http.Request) bool {
	p := parsedOf(r)
	if p == nil {
		return hasOneEnd(r.URL.Path) && Ambiguity(r.URL) == ""
	}
	if !p.path.unambiguousKnown {
		p.path.unambiguousKnown, p.path.unambiguous = true, hasOneEnd(r.URL.Path) && Ambiguity(r.URL) == ""
	}
	return p.path.unambiguous
}

// meetsPath compares the patterns with all readings of the path. A path that is too long meets every pattern. So does a
// target without a path ("http:a/login"), because a server could find a path in it.
func (m *Match) meetsPath(r *http.Request) bool { return len(m.Paths) == 0 || m.meetsPaths(m.Paths, r) }

// meetsPaths does the same as meetsPath, for the given patterns.
func (m *Match) meetsPaths(paths []Path, r *http.Request) bool {
	p := parsedOf(r)
	if p == nil && slices.ContainsFunc(paths, func(path Path) bool { return path.IsText() }) {
		p = new(Parsed)
	}
	if p != nil {
		readings, ok := p.readings(r.URL)
		return !ok || slices.ContainsFunc(readings, func(segments []string) bool {
			p.work += len(paths)
			return m.meetsSegments(paths, segments)
		}) || m.meetsTexts(paths, readings)
	}
	rs := readingsOf(r.URL)
	if r.URL.Opaque != "" || rs.tooLong() {
		return true
	}
	plain := rs.plain // if set, the path does not end early in any reading
	var buffer [32]string
	for segments, ok := rs.next(buffer[:0]); ok; segments, ok = rs.next(buffer[:0]) {
		if m.meetsSegments(paths, segments) {
			return true
		}
		if cut := cutAtEnd(segments); !plain && cut != nil && m.meetsSegments(paths, cut) {
			return true
		}
	}
	return false
}

func (m *Match) meetsSegments(paths []Path, segments []string) bool {
	for i := range paths {
		if p := &paths[i]; !p.IsText() && p.meets(segments, m) {
			return true
		}
	}
	return false
}

func (m *Match) meetsTexts(paths []Path, readings [][]string) bool {
	patterns := func(yield func(*Path) bool) {
		for i := range paths {
			if paths[i].IsText() && !yield(&paths[i]) {
				return
			}
		}
	}
	var ts *texts
	for p := range patterns {
		if ts == nil {
			ts = textsOf(readings, patterns)
		}
		if p.meetsText(ts, m) {
			return true
		}
	}
	return false
}

// MatchesHost reports whether a host is one of Hosts. host may have a port, and a dot after the name.
func (m *Match) MatchesHost(host string) bool {
	if len(m.Hosts) == 0 {
		return true
	}
	host = spelling.Host(host)
	return slices.ContainsFunc(m.Hosts, func(want string) bool {
		if suffix, ok := strings.CutPrefix(want, "*"); ok {
			return len(host) > len(suffix) && strings.HasSuffix(host, suffix)
		}
		return host == want
	})
}

func (m *Match) matchesPath(r *http.Request) bool {
	if len(m.Paths) == 0 {
		return true
	}
	clean := parsedOf(r).cleanPath(r.URL.Path)
	for i := range m.Paths {
		if m.Paths[i].matchesClean(r.URL.Path, clean) {
			return true
		}
	}
	return false
}

// matchesMethod compares methods exactly.
func (m *Match) matchesMethod(method string) bool {
	return len(m.Methods) == 0 || slices.ContainsFunc(m.Methods, func(want string) bool {
		return want == method || want == http.MethodGet && method == http.MethodHead
	})
}

// meetsMethods reports whether the match accepts the request's method, or another method that frameworks read. HTML
// forms can send only GET and POST, so frameworks let them name a method in a header field
// ([spelling.MethodOverrides]). For a POST, they also read it from the query parameter _method.
func (m *Match) meetsMethods(r *http.Request) bool {
	if m.meetsMethod(r.Method) {
		return true
	}
	if p := parsedOf(r); p != nil {
		methods := p.overrides(r)
		return len(methods) > 0 && slices.ContainsFunc(m.Methods, func(want string) bool {
			p.work++
			return methods[strings.Map(leastFold, want)] || want == http.MethodGet && methods[http.MethodHead]
		})
	}
	return slices.ContainsFunc(overrides(r), m.meetsMethod)
}

// overrides caches the results of the function overrides. The cached form ignores case as [strings.EqualFold] does.
func (p *Parsed) overrides(r *http.Request) map[string]bool {
	if p.methods == nil {
		methods := overrides(r)
		p.work += len(methods)
		p.methods = make(map[string]bool, min(len(methods), 8))
		for _, method := range methods {
			method = method[:min(len(method), maxMethod)]
			p.methods[strings.Map(leastFold, method)] = true
		}
	}
	return p.methods
}

// maxMethod bounds the bytes of a text that are compared as a method. No method is longer.
const maxMethod = 256

// leastFold returns the smallest character that [strings.EqualFold] treats as equal to r. For an ASCII letter, this is
// the upper case.
func leastFold(r rune) rune {
	smallest := r
	for variant := unicode.SimpleFold(r); variant != r; variant = unicode.SimpleFold(variant) {
		smallest = min(smallest, variant)
	}
	return smallest
}

// isOverridden reports whether a server may treat the request as if it had another method.
func isOverridden(r *http.Request) bool {
	if p := parsedOf(r); p != nil {
		return len(p.overrides(r)) > 0
	}
	return overrides(r) != nil
}

// overrides returns the other methods that a server may read from a request.
func overrides(r *http.Request) []string {
	methods := fieldMethods(r)
	if r.URL.RawQuery != "" && strings.EqualFold(r.Method, http.MethodPost) {
		for _, value := range queryValues(r, "_method") {
			methods = append(methods, spelling.UntilZero(value.value))
		}
	}
	return methods
}

// meetsMethod reports whether the match accepts a method. It ignores case, because many servers accept "post" as POST.
func (m *Match) meetsMethod(method string) bool {
	return len(m.Methods) == 0 || slices.ContainsFunc(m.Methods, func(want string) bool {
		return strings.EqualFold(want, method) || want == http.MethodGet && strings.EqualFold(method, http.MethodHead)
	})
}

func (m *Match) matchesClient(r *http.Request, client AddrFunc) bool {
	if len(m.Clients) == 0 {
		return true
	}
	addr := client(r)
	return slices.ContainsFunc(m.Clients, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// UsesClient reports whether the match, or a match in Not, uses the client's address.
func (m *Match) UsesClient() bool {
	return len(m.Clients) > 0 || slices.ContainsFunc(m.Not, func(n Match) bool { return n.UsesClient() })
}
