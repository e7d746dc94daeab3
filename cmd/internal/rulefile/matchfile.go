package rulefile

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

// routeMatch returns the section for the match of a route. The section for a rule or an exception has more keys.
func routeMatch(m *reading.Match) section {
	host := one(textSchema, (*decoder).host)
	return section{
		name: "match", help: "The requests that match; every part must match", least: 1, entries: []entry{
			at("host", list(host, nil), &m.Hosts, "", "a name without port, or `*.example.com` for all names below").unless("any"),
			at("path", list(path, nil), &m.Paths, "",
				"a pattern: `/login`, `/static/`, `/users/{id}`, `/files/{rest...}`, `/{$}`; or a mapping with `prefix` or `regex`").unless("any"),
			at("method", list(method, nil), &m.Methods, "", "in capitals; `GET` includes `HEAD`").unless("any"),
			at("header", headerFields, &m.Headers, "",
				"for each name a value, a list of values, or `\"*\"` for any. A value is compared with a whole line of the header").unless("any"),
		},
		check: func(d *decoder, n *yaml.Node, seen map[string]*yaml.Node) {
			if len(seen) == 0 {
				d.Fail(n, "match is empty: write host, path, method or header, or leave match out for all requests")
			}
		},
	}
}

// exception returns the section for an exception. An exception applies to one rule or to all rules.
func exception(m *reading.Match) section {
	s := routeMatch(m)
	s.entries = append(s.entries,
		at("client", list(prefix, nil), &m.Clients, "", "addresses and ranges of addresses, such as `10.0.0.0/8`").unless("any"),
		at("query", queryFields, &m.Query, "", "the same as `header`, for parameters of the query").unless("any"))
	return s
}

func ruleMatch(m *reading.Match) section {
	s := exception(m)
	s.entries = append(s.entries,
		at("not", list(exceptions, nil), &m.Not, "", "one match or a list of them: requests to which the rule does "+
			"not apply. They are matched as strictly as those of `exempt`"),
		at("case", either("insensitive", "sensitive"), &m.KeepCase, "insensitive",
			"`sensitive`: upper and lower case differ in the rule's `path`, in the values of its `header` and `query`, and in a key of `path`"),
		at("extension", either("any", "exact"), &m.KeepType, "any", "`exact`: `/login.json` is not `/login`"))
	return s
}

func (d *decoder) host(n *yaml.Node, what, s string) string {
	name := strings.ToLower(strings.TrimPrefix(s, "*."))
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return spelling.Host(name)
	}
	if strings.Contains(name, ":") {
		d.Fail(n, "%s: %s: want a name without scheme and port", what, yamlfile.Quote(s))
		return ""
	}
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" ||
		strings.Contains(name, "..") || name[0] == '.' {
		d.Fail(n, "%s: %s: want a name such as api.example.com, or *.example.com for all below it; names of other "+
			"scripts in their xn-- form", what, yamlfile.Quote(s))
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(s, "."))
}

// path describes a path. It is a pattern, or a mapping with a prefix or a regular expression.
var path = kind[reading.Path]{
	read: func(d *decoder, n *yaml.Node, what string, into *reading.Path) {
		if yamlfile.Target(n).Kind != yaml.MappingNode {
			pathPattern.read(d, n, what, into)
			return
		}
		s := pathText(into)
		s.read(d, n)
	},
	schema: func() schema {
		s := pathText(new(reading.Path))
		return anyOf(pathPattern.schema(), s.schema())
	},
}

var pathPattern = byText(pattern("", "^/[^?#*]*$"), reading.ParsePath)

// pathText returns the section for a path that is not a pattern. It has one of two keys.
func pathText(into *reading.Path) section {
	return section{
		name: "path", least: 1, most: 1, entries: []entry{
			at("prefix", byText(pattern("", "^/[^?#%]*$"), reading.ParsePrefix), into, "",
				"every path that begins with the text, such as `/log` for `/login`"),
			at("regex", byText(textSchema, reading.ParseRegexp), into, "",
				"every path that an expression in the syntax of [RE2](https://github.com/google/re2/wiki/Syntax) "+
					"matches anywhere, such as `^/users/[0-9]+$`"),
		},
		check: func(d *decoder, n *yaml.Node, seen map[string]*yaml.Node) {
			if len(seen) != 1 {
				d.Fail(n, "path: want a pattern such as /login, or prefix or regex")
			}
		},
	}
}

