package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/admin/browsertest"
)

// TestCORS checks which answers a page of another origin may read, and which requests it may send.
func TestCORS(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			t.Error("a preflight is passed on")
		}
		w.Header().Set("Vary", "Accept-Encoding")
		w.Header().Set("Access-Control-Allow-Origin", "https://upstream.example")
	})
	const limit = "rules: [{name: a, rate: 1/h, burst: 3}]\n"
	s := start(t, "upstream: "+upstream+"\n"+limit+
		"cors: {origins: [\"https://app.example.com\", \"https://*.example.org\"], methods: [GET, PUT], headers: [x-key], expose: [etag], credentials: true}")
	const origin, method, headers = "Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers"
	ask := func(verb string, fields ...string) *http.Response {
		r, err := http.NewRequest(verb, s.URL()+"/x", nil)
		require.NoError(t, err)
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp
	}
	get := func(resp *http.Response, name string) string { return resp.Header.Get("Access-Control-" + name) }
	for range 9 { // none of these is counted
		resp := ask("OPTIONS", origin, "https://app.example.com", method, "PUT", headers, "x-key")
		assert.Equal(t, 204, resp.StatusCode)
		assert.Equal(t, []string{"https://app.example.com", "GET, PUT", "X-Key", "true", "600", "", "Origin"}, []string{get(resp, "Allow-Origin"),
			get(resp, "Allow-Methods"), get(resp, "Allow-Headers"), get(resp, "Allow-Credentials"), get(resp, "Max-Age"),
			get(resp, "Expose-Headers"), resp.Header.Get("Vary")})
	}
	for i, from := range []string{"https://a.example.org", "https://app.example.com", "https://evil.example", "https://app.example.com"} {
		resp := ask("GET", origin, from)
		assert.Equal(t, map[bool]int{true: 200, false: 429}[i < 3], resp.StatusCode)
		assert.Contains(t, resp.Header["Vary"], "Origin")
		if i == 2 {
			assert.Equal(t, "https://upstream.example", get(resp, "Allow-Origin"), "weir says nothing about it")
			continue
		}
		assert.Equal(t, []string{from}, resp.Header["Access-Control-Allow-Origin"])
		assert.Equal(t, "true", get(resp, "Allow-Credentials"))
		assert.Equal(t, "Retry-After, RateLimit, RateLimit-Policy, Etag", get(resp, "Expose-Headers"))
		if i < 3 {
			assert.Contains(t, resp.Header["Vary"], "Accept-Encoding")
		}
	}
	resp := ask("OPTIONS", origin, "https://evil.example", method, "PUT")
	assert.Equal(t, 204, resp.StatusCode)
	assert.Empty(t, get(resp, "Allow-Origin")+get(resp, "Allow-Methods"))

	s.change("upstream: " + upstream + "\nrules: [{name: b, rate: 1/h, burst: 2}]\ncors: {origins: \"*\"}\n")
	resp = ask("OPTIONS", origin, "null", method, "POST", headers, "x-a, x-b")
	assert.Equal(t, []string{"*", "GET, HEAD, POST", "x-a, x-b", ""}, []string{get(resp, "Allow-Origin"), get(resp, "Allow-Methods"),
		get(resp, "Allow-Headers"), get(resp, "Allow-Credentials")})
	resp = ask("GET", origin, "https://x.example")
	assert.Equal(t, "*", get(resp, "Allow-Origin"))
	assert.Equal(t, []string{"Accept-Encoding"}, resp.Header["Vary"])
}

// TestAPreflightIsCountedWithoutCORS: without cors in the file, a preflight is counted and passed on.
func TestAPreflightIsCountedWithoutCORS(t *testing.T) {
	s := start(t, "rules: [{name: a, rate: 1/h, burst: 1}]")
	for _, want := range []int{200, 429} {
		r, err := http.NewRequest(http.MethodOptions, s.URL(), nil)
		require.NoError(t, err)
		r.Header.Set("Origin", "https://app.example.com")
		r.Header.Set("Access-Control-Request-Method", "DELETE")
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, want, resp.StatusCode)
	}
}

// TestABrowserReadsARefusal: in a real browser, a script of another origin reads the status and the times of a refusal.
func TestABrowserReadsARefusal(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>page</title>"))
	}))
	defer page.Close()
	from, err := url.Parse(page.URL)
	require.NoError(t, err)
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("served")) })
	for _, allowed := range []bool{true, false} {
		cors := "http://" + from.Host
		if !allowed {
			cors = "https://other.example"
		}
		s := start(t, fmt.Sprintf("upstream: %s\ncors: {origins: %q, methods: [PUT]}\nrules: [{name: a, rate: 1/h, burst: 1}]", upstream, cors))
		b := browsertest.New(t)
		b.Do(chromedp.Navigate(page.URL))
		var seen []string
		b.Do(chromedp.Evaluate(`(async () => {
			const seen = [];
			for (let i = 0; i < 2; i++) {
				try {
					const answer = await fetch("`+s.URL()+`/x", {method: "PUT", headers: {"X-Key": "a"}});
					seen.push([answer.status, answer.headers.get("Retry-After") !== null, answer.headers.get("RateLimit") !== null].join());
				} catch (e) { seen.push(e.name) }
			}
			return seen;
		})()`, &seen, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
		if allowed {
			assert.Equal(t, []string{"200,false,true", "429,true,true"}, seen)
		} else {
			assert.Equal(t, strings.Split("TypeError TypeError", " "), seen)
		}
	}
}
