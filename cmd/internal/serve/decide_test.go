package serve

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// startDecide starts a server and returns a function that asks for a decision.
func startDecide(t *testing.T, rules string) (*running, func(path string, header ...string) *http.Response) {
	s := start(t, "decide: 127.0.0.1:0\ntrusted_proxies: 127.0.0.1\n"+rules)
	return s, func(path string, header ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(s.urlOf(decisions), "/")+path, nil)
		require.NoError(t, err)
		for _, line := range header {
			name, value, _ := strings.Cut(line, ": ")
			req.Header.Add(name, value)
		}
		resp, err := s.client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp
	}
}

// These are the fields by which Traefik and Caddy describe a request, and those that nginx usually sends.
var (
	traefik = []string{"X-Forwarded-Method: POST", "X-Forwarded-Uri: /login?x=1", "X-Forwarded-Host: api.example.com",
		"X-Forwarded-Proto: https"}
	nginx = []string{"X-Original-Method: POST", "X-Original-URI: /login?x=1", "X-Forwarded-Host: api.example.com"}
)

func TestDecideHoldsTheForwardedRequestAgainstTheRules(t *testing.T) {
	for name, header := range map[string][]string{"traefik": traefik, "nginx": nginx} {
		t.Run(name, func(t *testing.T) {
			s, ask := startDecide(t, "rules: [{name: a, rate: 1/h, burst: 1, "+
				"match: {path: /login, method: POST, host: api.example.com}}]")
			assert.Empty(t, s.URL(), "without listen there is none for clients")
			from := func(client string) []string { return append([]string{"X-Forwarded-For: " + client}, header...) }
			got := ask("/decide", from("203.0.113.1")...)
			assert.Equal(t, 200, got.StatusCode)
			assert.Equal(t, `"a";r=0;t=3600`, got.Header.Get("RateLimit"))
			got = ask("/decide", from("203.0.113.1")...)
			assert.Equal(t, 429, got.StatusCode)
			assert.Equal(t, "3600", got.Header.Get("Retry-After"))
			got = ask("/decide?status=403", from("203.0.113.1")...)
			assert.Equal(t, 403, got.StatusCode)
			assert.Equal(t, "3600", got.Header.Get("Retry-After"))
			assert.Equal(t, 200, ask("/decide", from("203.0.113.2")...).StatusCode, "another client")
			assert.Equal(t, 200, ask("/decide", "X-Forwarded-Method: GET", "X-Forwarded-Uri: /login",
				"X-Forwarded-Host: api.example.com").StatusCode, "no rule is for it")
			s.stop()
			assert.Contains(t, s.log.String(), "msg=stopped requests=5 allowed=3 refused=2")
		})
	}
}

func TestDecideRefusesWhatDescribesNoRequest(t *testing.T) {
	s, ask := startDecide(t, one)
	for want, c := range map[string][]string{
		"no X-Forwarded-Uri":           {"X-Forwarded-Method: GET"},
		"no X-Forwarded-Method":        {"X-Forwarded-Uri: /"},
		"differ or occur twice":        append([]string{"X-Original-Uri: /other"}, traefik...),
		"or occur twice":               append([]string{"X-Forwarded-Method: GET"}, traefik...),
		"want the path and query":      {"X-Forwarded-Method: GET", "X-Forwarded-Uri: login"},
		`want a method, such as GET`:   {"X-Forwarded-Method: G T", "X-Forwarded-Uri: /"},
		`X-Forwarded-Uri \"http://a\"`: {"X-Forwarded-Method: GET", "X-Forwarded-Uri: http://a"},
	} {
		assert.Equal(t, 400, ask("/decide", c...).StatusCode, want)
		assert.Contains(t, strings.ReplaceAll(s.log.String(), `\\\"`, `\"`), want)
	}
	s.change("decide: 127.0.0.1:0\ntrusted_proxies: 127.0.0.1\n" +
		"rules: [{name: a, rate: 1/h, match: {host: api.example.com}}]")
	for want, c := range map[string][]string{
		"no X-Forwarded-Host": {"X-Forwarded-Method: GET", "X-Forwarded-Uri: /"},
		"want one host":       append([]string{"X-Forwarded-Host: other"}, traefik...),
		`other, api`:          {"X-Forwarded-Method: GET", "X-Forwarded-Uri: /", "X-Forwarded-Host: other, api.example.com"},
	} {
		assert.Equal(t, 400, ask("/decide", c...).StatusCode, want)
		assert.Contains(t, s.log.String(), want)
	}
	for _, status := range []string{"200", "999", "x"} {
		assert.Equal(t, 400, ask("/decide?status="+status, traefik...).StatusCode)
	}
	assert.Equal(t, 404, ask("/", traefik...).StatusCode)
}

