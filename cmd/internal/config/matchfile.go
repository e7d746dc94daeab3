package config

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"golang.org/x/net/http/httpguts"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/httplimit/reading"
	"github.com/weir-go/weir/internal/spelling"
)

func (d *decoder) match(n *yaml.Node, more ...field) (m reading.Match) {
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
		{"header", func(n *yaml.Node) {
			m.Headers = d.fields(n, "header", func(key *yaml.Node) (string, bool) {
				return d.headerName(key, yamlfile.Target(key).Value)
			}, spelling.Line)
		}},
	}, more...)...)
	if seen != nil && len(yamlfile.Target(n).Content) == 0 {
		d.Fail(n, "match is empty: write host, path, method or header, or leave match out for all requests")
	}
	return m
}

// What case and extension can be: the first is the default.
var (
	letterCases = []string{"insensitive", "sensitive"}
	extensions  = []string{"any", "exact"}
)

// ruleMatch reads the match of a rule, which has more to say than that of a route.
func (d *decoder) ruleMatch(n *yaml.Node) reading.Match {
	letters, extension := letterCases[0], extensions[0]
	var more reading.Match
	m := d.match(n, d.clientField(&more), d.queryField(&more),
		field{"not", func(n *yaml.Node) {
			d.list(n, "not", func(n *yaml.Node) { more.Not = append(more.Not, d.exception(n)) })
		}},
		choiceField(d, "case", letterCases, &letters),
		choiceField(d, "extension", extensions, &extension))
	m.Clients, m.Query, m.Not = more.Clients, more.Query, more.Not
	m.KeepCase, m.KeepType = letters == letterCases[1], extension == extensions[1]
	return m
}

// exception reads a match of requests that a rule, or every rule, is not for.
func (d *decoder) exception(n *yaml.Node) reading.Match {
	var more reading.Match
	m := d.match(n, d.clientField(&more), d.queryField(&more))
	m.Clients, m.Query = more.Clients, more.Query
	return m
}

func (d *decoder) clientField(m *reading.Match) field {
	return field{"client", func(n *yaml.Node) {
		d.list(n, "client", func(n *yaml.Node) {
			if prefix, ok := d.prefix(n, "client"); ok {
				m.Clients = append(m.Clients, prefix)
			}
		})
	}}
}

func (d *decoder) queryField(m *reading.Match) field {
	return field{"query", func(n *yaml.Node) {
		m.Query = d.fields(n, "query", func(key *yaml.Node) (string, bool) {
			name := yamlfile.Target(key).Value
			if name == "" {
				d.Fail(key, "query: want the name of a parameter")
			}
			return name, name != ""
		}, func(_, value string) string { return value })
	}}
}

func (d *decoder) host(n *yaml.Node) string {
	s, ok := d.text(n, "host")
	if !ok {
		return ""
	}
	name := strings.ToLower(strings.TrimPrefix(s, "*."))
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return spelling.Host(name)
	}
	if strings.Contains(name, ":") {
		d.Fail(n, "host: %s: want a name without scheme and port", yamlfile.Quote(s))
		return ""
	}
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" ||
		strings.Contains(name, "..") || name[0] == '.' {
		d.Fail(n, "host: %s: want a name such as api.example.com, or *.example.com for all below it; names of other "+
			"scripts in their xn-- form", yamlfile.Quote(s))
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(s, "."))
}

// path reads a pattern, or a mapping with the text of one.
func (d *decoder) path(n *yaml.Node) (p reading.Path) {
	if yamlfile.Target(n).Kind != yaml.MappingNode {
		return d.parsePath(n, "path", reading.ParsePath)
	}
	seen := d.mapping(n, "path",
		field{"prefix", func(n *yaml.Node) { p = d.parsePath(n, "prefix", reading.ParsePrefix) }},
		field{"regex", func(n *yaml.Node) { p = d.parsePath(n, "regex", reading.ParseRegexp) }})
	if seen != nil && len(seen) != 1 {
		d.Fail(n, "path: want a pattern such as /login, or prefix or regex")
	}
	return p
}

func (d *decoder) parsePath(n *yaml.Node, what string, parse func(string) (reading.Path, error)) reading.Path {
	s, ok := d.text(n, what)
	if !ok {
		return reading.Path{}
	}
	p, err := parse(s)
	if err != nil {
		d.Fail(n, "%s: %s: %v", what, yamlfile.Quote(s), err)
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
		d.Fail(n, "unknown method %s%s", yamlfile.Quote(s), didYouMean(s, methods))
	case !httpguts.ValidHeaderFieldName(s) || s != strings.ToUpper(s):
		d.Fail(n, "method: %s: want a method in capitals, such as GET or POST", yamlfile.Quote(s))
	}
	return s
}

// fields reads names with the values that are wanted of them, each in the one form that it is compared in.
func (d *decoder) fields(n *yaml.Node, what string, nameOf func(key *yaml.Node) (string, bool),
	form func(name, value string) string) (all []reading.Field) {
	d.pairs(n, what, func(key, value *yaml.Node) {
		name, ok := nameOf(key)
		if !ok {
			return
		}
		f := reading.Field{Name: name}
		any := false
		d.list(value, what+" "+name, func(n *yaml.Node) {
			s, ok := d.text(n, what+" "+name)
			if ok {
				any = any || s == "*"
				f.Values = append(f.Values, form(name, s))
			}
		})
		if any {
			f.Values = nil
		}
		if slices.ContainsFunc(all, func(other reading.Field) bool { return other.Name == name }) {
			d.Fail(key, "%s %s is there twice: the case of its letters does not matter", what, name)
		}
		all = append(all, f)
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
		d.Fail(n, "%s is not the name of an HTTP header; write for example X-API-Key", yamlfile.Quote(s))
	case name == "Host":
		d.Fail(n, "Host is not looked at as a header: use host")
	case slices.Contains(notHeaders, name):
		d.Fail(n, "%s steers HTTP itself and cannot be used here", name)
	default:
		return name, true
	}
	return "", false
}

// perHop are for weir and not for the server behind it, which does not get them: as a key each would be a bucket of the
// client's choice (RFC 9110, section 7.6.1).
var perHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Upgrade",
}

// headerReference reads header:NAME. If s is something else, the name is empty; if the name is
// bad, that has been noted and the name is what it was.
func (d *decoder) headerReference(n *yaml.Node, s string) (name string, ok bool) {
	bad, isHeader := strings.CutPrefix(s, "header:")
	if !isHeader {
		return "", false
	}
	if name, ok = d.headerName(n, bad); ok && slices.Contains(perHop, name) {
		d.Fail(n, "%s is for one connection alone and is never passed on: use a header that the server checks", name)
	} else if ok {
		return name, true
	}
	return s, false
}
