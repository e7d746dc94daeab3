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
	host := scalar(textSchema, (*decoder).host)
	return section{
		name: "match", help: "The requests that match; every part must match", minProperties: 1, entries: []entry{
			newEntry("host", list(host, nil), &m.Hosts, "", "a name without port, or `*.example.com` for all names below").withDefaultText("any"),
			newEntry("path", list(path, nil), &m.Paths, "",
				"a pattern: `/login`, `/static/`, `/users/{id}`, `/files/{rest...}`, `/{$}`; or a mapping with `prefix` or `regex`").withDefaultText("any"),
			newEntry("method", list(method, nil), &m.Methods, "", "in capitals; `GET` includes `HEAD`").withDefaultText("any"),
			newEntry("header", headerFields, &m.Headers, "",
				"for each name a value, a list of values, or `\"*\"` for any. A value is compared with a whole line of the header").withDefaultText("any"),
		},
		check: func(d *decoder, n *yaml.Node, nodes map[string]*yaml.Node) {
			if len(nodes) == 0 {
				d.Fail(n, "match is empty: write host, path, method or header, or leave match out for all requests")
			}
		},
	}
}

// exception returns the section for an exception. An exception applies to one rule or to all rules.
func exception(m *reading.Match) section {
	s := routeMatch(m)
	s.entries = append(s.entries,
		newEntry("client", list(prefix, nil), &m.Clients, "", "addresses and ranges of addresses, such as `10.0.0.0/8`").withDefaultText("any"),
		newEntry("query", queryFields, &m.Query, "", "the same as `header`, for parameters of the query").withDefaultText("any"))
	return s
}

func ruleMatch(m *reading.Match) section {
	s := exception(m)
	s.entries = append(s.entries,
		newEntry("not", list(exceptions, nil), &m.Not, "", "one match or a list of them: requests to which the rule does "+
			"not apply. They are matched as strictly as those of `exempt`"),
		newEntry("case", twoWords("insensitive", "sensitive"), &m.KeepCase, "insensitive",
			"`sensitive`: upper and lower case differ in the rule's `path`, in the values of its `header` and `query`, and in a key of `path`"),
		newEntry("extension", twoWords("any", "exact"), &m.KeepType, "any", "`exact`: `/login.json` is not `/login`"))
	return s
}

func (d *decoder) host(n *yaml.Node, keyName, s string) string {
	name := strings.ToLower(strings.TrimPrefix(s, "*."))
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return spelling.Host(name)
	}
	if strings.Contains(name, ":") {
		d.Fail(n, "%s: %s: want a name without scheme and port", keyName, yamlfile.Quote(s))
		return ""
	}
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" ||
		strings.Contains(name, "..") || name[0] == '.' {
		d.Fail(n, "%s: %s: want a name such as api.example.com, or *.example.com for all below it; names of other "+
			"scripts in their xn-- form", keyName, yamlfile.Quote(s))
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(s, "."))
}

// path describes a path. It is a pattern, or a mapping with a prefix or a regular expression.
var path = kind[reading.Path]{
	read: func(d *decoder, n *yaml.Node, keyName string, dst *reading.Path) {
		if yamlfile.Target(n).Kind != yaml.MappingNode {
			pathPattern.read(d, n, keyName, dst)
			return
		}
		s := pathText(dst)
		s.read(d, n)
	},
	schema: func() schema {
		s := pathText(new(reading.Path))
		return anyOf(pathPattern.schema(), s.schema())
	},
}

var pathPattern = parsedText(pattern("", "^/[^?#*]*$"), reading.ParsePath)

// pathText returns the section for a path that is not a pattern. It has one of two keys.
func pathText(dst *reading.Path) section {
	return section{
		name: "path", minProperties: 1, maxProperties: 1, entries: []entry{
			newEntry("prefix", parsedText(pattern("", "^/[^?#%]*$"), reading.ParsePrefix), dst, "",
				"every path that begins with the text, such as `/log` for `/login`"),
			newEntry("regex", parsedText(textSchema, reading.ParseRegexp), dst, "",
				"every path that an expression in the syntax of [RE2](https://github.com/google/re2/wiki/Syntax) "+
					"matches anywhere, such as `^/users/[0-9]+$`"),
		},
		check: func(d *decoder, n *yaml.Node, nodes map[string]*yaml.Node) {
			if len(nodes) != 1 {
				d.Fail(n, "path: want a pattern such as /login, or prefix or regex")
			}
		},
	}
}

