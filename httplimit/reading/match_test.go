package reading

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testalloc"
)

// For a path that net/http does not redirect, a pattern has the same meaning as in net/http.
func TestPathsAgainstServeMux(t *testing.T) {
	patterns := []string{
		"/", "/{$}", "/a", "/a/", "/a/{$}", "/a/b", "/{x}", "/{x}/", "/{x}/{$}", "/a/{x}", "/a/{x}/c", "/{x}/b",
		"/{x...}", "/a/{x...}", "/{x}/{y...}", "/a/{x}/{y}",
	}
	paths := []string{
		"/", "/a", "/a/", "/b", "/b/", "/a/b", "/a/b/", "/a/b/c", "/x/b", "/x/b/c/d", "/ab", "/a/bc", "/a/b/c/",
	}
	for _, text := range patterns {
		p, err := ParsePath(text)
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

// For a route, Matches uses only the reading of net/http.
func TestRoutesGoByOneReading(t *testing.T) {
	login, err := ParsePath("/login")
	require.NoError(t, err)
	below, err := ParsePath("/admin/")
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

// TestEachPartOfAMatch: a request must satisfy each part that is not empty. If servers may disagree about a part, only
// Meets reports true.
func TestEachPartOfAMatch(t *testing.T) {
	full := Match{
		Hosts: []string{"*.example.com"}, Paths: patternsOf(t, "/login"), Methods: []string{"POST"},
		Headers: []Field{HeaderField("x-env", " prod")}, Query: []Field{{Name: "q"}},
		Clients: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}
	from := func(addr string) AddrFunc {
		return func(*http.Request) netip.Addr { return netip.MustParseAddr(addr) }
	}
	request := func(method, target string, header ...string) *http.Request {
		r := httptest.NewRequest(method, target, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		return r
	}
	const target = "http://a.example.com/login?q"
	all := request("POST", target, "X-Env", "prod")
	assert.True(t, full.Meets(all, from("10.1.2.3")))
	assert.True(t, full.IsCertain(all, from("10.1.2.3")))
	assert.True(t, full.UsesClient())
	assert.False(t, full.Meets(all, from("192.0.2.1")))
	for _, r := range []*http.Request{
		request("POST", "http://example.com/login?q", "X-Env", "prod"), request("GET", target, "X-Env", "prod"),
		request("POST", "http://a.example.com/logout?q", "X-Env", "prod"), request("POST", target),
		request("POST", "http://a.example.com/login", "X-Env", "prod"), request("POST", target, "X-Env", "test"),
	} {
		assert.False(t, full.Meets(r, from("10.1.2.3")), "%s %s %v", r.Method, r.URL, r.Header)
		assert.False(t, full.IsCertain(r, from("10.1.2.3")), "%s %s %v", r.Method, r.URL, r.Header)
	}
	for _, r := range []*http.Request{
		request("post", target, "X-Env", "prod"), request("POST", "http://a.example.com/Login?q", "X-Env", "prod"),
		request("POST", target, "X-Env", "prod", "X-Env", "test"), request("POST", target, "X-Env", "PROD"),
		request("POST", "http://a.example.com//login?q", "X-Env", "prod"), request("POST", target[:len(target)-1]+"Q", "X-Env", "prod"),
	} {
		assert.True(t, full.Meets(r, from("10.1.2.3")), "%s %s %v", r.Method, r.URL, r.Header)
		assert.False(t, full.IsCertain(r, from("10.1.2.3")), "%s %s %v", r.Method, r.URL, r.Header)
	}
	other := Match{Methods: []string{"POST"}, Not: []Match{full}}
	assert.False(t, other.Meets(all, from("10.1.2.3")))
	assert.True(t, other.Meets(request("POST", "http://a.example.com//login?q", "X-Env", "prod"), from("10.1.2.3")))
	assert.True(t, other.UsesClient())
	assert.Equal(t, "method POST, but not method POST, host *.example.com, path /login, header X-Env: prod, any query q, "+
		"client 10.0.0.0/8", other.String())
	assert.Equal(t, "all requests", Match{}.String())
}

func TestMatchDoesNotAllocate(t *testing.T) {
	m := &Match{
		Hosts: []string{"api.example.com"}, Paths: patternsOf(t, "/login", "/users/{id}/"), Methods: []string{"POST"},
		Headers: []Field{{Name: "X-Env", Values: []string{"prod"}}},
	}
	r := httptest.NewRequest("POST", "http://api.example.com/users/1/search", nil)
	r.Header.Set("X-Env", "prod")
	require.True(t, m.Meets(r, nil))
	require.True(t, m.Matches(r))
	assert.Zero(t, testalloc.PerCall(func() { m.Meets(r, nil) }))
	assert.Zero(t, testalloc.PerCall(func() { m.Matches(r) }))
}
