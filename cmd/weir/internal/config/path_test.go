package config

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testalloc"
)

// Patterns mean what they mean to net/http, for paths that it does not redirect.
func TestPathsAgainstServeMux(t *testing.T) {
	patterns := []string{
		"/", "/{$}", "/a", "/a/", "/a/{$}", "/a/b", "/{x}", "/{x}/", "/{x}/{$}", "/a/{x}", "/a/{x}/c", "/{x}/b",
		"/{x...}", "/a/{x...}", "/{x}/{y...}", "/a/{x}/{y}",
	}
	paths := []string{
		"/", "/a", "/a/", "/b", "/b/", "/a/b", "/a/b/", "/a/b/c", "/x/b", "/x/b/c/d", "/ab", "/a/bc", "/a/b/c/",
	}
	for _, text := range patterns {
		p, err := parsePath(text)
		require.NoError(t, err, text)
		assert.Equal(t, text, p.String())
		mux := http.NewServeMux()
		mux.HandleFunc(text, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
		for _, path := range paths {
			answer := httptest.NewRecorder()
			mux.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
			assert.Equal(t, answer.Code == http.StatusTeapot, p.Matches(path), "%s with %s", text, path)
		}
	}
}

// A route goes by one reading, that of net/http.
func TestRoutesGoByOneReading(t *testing.T) {
	login, err := parsePath("/login")
	require.NoError(t, err)
	below, err := parsePath("/admin/")
	require.NoError(t, err)
	for raw, want := range map[string]bool{
		"/login": true, "//login": true, "/./login": true, "/x/../login": true, "/%6cogin": true, "/login/.": false,
		"/login/": false, "/Login": false, "/login2": false, "/login?x=/": true, "/a%2f..%2flogin": true,
	} {
		u, err := url.ParseRequestURI(raw)
		require.NoError(t, err)
		assert.Equal(t, want, login.Matches(u.Path), raw)
	}
	for raw, want := range map[string]bool{
		"/admin/": true, "/admin": false, "//admin//": true, "/admin/x": true, "/x/../admin/": true, "/admin/..": false,
	} {
		assert.Equal(t, want, below.Matches(raw), raw)
	}
}

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

func TestMatchDoesNotAllocate(t *testing.T) {
	f, err := Parse("weir.yaml", []byte(full))
	require.NoError(t, err)
	r := httptest.NewRequest("POST", "http://api.example.com/login", nil)
	r.Header.Set("X-Env", "prod")
	m := &f.Rules[0].Match
	require.True(t, m.Meets(r, nil))
	assert.Zero(t, testalloc.PerCall(func() { m.Meets(r, nil) }))
	assert.Zero(t, testalloc.PerCall(func() { m.Matches(r) }))
}
