package config

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"golang.org/x/net/http/httpguts"
)

// A Match says which requests are meant: those for which each of its parts that is not empty
// holds. The zero Match is all requests.
type Match struct {
	Hosts    []string // in lower case, without a port; "*.example.com" is every name below it
	Paths    []Path
	KeepCase bool     // upper and lower case differ in paths
	Methods  []string // GET includes HEAD
	Headers  []HeaderMatch
}

// A HeaderMatch wants a header field with one of the values, or with any if there are none.
type HeaderMatch struct {
	Name   string // canonical
	Values []string
}

// Matches reports whether a route is for the request, by the reading of its path that net/http has. It does not
// allocate for paths without double slashes and dots.
func (m *Match) Matches(r *http.Request) bool {
	return m.matchesHost(r.Host) && m.matchesPath(r.URL.Path) && m.matchesMethod(r.Method) && m.matchesHeaders(r.Header)
}

// Meets reports whether a rule is for the request, by any reading of its path, so that no server behind reads a path as
// one that the rule is for and the rule does not. It does not allocate for plain paths of up to 32 segments.
func (m *Match) Meets(r *http.Request) bool {
	return m.matchesHost(r.Host) && m.matchesMethod(r.Method) && m.matchesHeaders(r.Header) && m.meetsPath(r.URL)
}

// meetsPath holds the patterns against all readings. A path that is too long to be read so meets every pattern.
func (m *Match) meetsPath(u *url.URL) bool {
	if len(m.Paths) == 0 {
		return true
	}
	all := readingsOf(u)
	if all.tooLong() {
		return true
	}
	var room [32]string
	for segments, ok := all.next(room[:0]); ok; segments, ok = all.next(room[:0]) {
		for i := range m.Paths {
			if m.Paths[i].meets(segments, m.KeepCase) {
				return true
			}
		}
	}
	return false
}

func (m *Match) matchesHost(host string) bool {
	if len(m.Hosts) == 0 {
		return true
	}
	host = BareHost(host)
	return slices.ContainsFunc(m.Hosts, func(want string) bool {
		if below, ok := strings.CutPrefix(want, "*"); ok {
			return len(host) > len(below) && strings.HasSuffix(host, below)
		}
		return host == want
	})
}

