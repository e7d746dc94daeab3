package serve

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (r *running) raw(line string) int {
	r.t.Helper()
	conn := r.dial(line + " HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(r.t, err, line)
	resp.Body.Close()
	return resp.StatusCode
}

// TestNoWayAroundAMethod: a rule for a method also applies if a client writes the method in another case, because many
// servers ignore case.
func TestNoWayAroundAMethod(t *testing.T) {
	s := start(t, `rules:
  - {name: login, rate: 1/h, burst: 1, match: {method: POST}}
  - {name: read, rate: 1/h, burst: 1, match: {method: GET}}
  - {name: each, rate: 1/h, burst: 1, match: {method: [PUT, PATCH]}, key: method}`)
	assert.Equal(t, 200, s.raw("POST /login"))
	for _, method := range []string{"POST", "post", "Post", "POSt"} {
		assert.Equal(t, 429, s.raw(method+" /login"), method)
	}
	assert.Equal(t, 200, s.raw("head /"))
	assert.Equal(t, 429, s.raw("Get /"))
	assert.Equal(t, 200, s.raw("put /"))
	assert.Equal(t, 429, s.raw("PUT /"), "one key")
	assert.Equal(t, 200, s.raw("patch /"), "another key")
}

// TestNoWayAroundAValueByBlanks: over HTTP/2, a client can send blanks around a value. Rules ignore them, because an
// upstream over HTTP/1 does not get them.
func TestNoWayAroundAValueByBlanks(t *testing.T) {
	var seen []string
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) { seen = append(seen, r.Header.Get("X-Env")) })
	s := start(t, "listen: {address: \"127.0.0.1:0\", h2c: true}\nupstream: "+upstream+`
rules:
  - {name: prod, match: {header: {X-Env: prod}}, rate: 0}
  - {name: plans, rate: 1/h, burst: 100, tiers: {header: X-Plan, values: {suspended: {rate: 0}}}}`)
	ask := func(field, value string) string {
		frames, _ := s.stream(true, ":method", "GET", ":scheme", "http", ":authority", "a.example", ":path", "/", field, value)
		return statusOf(t, frames)
	}
	assert.Equal(t, "200", ask("x-env", " test\t"))
	assert.Equal(t, []string{"test"}, seen, "without the blanks")
	for _, value := range []string{"prod", " prod", "prod ", "\tprod", "Prod"} {
		assert.Equal(t, "429", ask("x-env", value), "%q", value)
	}
	for _, value := range []string{"suspended", " suspended", "suspended\t"} {
		assert.Equal(t, "429", ask("x-plan", value), "%q", value)
	}
}

// TestOptionsOfTheServerCount: rules count "OPTIONS *", and weir itself answers it.
func TestOptionsOfTheServerCount(t *testing.T) {
	asked := 0
	s := start(t, "listen: {address: \"127.0.0.1:0\", h2c: true}\nupstream: "+
		newUpstream(t, func(http.ResponseWriter, *http.Request) { asked++ })+
		"\nrules: [{name: a, rate: 1/h, burst: 3}, {name: no, rate: 0, match: {path: /login}}]")
	for range 2 {
		assert.Equal(t, 200, s.raw("OPTIONS *"))
	}
	options := func() string {
		frames, _ := s.stream(true, ":method", "OPTIONS", ":scheme", "http", ":authority", "a.example", ":path", "*")
		return statusOf(t, frames)
	}
	assert.Equal(t, "200", options())
	assert.Equal(t, "429", options())
	assert.Equal(t, 429, s.raw("OPTIONS *"))
	assert.Equal(t, 400, s.raw("GET *"))
	assert.Zero(t, asked)
}

// TestConnectIsRefused: weir refuses CONNECT, because it would open a tunnel to any server.
func TestConnectIsRefused(t *testing.T) {
	reached := false
	s := start(t, "upstream: "+newUpstream(t, func(http.ResponseWriter, *http.Request) { reached = true })+"\n"+one)
	for _, line := range []string{"CONNECT a.example:443", "CONNECT /x", "connect /x", "Connect /x"} {
		assert.Equal(t, http.StatusMethodNotAllowed, s.raw(line), line)
	}
	assert.False(t, reached)
}

// TestNoWayAroundAPath: the rule in the README applies however a client writes the path. The same is true of a rule
// with a name in its pattern.
func TestNoWayAroundAPath(t *testing.T) {
	s := start(t, `rules:
  - {name: login, rate: 1/h, burst: 1, key: [ip, path], match: {path: /login}}
  - {name: search, rate: 1/h, burst: 1, match: {path: "/users/{id}/search"}}`)
	assert.Equal(t, 200, s.raw("GET /login"))
	for _, path := range []string{"/login/", "/LOGIN", "/login;x", "/login%2f", "/%6cogin", "//login", "/x/..;/login"} {
		assert.Equal(t, 429, s.raw("GET "+path), path)
	}
	assert.Equal(t, 200, s.raw("GET /users/1/search"))
	for _, path := range []string{"/users/1%2f2/search", "/users/%2e%2e/search", "/users/%2e/search",
		"/USERS/2/search/"} {
		assert.Equal(t, 429, s.raw("GET "+path), path)
	}
}

