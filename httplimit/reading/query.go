package reading

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-go/weir/internal/spelling"
)

// QueryValues returns the values of a query parameter without escapes. The name of the parameter may have any spelling.
// Some servers end a parameter at a semicolon, and some decode %u0041. If this changes the value, QueryValues returns
// both values.
func QueryValues(u *url.URL, name string) (values []string) {
	eachParameter(u, name, func(_, value string) { values = append(values, spelling.UntilZero(value)) })
	return values
}

// A queryValue is the value of a parameter in one reading of the query.
type queryValue struct {
	name  string // the name that a server treats as the parameter's name
	value string // without escapes
	text  string // the canonical text for all spellings of the value ([spelling.Value])
	ok    bool   // text is valid
}

// queryValues returns the values of a parameter in all readings of the query. If the query has too many parameters to
// be read, it returns none.
func queryValues(r *http.Request, name string) (values []queryValue) {
	if r.URL.RawQuery == "" || tooManyParameters(r) {
		return nil
	}
	add := func(got, value string) {
		text, ok := spelling.Value(value)
		values = append(values, queryValue{got, value, text, ok})
	}
	p := parsedOf(r)
	if p == nil {
		eachParameter(r.URL, name, add)
		return values
	}
	for i := range p.values {
		if cached := &p.values[i]; cached.name == name {
			return cached.values
		}
	}
	var last pair
	p.query.forEach(name, func(param pair) {
		if param == last {
			return // this pair was handled already
		}
		last = param
		p.work += len(param.value) / 8
		param.parameter(name, add)
	})
	p.values = append(p.values, parsedValues{name, values})
	return values
}

// readQuery returns the value of a parameter: see [QueryKey].
func readQuery(r *http.Request, name string) (value string, ok bool) {
	if tooManyParameters(r) {
		return "", false
	}
	for i, v := range queryValues(r, name) {
		if !v.ok || i > 0 && v.text != value {
			return "", false
		}
		value = v.text
	}
	return value, true
}

// meetsQuery reports whether each wanted parameter has a wanted value. It also returns true if the query has too many
// parameters to be read.
func (m *Match) meetsQuery(r *http.Request) bool {
	return len(m.Query) == 0 || tooManyParameters(r) || !slices.ContainsFunc(m.Query, func(want Field) bool {
		values := queryValues(r, want.Name)
		return len(values) == 0 || len(want.Values) > 0 && !slices.ContainsFunc(values, func(v queryValue) bool {
			return slices.ContainsFunc(want.Values, func(text string) bool {
				folded, _ := spelling.Value(text)
				return m.sameText(v.text, folded) && v.ok || m.sameText(spelling.UntilZero(v.value), text)
			})
		})
	})
}

func (m *Match) sameText(got, want string) bool {
	return got == want || !m.KeepCase && strings.EqualFold(got, want)
}

// isCertainQuery reports whether every server reads only wanted values for each wanted parameter.
func (m *Match) isCertainQuery(r *http.Request) bool {
	return len(m.Query) == 0 || !tooManyParameters(r) && !slices.ContainsFunc(m.Query, func(want Field) bool {
		values := queryValues(r, want.Name)
		return len(values) == 0 || slices.ContainsFunc(values, func(v queryValue) bool {
			return v.name != want.Name || len(want.Values) > 0 && !slices.Contains(want.Values, v.value)
		})
	})
}

// tooManyParameters reports whether the query has too many parameters to be read.
func tooManyParameters(r *http.Request) bool {
	if p := parsedOf(r); p != nil {
		p.readQuery(r.URL.RawQuery)
		return p.query.tooMany
	}
	return tooManyPairs(r.URL.RawQuery, "&", ";")
}

// readQuery reads the names of all parameters. It is called once for a request.
func (p *Parsed) readQuery(query string) {
	if p.query.read {
		return
	}
	p.query.read, p.query.tooMany = true, tooManyPairs(query, "&", ";")
	p.work += len(query) / 8
	if p.query.tooMany {
		return
	}
	p.query.grow(1 + strings.Count(query, "&") + strings.Count(query, ";"))
	eachPair(query, func(param pair) {
		p.work += 1 + len(param.name)/8
		p.query.add(param.name, param)
		if list, ok := listOf(param.name); ok {
			p.query.add(list, param)
		}
	})
}

// eachParameter calls visit for every value of the parameter, in every reading of the query. It passes a name without
// escapes, which some server treats as the parameter's name, and the value. The value may contain zero bytes.
func eachParameter(u *url.URL, name string, visit func(got, value string)) {
	eachPair(u.RawQuery, func(p pair) { p.parameter(name, visit) })
}

// parameter calls visit if the pair is a value of the parameter with the given name.
func (p pair) parameter(name string, visit func(got, value string)) {
	if spelling.SameName(p.name, name) || isElement(p.name, name) {
		visit(p.name, spelling.UnescapeQuery(p.value))
	}
}

// eachPair calls visit with each parameter of a query, in every reading. The names have no escapes.
func eachPair(query string, visit func(pair)) {
	semicolons, units := strings.Contains(query, ";"), strings.Contains(query, "%u")
	split := func(text string) {
		name, value, _ := strings.Cut(text, "=")
		visit(pair{name: spelling.UnescapeQuery(name), value: value})
	}
	parameter := func(text string) {
		if text == "" {
			return
		}
		split(text)
		if units {
			if plain := spelling.UnescapeUnits(text); plain != text {
				split(plain)
			}
		}
	}
	for text := range strings.SplitSeq(query, "&") {
		parameter(text)
		if semicolons && strings.Contains(text, ";") {
			for part := range strings.SplitSeq(text, ";") {
				parameter(part)
			}
		}
	}
}

// isElement reports whether the parameter got is an element of the list name. For example, t[] and t[0] are elements of
// t. PHP, Rails and Node's qs make a list of such parameters. Some programs use a list of one element as its value.
func isElement(got, name string) bool {
	list, ok := listOf(got)
	return ok && spelling.SameName(list, name)
}

// listOf returns the name of the list that a parameter is an element of.
func listOf(name string) (list string, ok bool) {
	if !strings.HasSuffix(name, "]") {
		return "", false
	}
	list, _, ok = strings.Cut(name, "[")
	return list, ok
}