// BareHost returns the name in a Host header: in lower case, without the port and a last dot.
func BareHost(host string) string {
	// Not net.SplitHostPort, whose error for a host without a port is made anew each time.
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') &&
		(host[0] == '[' || strings.Count(host, ":") == 1) {
		host = host[:colon]
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

func (m *Match) matchesPath(path string) bool {
	for i := range m.Paths {
		if m.Paths[i].Matches(path) {
			return true
		}
	}
	return len(m.Paths) == 0
}

// matchesMethod takes upper and lower case for one, because many servers take "post" for POST.
func (m *Match) matchesMethod(method string) bool {
	return len(m.Methods) == 0 || slices.ContainsFunc(m.Methods, func(want string) bool {
		return strings.EqualFold(want, method) || want == http.MethodGet && strings.EqualFold(method, http.MethodHead)
	})
}

func (m *Match) matchesHeaders(header http.Header) bool {
	for _, want := range m.Headers {
		got := header[want.Name]
		if len(got) == 0 || len(want.Values) > 0 && !slices.ContainsFunc(got, func(value string) bool {
			return slices.Contains(want.Values, value)
		}) {
			return false
		}
	}
	return true
}

func (d *decoder) match(n *yaml.Node, more ...field) (m Match) {
	seen := d.mapping(n, "match", append([]field{
		{"host", func(n *yaml.Node) {
			d.list(n, "host", func(n *yaml.Node) { m.Hosts = append(m.Hosts, d.host(n)) })
		}},
		{"path", func(n *yaml.Node) {
			d.list(n, "path", func(n *yaml.Node) { m.Paths = append(m.Paths, d.path(n)) })
		}},
		{"method", func(n *yaml.Node) {
			d.list(n, "method", func(n *yaml.Node) { m.Methods = append(m.Methods, d.method(n)) })
		}},
		{"header", func(n *yaml.Node) { m.Headers = d.headers(n) }},
	}, more...)...)
	if seen != nil && len(seen) == 0 {
		d.fail(n, "match is empty: write host, path, method or header, or leave match out for all requests")
	}
	return m
}

// ruleMatch reads the match of a rule, which has more to say than that of a route.
func (d *decoder) ruleMatch(n *yaml.Node) Match {
	word := "insensitive"
	m := d.match(n, choiceField(d, "case", []string{"insensitive", "sensitive"}, &word))
	m.KeepCase = word == "sensitive"
	return m
}

func (d *decoder) host(n *yaml.Node) string {
	s, ok := d.text(n, "host")
	if !ok {
		return ""
	}
	name := strings.ToLower(strings.TrimPrefix(s, "*."))
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return BareHost(name)
	}
	if strings.Contains(name, ":") {
		d.fail(n, "host: %s: want a name without scheme and port", quote(s))
		return ""
	}
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" ||
		strings.Contains(name, "..") || name[0] == '.' {
		d.fail(n, "host: %s: want a name such as api.example.com, or *.example.com for all below it; names of other "+
			"scripts in their xn-- form", quote(s))
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(s, "."))
}

func (d *decoder) path(n *yaml.Node) Path {
	s, ok := d.text(n, "path")
	if !ok {
		return Path{}
	}
	p, err := parsePath(s)
	if err != nil {
		d.fail(n, "path: %s: %v", quote(s), err)
	}
	return p
}

// methods are those that slips are looked for in. Others are let pass.
var methods = []string{
	"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE", "QUERY",
	"PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "PURGE",
}

func (d *decoder) method(n *yaml.Node) string {
	s, ok := d.text(n, "method")
	switch {
	case !ok || slices.Contains(methods, s):
	case nearest(s, methods) != "":
		d.fail(n, "unknown method %s%s", quote(s), didYouMean(s, methods))
	case !httpguts.ValidHeaderFieldName(s) || s != strings.ToUpper(s):
		d.fail(n, "method: %s: want a method in capitals, such as GET or POST", quote(s))
	}
	return s
}

func (d *decoder) headers(n *yaml.Node) (all []HeaderMatch) {
	d.pairs(n, "header", func(key, value *yaml.Node) {
		name, ok := d.headerName(key, target(key).Value)
		if !ok {
			return
		}
		h := HeaderMatch{Name: name}
		any := false
		d.list(value, "header "+name, func(n *yaml.Node) {
			s, ok := d.text(n, "header "+name)
			if ok {
				any = any || s == "*"
				h.Values = append(h.Values, s)
			}
		})
		if any {
			h.Values = nil
		}
		if slices.ContainsFunc(all, func(other HeaderMatch) bool { return other.Name == name }) {
			d.fail(key, "header %s is there twice: the case of its letters does not matter", name)
		}
		all = append(all, h)
	})
	return all
}

// notHeaders are taken out of the header by net/http: they would look absent in every request.
var notHeaders = []string{"Host", "Trailer", "Transfer-Encoding"}

// headerName checks the name of a header field and returns its canonical form.
func (d *decoder) headerName(n *yaml.Node, s string) (string, bool) {
	name := http.CanonicalHeaderKey(s)
	switch {
	case !httpguts.ValidHeaderFieldName(s):
		d.fail(n, "%s is not the name of an HTTP header; write for example X-API-Key", quote(s))
	case name == "Host":
		d.fail(n, "Host is not looked at as a header: use host")
	case slices.Contains(notHeaders, name):
		d.fail(n, "%s steers HTTP itself and cannot be used here", name)
	default:
		return name, true
	}
	return "", false
}

// headerReference reads header:NAME. If s is something else, the name is empty; if the name is
// bad, that has been noted and the name is what it was.
func (d *decoder) headerReference(n *yaml.Node, s string) (name string, ok bool) {
	bad, isHeader := strings.CutPrefix(s, "header:")
	if !isHeader {
		return "", false
	}
	if name, ok = d.headerName(n, bad); ok {
		return name, true
	}
	return s, false
}