// TestNoWayAroundAKey: if a server reads two spellings of a key as the same, both have one bucket. This is tested for
// the proxy and for /decide. weir does not refuse spellings that programs use.
func TestNoWayAroundAKey(t *testing.T) {
	const rules = `
rules:
  - {name: cookie, rate: 1/h, burst: 1, key: cookie:sid or none}
  - {name: query, rate: 1/h, burst: 1, key: query:k or none}
  - {name: header, rate: 1/h, burst: 1, key: header:X-Api-Key or none}
  - {name: path, rate: 1/h, burst: 2, key: [ip, path], match: {method: PUT}}
  - {name: delete, rate: 0, match: {method: DELETE}}
  - {name: method, rate: 1/h, burst: 1, key: method, match: {path: /method}}`
	s := start(t, rules)
	_, ask := startDecide(t, rules)
	direct := func(method, uri string, header ...string) int {
		conn := s.dial(method + " " + uri + " HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n" +
			strings.Join(append(header, "\r\n"), "\r\n"))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	described := func(method, uri string, header ...string) int {
		return ask("/decide", append(header, "X-Forwarded-Method: "+method, "X-Forwarded-Uri: "+uri)...).StatusCode
	}
	for name, send := range map[string]func(method, uri string, header ...string) int{"serve": direct, "decide": described} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, 200, send("GET", "/", "Cookie: sid=V"))
			for _, value := range []string{`j:"V"`, `j: "V"`, `j:	"\u0056"`, "j%3A%20%22V%22", `"j:\"V\""`, `"V"`, "%56", "V\xa0"} {
				assert.Equal(t, 429, send("GET", "/", "Cookie: sid="+value), value)
			}
			for _, value := range []string{`j:{"a":1,"b":2}`, "j%3A%7B%22a%22%3A1%2C%22b%22%3A3%7D", "s%3Aabc.d%2Fe%2Bf", "a+b%2Fc"} {
				assert.Equal(t, 200, send("GET", "/", "Cookie: sid="+value), value)
			}
			assert.Equal(t, 200, send("GET", "/?k=V"))
			for _, value := range []string{"V+", "+V", "%56", "V%20", "V%09", "V%01+", "V%C2%A0"} {
				assert.Equal(t, 429, send("GET", "/?k="+value), value)
			}
			assert.Equal(t, 400, send("GET", "/?k=V%00"))
			assert.Equal(t, 200, send("GET", "/", "X-API-Key: V"))
			for _, value := range []string{"V\xa0", "V\x85", "\u3000V"} {
				assert.Equal(t, 429, send("GET", "/", "X-API-Key: "+value), "%q", value)
			}
			passed := 0
			for _, uri := range []string{"/a", "/a", "/a", "/a%3f1", "/a%3f2", "/a%3f3", "/a%231", "/a%232", "//a", "/a;b", "/a%00"} {
				if send("PUT", uri) == 200 {
					passed++
				}
			}
			assert.Equal(t, 4, passed, "two keys")
			for _, field := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
				assert.Equal(t, 429, send("POST", "/", field+": DELETE"), field)
				assert.Equal(t, 429, send("POST", "/", field+": delete"), field)
			}
			assert.Equal(t, 200, send("POST", "/", "X-HTTP-Method-Override: PATCH"))
			passed = 0
			for _, method := range []string{"PUT", "PATCH", "OPTIONS", "GET", "post", "POST"} {
				if send("POST", "/method", "X-HTTP-Method-Override: "+method) == 200 {
					passed++
				}
			}
			assert.Equal(t, 2, passed, "two keys")
		})
	}
}

func TestAmbiguousPathsAreRefused(t *testing.T) {
	const strict = "ambiguous_paths: refuse\n"
	s := start(t, strict+one)
	assert.Equal(t, 200, s.raw("GET /a/b/"))
	assert.Equal(t, 400, s.raw("GET /a%2fb"))
	assert.Contains(t, s.get("/a;b").body,
		"The request is ambiguous: servers read its path in several ways, because of a semicolon")
	s.change(one)
	assert.Equal(t, 200, s.raw("GET /a%2fb"))

	_, ask := startDecide(t, strict+one)
	for uri, want := range map[string]int{"/a/%2e%2e/b": 400, "/a/b": 200} {
		assert.Equal(t, want, ask("/decide", "X-Forwarded-Method: GET", "X-Forwarded-Uri: "+uri).StatusCode, uri)
	}
	assert.Equal(t, 403, ask("/decide?status=403", "X-Forwarded-Method: GET", "X-Forwarded-Uri: /a;b").StatusCode,
		"nginx")
}

// TestExemptions: no limit applies to an exempt request. A rule does not apply to requests that it does not match.
func TestExemptions(t *testing.T) {
	s := start(t, `exempt: {path: /health}
rules:
  - {name: all, rate: 1/h, burst: 2, key: global, match: {not: {path: /static/, method: GET}}}
  - {name: token, rate: 1/h, burst: 1, key: query:token or none}`)
	for range 5 {
		assert.Equal(t, 200, s.raw("GET /health"))
		assert.Equal(t, 200, s.raw("GET /static/x"))
	}
	assert.Equal(t, 200, s.raw("GET /?token=a"))
	assert.Equal(t, 200, s.raw("GET /health?token=a"), "from every rule")
	assert.Equal(t, 400, s.raw("GET /?token=b&token=c"), "two values")
	assert.Equal(t, 200, s.raw("GET /static/%2e%2e/login"), "the second of two")
	for _, line := range []string{"GET /static/../login", "POST /static/x", "GET /HEALTH", "GET /health;/../login",
		"GET //health"} {
		assert.Equal(t, 429, s.raw(line), line)
	}
}
