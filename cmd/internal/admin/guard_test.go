package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// request sends a request with fields of the form "Name: value".
func request(a *Admin, method, url, body string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, strings.NewReader(body))
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	a.Handler().ServeHTTP(w, r)
	return w
}

func none() []Rule { return nil }

// TestNamesOfStrangers: a site whose name points at the page's address cannot read the page.
func TestNamesOfStrangers(t *testing.T) {
	a := start(t, Config{Rules: none, Pprof: true})
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:9090": 200, "localhost.": 200, "weir.localhost:1": 200, "127.0.0.1:9090": 200,
		"[::1]:9090": 200, "192.0.2.7:9090": 200, "evil.example": 403, "evil.example:9090": 403,
		"localhost.evil.example": 403, "evillocalhost": 403,
		"127.0.0.1.nip.io": 403, "": 403, ":80": 403,
	} {
		for _, path := range []string{"/", "/state.json", "/page.js", "/debug/pprof/", "/metrics"} {
			r := httptest.NewRequest(http.MethodGet, "http://x"+path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			a.Handler().ServeHTTP(w, r)
			assert.Equal(t, want, w.Code, "%s of %q", path, host)
		}
	}
	named := start(t, Config{Rules: none, Hosts: []string{"weir.example.com"}})
	for host, want := range map[string]int{
		"weir.example.com": 200, "WEIR.example.com.:443": 200, "localhost": 200, "example.com": 403,
		"a.weir.example.com": 403, "weir.example.com.evil.example": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, "http://x/state.json", nil)
		r.Host = host
		w := httptest.NewRecorder()
		named.Handler().ServeHTTP(w, r)
		assert.Equal(t, want, w.Code, host)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		assert.Equal(t, 200, request(a, "GET", "http://weir.svc:9090"+path, "").Code, path)
	}
}

// TestOtherSitesCannotUseTheForm: other sites cannot use the form, because a browser names the origin of a request.
func TestOtherSitesCannotUseTheForm(t *testing.T) {
	l := limiter(t, engine.TokenBucket(engine.Per(1, time.Hour), 3))
	a := start(t, Config{Rules: func() []Rule {
		return []Rule{{Name: "login", Limiter: l, Buckets: Local(l, func(parts []string) engine.Key { return l.Key(parts[0]) }),
			Parts: []string{"user"}}}
	}})
	l.Take("bob", 2)
	const form, kind = `{"rule":"login","parts":["bob"]}`, "Content-Type: application/json"
	for _, path := range []string{"/key/peek", "/key/reset"} {
		url := "http://localhost:1" + path
		assert.Equal(t, 403, request(a, "POST", url, form, kind, "Sec-Fetch-Site: cross-site").Code)
		assert.Equal(t, 403, request(a, "POST", url, form, kind, "Sec-Fetch-Site: same-site").Code)
		assert.Equal(t, 403, request(a, "POST", url, form, kind, "Origin: http://evil.example").Code)
		assert.Equal(t, 403, request(a, "POST", url, form, kind, "Origin: http://localhost:2").Code)
		assert.Equal(t, 403, request(a, "POST", "http://evil.example"+path, form, kind).Code)
		assert.Equal(t, 415, request(a, "POST", url, form, "Content-Type: text/plain").Code)
		assert.Equal(t, 415, request(a, "POST", url, form).Code)
		assert.Equal(t, 405, request(a, "GET", url, "").Code)
		assert.Equal(t, 413, request(a, "POST", url, `{"rule":"`+strings.Repeat("x", maxForm), kind).Code)
	}
	assert.Equal(t, uint64(1), l.Peek(l.Key("bob"), 1).Remaining, "nothing was reset")
	assert.Equal(t, 200, request(a, "POST", "http://localhost:1/key/reset", form, kind, "Origin: http://localhost:1").Code)
	assert.Equal(t, uint64(3), l.Peek(l.Key("bob"), 1).Remaining)
}

func TestThePageIsOneOfItsOwn(t *testing.T) {
	a := start(t, Config{Rules: none})
	w := request(a, "GET", "http://localhost/", "")
	require.Equal(t, 200, w.Code)
	assert.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	assert.Contains(t, w.Header().Get("Content-Security-Policy"),
		"default-src 'none'; script-src 'self'; style-src 'self'")
	assert.NotContains(t, w.Header().Get("Content-Security-Policy"), "unsafe")
	assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	assert.NotContains(t, w.Body.String(), "http://")
	assert.NotContains(t, w.Body.String(), "https://")
	files, err := pageFiles.ReadDir("page")
	require.NoError(t, err)
	for _, f := range files {
		assert.Equal(t, 200, request(a, "GET", "http://localhost/"+f.Name(), "").Code, f.Name())
	}
	for _, path := range []string{"/nothing", "/%2e%2e", "/page/page.js", "/debug/pprof/"} {
		assert.Contains(t, []int{400, 404}, request(a, "GET", "http://localhost"+path, "").Code, path)
	}
}
