package reading

import (
	"net/url"
	"strings"

	"github.com/weir-go/weir/internal/spelling"
)

// QueryValues returns the values of a parameter of the query, without escapes, by any spelling of its name
// ([spelling.SameName]). Some servers take a semicolon for the end of a parameter and some do not, and some undo
// %u0041: where that makes a difference, both values are there.
func QueryValues(u *url.URL, name string) (values []string) {
	eachParameter(u, name, func(_, value string) { values = append(values, spelling.UntilZero(value)) })
	return values
}

// QueryKey returns the value of a parameter by which a bucket is chosen, "" if it is absent or empty: one text for all
// spellings of the value that a server reads alike, such as "V" for V, V+ and %56. It is not ok if a reading of the
// query has another value of the parameter ([QueryValues]), or if there is a zero byte in it.
func QueryKey(u *url.URL, name string) (value string, ok bool) {
	found, ok := false, true
	eachParameter(u, name, func(_, raw string) {
		got, whole := spelling.Value(raw)
		ok = ok && whole && (!found || got == value)
		value, found = got, true
	})
	if !ok {
		return "", false
	}
	return value, true
}

// certainQuery returns the same values, if every server takes each for the parameter's; none otherwise.
func certainQuery(u *url.URL, name string) (values []string) {
	doubt := false
	eachParameter(u, name, func(got, value string) {
		doubt = doubt || got != name
		values = append(values, value)
	})
	if doubt {
		return nil
	}
	return values
}

// eachParameter calls each with what every reading of the query has for the parameter: a name that is taken for that,
// and a value. A query may have tens of thousands of others, so nothing is done with these but to look at their names.
func eachParameter(u *url.URL, name string, each func(got, value string)) {
	if u.RawQuery == "" {
		return
	}
	one := func(pair string) {
		got, value, _ := strings.Cut(pair, "=")
		if got = spelling.UnescapeQuery(got); spelling.SameName(got, name) || isElement(got, name) {
			each(got, spelling.UnescapeQuery(value))
		}
	}
	semicolons, units := strings.Contains(u.RawQuery, ";"), strings.Contains(u.RawQuery, "%u")
	parameter := func(pair string) {
		if pair == "" {
			return
		}
		one(pair)
		if units {
			if plain := spelling.UnescapeUnits(pair); plain != pair {
				one(plain)
			}
		}
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		parameter(pair)
		if semicolons && strings.Contains(pair, ";") {
			for part := range strings.SplitSeq(pair, ";") {
				parameter(part)
			}
		}
	}
}

// isElement reports whether a parameter is an element of the list that another one names, such as t[] or t[0] of t.
// PHP, Rails and Node's qs make a list of them, which some programs take for its only value.
func isElement(got, name string) bool {
	if !strings.HasSuffix(got, "]") {
		return false
	}
	list, _, is := strings.Cut(got, "[")
	return is && spelling.SameName(list, name)
}