// TestDecideRefusesWhatTheClientMade: for /login#x, nginx chooses the location of /login, but passes on the complete
// target. So weir must refuse the target. It must use a status that nginx passes on to the client, because nginx
// replaces other statuses by 500.
func TestDecideRefusesWhatTheClientMade(t *testing.T) {
	s, ask := startDecide(t, "rules: [{name: a, rate: 1/h, burst: 1, match: {path: /login}}]")
	for _, uri := range []string{"/login#x", "/login#", "/x#/../login", "/login?a#b", "/#", "/login%", "/%zz"} {
		got := ask("/decide?status=403", "X-Forwarded-Method: GET", "X-Forwarded-Uri: "+uri)
		assert.Equal(t, 403, got.StatusCode, uri)
		assert.Equal(t, "400", got.Header.Get("Weir-Status"), uri)
		assert.Equal(t, 400, ask("/decide", "X-Forwarded-Method: GET", "X-Original-Uri: "+uri).StatusCode, uri)
	}
	for _, host := range []string{"a b", "a:80:80", "[::1", "a/b"} {
		got := ask("/decide?status=403", "X-Forwarded-Method: GET", "X-Forwarded-Uri: /login", "X-Forwarded-Host: "+host)
		assert.Equal(t, "400", got.Header.Get("Weir-Status"), host)
	}
	assert.NotContains(t, s.log.String(), "question cannot be decided", "the proxy is not to blame")
	assert.Equal(t, 200, ask("/decide", "X-Forwarded-Method: GET", "X-Forwarded-Uri: /login").StatusCode)
	assert.Equal(t, 429, ask("/decide", "X-Forwarded-Method: GET", "X-Forwarded-Uri: /login?%zz").StatusCode)
}

// TestDecideRefusesATargetThatEndsInABlankOfLatin1: Python's http.server drops the bytes 85 and A0 at the end of a
// target. With them, a client could reach /login by a path that rules do not recognize.
func TestDecideRefusesATargetThatEndsInABlankOfLatin1(t *testing.T) {
	_, ask := startDecide(t, "rules: [{name: login, rate: 0, match: {path: /login}}]")
	for uri, want := range map[string]int{
		"/login\xa0": 400, "/login\x85": 400, "/login\xa0\x85": 400, "/login/\xa0": 400, "/login\u00e9\xa0": 400, "/\xa0": 400,
		"/login": 429, "/login?\xa0": 429, "/login?\x85": 429,
		"/voil\u00e0": 200, "/other\u2026": 200, "/other%a0": 200, "/other?to=\xa0": 200, "/other?to=voil\u00e0": 200,
	} {
		assert.Equal(t, want, ask("/decide", "X-Forwarded-Method: GET", "X-Forwarded-Uri: "+uri).StatusCode, "%q", uri)
	}
}

// TestEveryRefusalHasTheStatusThatTheProxyWants: if a store is lost, a limit with on_loss: closed refuses with 503.
// nginx would not treat this status as a refusal.
func TestEveryRefusalHasTheStatusThatTheProxyWants(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		answer := httptest.NewRecorder()
		(&otherStatus{answer, http.StatusForbidden}).WriteHeader(status)
		assert.Equal(t, http.StatusForbidden, answer.Code)
		answer = httptest.NewRecorder()
		(&otherStatus{answer, 0}).WriteHeader(status)
		assert.Equal(t, status, answer.Code)
	}
}
