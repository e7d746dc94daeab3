package config

import (
	"net/url"
	"strings"

	"github.com/weir-go/weir/internal/spelling"
)

// QueryValues returns the values of a parameter of the query, without escapes, by any spelling of its name
// ([spelling.SameName]). Some servers take a semicolon for the end of a parameter and some do not: where that makes a
// difference, both values are there.
func QueryValues(u *url.URL, name string) (values []string) {
	eachParameter(u, func(got, value string) {
		if spelling.SameName(got, name) {
			values = append(values, value)
		}
	})
	return values
}

// certainQuery returns the same values, if every server takes each for the parameter's; none otherwise.
func certainQuery(u *url.URL, name string) (values []string) {
	doubt := false
	eachParameter(u, func(got, value string) {
		if spelling.SameName(got, name) {
			doubt = doubt || got != name
			values = append(values, value)
		}
	})
	if doubt {
		return nil
	}
	return values
}

// eachParameter calls each with the parameters of the query by every reading.
func eachParameter(u *url.URL, each func(name, value string)) {
	if u.RawQuery == "" {
		return
	}
	parameter := func(pair string) {
		name, value, _ := strings.Cut(pair, "=")
		each(spelling.UnescapeQuery(name), spelling.UntilZero(spelling.UnescapeQuery(value)))
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		parameter(pair)
		if strings.Contains(pair, ";") {
			for part := range strings.SplitSeq(pair, ";") {
				parameter(part)
			}
		}
	}
}
