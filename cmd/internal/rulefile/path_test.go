package rulefile

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMatch(t *testing.T) {
	f, err := Parse("weir.yaml", []byte(`rules:
- {name: host, rate: 1/s, match: {host: ["*.example.com", "192.0.2.1"]}}
- {name: method, rate: 1/s, match: {method: GET, path: [/a, /b]}}
- {name: header, rate: 1/s, match: {header: {x-any: "*", x-one: [a, b]}}}
- {name: all, rate: 1/s}
`))
	require.NoError(t, err)
	names := func(r *http.Request) (all []string) {
		for i := range f.Rules {
			if f.Rules[i].Match.Meets(r, nil) {
				all = append(all, f.Rules[i].Name)
			}
		}
		return all
	}
	assert.Equal(t, []string{"host", "all"}, names(httptest.NewRequest("POST", "http://A.b.Example.com.:81/a", nil)))
	assert.Equal(t, []string{"host", "method", "all"}, names(httptest.NewRequest("HEAD", "http://192.0.2.1:80/b", nil)))
	r := httptest.NewRequest("POST", "http://example.com/", nil)
	assert.Equal(t, []string{"all"}, names(r), "*.example.com is what is below it")
	r.Header.Add("X-One", "c")
	r.Header.Add("X-One", "b")
	assert.Equal(t, []string{"all"}, names(r))
	r.Header.Add("X-Any", "")
	assert.Equal(t, []string{"header", "all"}, names(r))
}

// TestPathsOfText checks prefixes and expressions in rules, routes and exceptions, alone and in a list with patterns.
func TestPathsOfText(t *testing.T) {
	const file = `routes: [{match: {path: {prefix: /st}}, upstream: "http://a"}]
upstream: http://b
exempt: {path: {regex: "\\.css$"}}
rules:
- {name: a, rate: 1/s, match: {path: [/login, {prefix: /adm}, {regex: '^/users/[0-9]+$'}], not: {path: {prefix: /admx}}}}
`
	f, err := Parse("weir.yaml", []byte(file))
	require.NoError(t, err)
	for path, want := range map[string]bool{
		"/login": true, "/administrator": true, "/x/../ADMIN": true, "/admx": false, "/users/1": true, "/users/%31;x": true, "/users/a": false,
	} {
		assert.Equal(t, want, f.Rules[0].Match.Meets(httptest.NewRequest(http.MethodGet, path, nil), nil), path)
	}
	assert.True(t, f.Routes[0].Match.Matches(httptest.NewRequest(http.MethodGet, "/static/x", nil)))
	assert.True(t, f.Exempt[0].IsCertain(httptest.NewRequest(http.MethodGet, "/x.css", nil), nil))
	assert.False(t, f.Exempt[0].IsCertain(httptest.NewRequest(http.MethodGet, "/x;.css", nil), nil))
	again, err := Parse("weir.yaml", []byte(file))
	require.NoError(t, err)
	assert.True(t, Diff(f, again).Empty())
}