// parsedText describes a value that the function parse makes from a text.
func parsedText[V any](s schema, parse func(string) (V, error)) kind[V] {
	return scalar(s, func(d *decoder, n *yaml.Node, keyName, text string) V {
		v, err := parse(text)
		if err != nil {
			d.Fail(n, "%s: %s: %v", keyName, yamlfile.Quote(text), err)
		}
		return v
	})
}

// methods has the methods for which a misspelling is detected. Any other method is accepted as it is.
var methods = []string{
	"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE", "QUERY",
	"PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "PURGE",
}

var method = scalar(schema{"type": []string{"string", "number"}, "pattern": "^[^a-z]+$", "description": "In capitals"}, func(d *decoder, n *yaml.Node, _, s string) string {
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
	headerFields = mapOf(list(text, nil), func(d *decoder, n *yaml.Node, keyName string, dst *[]reading.Field) {
		*dst = d.fields(n, keyName, func(key *yaml.Node) (string, bool) {
			return d.headerName(key, yamlfile.Target(key).Value)
		}, spelling.Line)
	})
	queryFields = mapOf(list(text, nil), func(d *decoder, n *yaml.Node, keyName string, dst *[]reading.Field) {
		*dst = d.fields(n, keyName, func(key *yaml.Node) (string, bool) {
			name := yamlfile.Target(key).Value
			if name == "" {
				d.Fail(key, "query: want the name of a parameter")
			}
			return name, name != ""
		}, func(_, value string) string { return value })
	})
)

// header describes the name of a header field. The value is its canonical form.
var header = scalar(textSchema, func(d *decoder, n *yaml.Node, _, s string) string {
	name, _ := d.headerName(n, s)
	return name
})

// fields reads a mapping of names to wanted values. The function nameOf checks and converts a name, and the function
// normalize converts a value for comparison.
func (d *decoder) fields(n *yaml.Node, keyName string, nameOf func(key *yaml.Node) (string, bool),
	normalize func(name, value string) string) (fields []reading.Field) {
	d.nonEmptyPairs(n, keyName, func(key, value *yaml.Node) {
		name, ok := nameOf(key)
		if !ok {
			return
		}
		f := reading.Field{Name: name}
		matchesAny := false
		d.list(value, keyName+" "+name, func(n *yaml.Node) {
			s, ok := d.text(n, keyName+" "+name)
			if ok {
				matchesAny = matchesAny || s == "*"
				f.Values = append(f.Values, normalize(name, s))
			}
		})
		if matchesAny {
			f.Values = nil
		}
		if slices.ContainsFunc(fields, func(other reading.Field) bool { return other.Name == name }) {
			d.Fail(key, "%s %s occurs twice: the case of its letters does not matter", keyName, name)
		}
		fields = append(fields, f)
	})
	return fields
}

// removedHeaders has fields that net/http removes from the header of a request. So a rule cannot use them.
var removedHeaders = []string{"Host", "Trailer", "Transfer-Encoding"}

// headerName checks the name of a header field and returns its canonical form.
func (d *decoder) headerName(n *yaml.Node, s string) (string, bool) {
	name := http.CanonicalHeaderKey(s)
	switch {
	case !httpguts.ValidHeaderFieldName(s):
		d.Fail(n, "%s is not the name of an HTTP header; write for example X-API-Key", yamlfile.Quote(s))
	case name == "Host":
		d.Fail(n, "Host is not among the headers: use host")
	case slices.Contains(removedHeaders, name):
		d.Fail(n, "%s steers HTTP itself and cannot be used here", name)
	default:
		return name, true
	}
	return "", false
}

// hopByHop has the fields that a proxy does not pass on to the upstream (RFC 9110, section 7.6.1). A client can write
// anything into them. So with a key from such a field, a client could choose its bucket.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Upgrade",
}

// headerReference parses header:NAME and returns NAME. For another text, it returns "". If NAME is invalid, it notes a
// mistake and returns NAME unchanged.
func (d *decoder) headerReference(n *yaml.Node, s string) (name string, ok bool) {
	text, isHeader := strings.CutPrefix(s, "header:")
	if !isHeader {
		return "", false
	}
	if name, ok = d.headerName(n, text); ok && slices.Contains(hopByHop, name) {
		d.Fail(n, "%s is for a single connection and is never passed on: use a header that the server checks", name)
	} else if ok {
		return name, true
	}
	return s, false
}