// byText describes a value that the function parse makes from a text.
func byText[V any](s schema, parse func(string) (V, error)) kind[V] {
	return one(s, func(d *decoder, n *yaml.Node, what, text string) V {
		v, err := parse(text)
		if err != nil {
			d.Fail(n, "%s: %s: %v", what, yamlfile.Quote(text), err)
		}
		return v
	})
}

// methods has the methods for which a misspelling is detected. Any other method is accepted as it is.
var methods = []string{
	"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE", "QUERY",
	"PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "PURGE",
}

var method = one(schema{"type": []string{"string", "number"}, "pattern": "^[^a-z]+$", "description": "In capitals"}, func(d *decoder, n *yaml.Node, _, s string) string {
	switch {
	case slices.Contains(methods, s):
	case nearest(s, methods) != "":
		d.Fail(n, "unknown method %s%s", yamlfile.Quote(s), didYouMean(s, methods))
	case !httpguts.ValidHeaderFieldName(s) || s != strings.ToUpper(s):
		d.Fail(n, "method: %s: want a method in capitals, such as GET or POST", yamlfile.Quote(s))
	}
	return s
})

// These fields of a match map names to the wanted values.
var (
	headerFields = mapped(list(text, nil), func(d *decoder, n *yaml.Node, what string, into *[]reading.Field) {
		*into = d.fields(n, what, func(key *yaml.Node) (string, bool) {
			return d.headerName(key, yamlfile.Target(key).Value)
		}, spelling.Line)
	})
	queryFields = mapped(list(text, nil), func(d *decoder, n *yaml.Node, what string, into *[]reading.Field) {
		*into = d.fields(n, what, func(key *yaml.Node) (string, bool) {
			name := yamlfile.Target(key).Value
			if name == "" {
				d.Fail(key, "query: want the name of a parameter")
			}
			return name, name != ""
		}, func(_, value string) string { return value })
	})
)

// header describes the name of a header field. The value is its canonical form.
var header = one(textSchema, func(d *decoder, n *yaml.Node, _, s string) string {
	name, _ := d.headerName(n, s)
	return name
})

// fields reads a mapping of names to wanted values. The function nameOf checks and converts a name, and the function
// form converts a value for comparison.
func (d *decoder) fields(n *yaml.Node, what string, nameOf func(key *yaml.Node) (string, bool),
	form func(name, value string) string) (all []reading.Field) {
	d.filled(n, what, func(key, value *yaml.Node) {
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
			d.Fail(key, "%s %s occurs twice: the case of its letters does not matter", what, name)
		}
		all = append(all, f)
	})
	return all
}

// notHeaders has fields that net/http removes from the header of a request. A rule would not find them in any request.
var notHeaders = []string{"Host", "Trailer", "Transfer-Encoding"}

// headerName checks the name of a header field and returns its canonical form.
func (d *decoder) headerName(n *yaml.Node, s string) (string, bool) {
	name := http.CanonicalHeaderKey(s)
	switch {
	case !httpguts.ValidHeaderFieldName(s):
		d.Fail(n, "%s is not the name of an HTTP header; write for example X-API-Key", yamlfile.Quote(s))
	case name == "Host":
		d.Fail(n, "Host is not among the headers: use host")
	case slices.Contains(notHeaders, name):
		d.Fail(n, "%s steers HTTP itself and cannot be used here", name)
	default:
		return name, true
	}
	return "", false
}

// perHop has the fields that a proxy does not pass on to the upstream (RFC 9110, section 7.6.1). A client could write
// anything into them. So with a key from such a field, it could choose its bucket.
var perHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Upgrade",
}

// headerReference parses header:NAME and returns NAME. For another text, it returns "". If NAME is invalid, it notes a
// mistake and returns NAME unchanged.
func (d *decoder) headerReference(n *yaml.Node, s string) (name string, ok bool) {
	bad, isHeader := strings.CutPrefix(s, "header:")
	if !isHeader {
		return "", false
	}
	if name, ok = d.headerName(n, bad); ok && slices.Contains(perHop, name) {
		d.Fail(n, "%s is for a single connection and is never passed on: use a header that the server checks", name)
	} else if ok {
		return name, true
	}
	return s, false
}
