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
	one := func(got, value string) {
		text, ok := spelling.Value(value)
		values = append(values, queryValue{got, value, text, ok})
	}
	p := parsedOf(r)
	if p == nil {
		eachParameter(r.URL, name, one)
		return values
	}
	for i := range p.values {
		if of := &p.values[i]; of.name == name {
			return of.values
		}
	}
	var last pair
	p.query.each(name, func(of pair) {
		if of == last {
			return // this pair was handled already
		}
		last = of
		p.work += len(of.value) / 8
		of.parameter(name, one)
	})
	p.values = append(p.values, parsedValues{name, values})
	return values
}

// readQuery returns the value of a parameter: see [QueryKey].
func readQuery(r *http.Request, name string) (value string, ok bool) {
	if tooManyParameters(r) {
		return "", false
	}
	for i, of := range queryValues(r, name) {
		if !of.ok || i > 0 && of.text != value {
			return "", false
		}
		value = of.text
	}
	return value, true
}

// meetsQuery reports whether each wanted parameter has a wanted value. It also returns true if the query has too many
// parameters to be read.
func (m *Match) meetsQuery(r *http.Request) bool {
	return len(m.Query) == 0 || tooManyParameters(r) || !slices.ContainsFunc(m.Query, func(want Field) bool {
		values := queryValues(r, want.Name)
		return len(values) == 0 || len(want.Values) > 0 && !slices.ContainsFunc(values, func(of queryValue) bool {
			return slices.ContainsFunc(want.Values, func(text string) bool {
				folded, _ := spelling.Value(text)
				return m.sameText(of.text, folded) && of.ok || m.sameText(spelling.UntilZero(of.value), text)
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
		return len(values) == 0 || slices.ContainsFunc(values, func(of queryValue) bool {
			return of.name != want.Name || len(want.Values) > 0 && !slices.Contains(want.Values, of.value)
		})
	})
}

// tooManyParameters reports whether the query has too many parameters to be read.
func tooManyParameters(r *http.Request) bool {
	if p := parsedOf(r); p != nil {
		p.readQuery(r.URL.RawQuery)
		return p.query.long
	}
	return tooManyPairs(r.URL.RawQuery, "&", ";")
}

// readQuery reads the names of all parameters. It is called once for a request.
func (p *Parsed) readQuery(query string) {
	if p.query.read {
		return
	}
	p.query.read, p.query.long = true, tooManyPairs(query, "&", ";")
	p.work += len(query) / 8
	if p.query.long {
		return
	}
	p.query.room(1 + strings.Count(query, "&") + strings.Count(query, ";"))
	eachPair(query, func(of pair) {
		p.work += 1 + len(of.name)/8
		p.query.add(of.name, of)
		if list, is := listOf(of.name); is {
			p.query.add(list, of)
		}
	})
}

// eachParameter calls its last argument for every value of the parameter, in every reading of the query. It passes a
// name without escapes, which some server treats as the parameter's name, and the value. The value may contain zero
// bytes.
func eachParameter(u *url.URL, name string, each func(got, value string)) {
	eachPair(u.RawQuery, func(of pair) { of.parameter(name, each) })
}

// parameter calls its last argument if the pair is a value of the parameter with the given name.
func (of pair) parameter(name string, each func(got, value string)) {
	if spelling.SameName(of.name, name) || isElement(of.name, name) {
		each(of.name, spelling.UnescapeQuery(of.value))
	}
}

// eachPair calls its last argument with each parameter of a query, in every reading. The names have no escapes.
func eachPair(query string, one func(pair)) {
	semicolons, units := strings.Contains(query, ";"), strings.Contains(query, "%u")
	split := func(text string) {
		name, value, _ := strings.Cut(text, "=")
		one(pair{name: spelling.UnescapeQuery(name), value: value})
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

// isElement reports whether got is an element of the list name. For example, t[] and t[0] are elements of t. PHP, Rails
// and Node's qs make a list of such parameters. Some programs use a list of one element as its value.
func isElement(got, name string) bool {
	list, is := listOf(got)
	return is && spelling.SameName(list, name)
}

// listOf returns the name of the list that a parameter is an element of.
func listOf(got string) (list string, is bool) {
	if !strings.HasSuffix(got, "]") {
		return "", false
	}
	list, _, is = strings.Cut(got, "[")
	return list, is
}
