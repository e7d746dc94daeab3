package serve

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// stream opens an HTTP/2 connection, and sends the header of one request. It does not change the fields.
func (r *running) stream(end bool, fields ...string) (*http2.Framer, io.Closer) {
	r.t.Helper()
	return r.streamWith(nil, end, fields...)
}

// streamWith does the same as stream, but the client has the given HTTP/2 settings.
func (r *running) streamWith(settings []http2.Setting, end bool, fields ...string) (*http2.Framer, io.Closer) {
	r.t.Helper()
	conn := r.dial(http2.ClientPreface)
	frames := http2.NewFramer(conn, conn)
	require.NoError(r.t, frames.WriteSettings(settings...))
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		require.NoError(r.t, encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}))
	}
	require.NoError(r.t, frames.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: end,
	}))
	return frames, conn
}

// statusOf reads frames until the header of the answer, and returns the status.
func statusOf(t *testing.T, frames *http2.Framer) string {
	t.Helper()
	frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		frame, err := frames.ReadFrame()
		require.NoError(t, err)
		if header, is := frame.(*http2.MetaHeadersFrame); is {
			return header.PseudoValue("status")
		}
	}
}

// TestATargetWithoutAPathIsRefused: if a target has no path, the rules and the upstream might use different paths.
func TestATargetWithoutAPathIsRefused(t *testing.T) {
	var asked []string
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.RequestURI) })
	const login = "rules: [{name: login, rate: 1/h, burst: 1, match: {path: /login}}]\n"
	s := start(t, "listen: {address: \"127.0.0.1:0\", h2c: true}\nupstream: "+upstream+"\n"+login)
	assert.Equal(t, 200, s.raw("GET /login"))
	for _, target := range []string{"http:http://h/login", "x:/login", "http:login", "http:@/login", "http:%2flogin",
		"http:*", "http:?/login", "*", "/login#x", "/#/login", "/?a#b"} {
		assert.Contains(t, []int{400, 429}, s.raw("GET "+target), target)
		frames, _ := s.stream(true, ":method", "GET", ":scheme", "http", ":authority", "a.example", ":path", target)
		assert.Contains(t, []string{"400", "429"}, statusOf(t, frames), "HTTP/2: %s", target)
	}
	assert.Equal(t, []string{"/login"}, asked)
	assert.Equal(t, 429, s.raw("GET http://a.example/login"), "with the host")
	assert.Equal(t, 200, s.raw("GET http://a.example"), "an empty path is the root")
	assert.Equal(t, 200, s.raw("GET /x:y"))
	assert.Equal(t, []string{"/login", "/", "/x:y"}, asked)

	// Without h2c, the preface of HTTP/2 is an ordinary request.
	plain := start(t, "upstream: "+upstream+"\n"+one)
	conn := plain.dial("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	text := make([]byte, len("HTTP/1.1 400"))
	_, err := io.ReadFull(conn, text)
	require.NoError(t, err)
	assert.Equal(t, "400", string(text[9:]))
	assert.Len(t, asked, 3)

	_, ask := startDecide(t, login)
	for _, target := range []string{"http:http://h/login", "x:y", "*", "http://a"} {
		assert.Equal(t, 400, ask("/decide", "X-Forwarded-Method: GET", "X-Forwarded-Uri: "+target).StatusCode, target)
	}
}

// TestNoRequestLeavesTheBasePath: no request reaches a path outside of the upstream's base path, however a server reads
// the path. The upstream gets the path that the rules have checked.
func TestNoRequestLeavesTheBasePath(t *testing.T) {
	var asked []string
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.RequestURI) })
	const login = "rules: [{name: login, rate: 1/h, burst: 2, match: {path: /login}}]\n"
	_, ask := startDecide(t, login)
	for _, file := range []string{
		"upstream: " + upstream + "/app\n",
		"upstream: " + upstream + "\n",
		"upstream: {url: \"" + upstream + "/app\", keep_host: true}\n",
		"routes: [{match: {host: [\"127.0.0.1\", a.example]}, upstream: " + upstream + "/app}]\n",
	} {
		s := start(t, "listen: {address: \"127.0.0.1:0\", h2c: true}\n"+file+login)
		for _, target := range []string{"/../app/login", "/x/../../app/login", "/%2e%2e/app/login", "/..%2fapp/login",
			"/..%5capp/login", "/..;/app/login", "//../app/login", "/a%2f..%2f../app/login", "/%252e%252e/app/login", "/..",
			"/%c0%ae%c0%ae/app/login", "http://a.example/../app/login"} {
			assert.Equal(t, 400, s.raw("GET "+target), target)
			frames, _ := s.stream(true, ":method", "GET", ":scheme", "http", ":authority", "a.example", ":path", target)
			assert.Equal(t, "400", statusOf(t, frames), "HTTP/2: %s", target)
			assert.Equal(t, 400, ask("/decide", "X-Forwarded-Method: GET", "X-Forwarded-Uri: "+target).StatusCode, target)
		}
		assert.Empty(t, asked)
		assert.Equal(t, 200, s.raw("GET /x/../login"))
		assert.Equal(t, 200, s.raw("GET /x/%2e%2e/login"))
		assert.Equal(t, 429, s.raw("GET /login"), "the rules saw those two")
		base := ""
		if strings.Contains(file, "/app") {
			base = "/app"
		}
		assert.Equal(t, []string{base + "/x/../login", base + "/x/%2e%2e/login"}, asked)
		asked = nil
	}
}

// TestAHostThatServersReadDifferentlyIsRefused: a host is refused if servers read it in different ways, such as one
// with two colons.
func TestAHostThatServersReadDifferentlyIsRefused(t *testing.T) {
	s := start(t, "rules: [{name: a, rate: 1/h, burst: 1, match: {host: api.example.com}}]")
	_, ask := startDecide(t, "rules: [{name: a, rate: 1/h, burst: 1, match: {host: api.example.com}}]")
	described := func(host string) int {
		return ask("/decide", "X-Forwarded-Method: GET", "X-Forwarded-Uri: /", "X-Forwarded-Host: "+host).StatusCode
	}
	for _, host := range []string{"api.example.com:80:80", "api.example.com::", ":abc:1", "api.example.com:x",
		"u@api.example.com", "[api.example.com]", "[::1]80", "[::1", "api.example.com..", "api..example.com", ".example.com", ".",
		"[1.2.3.4]", "a,api.example.com", "[fe80::1%25a]"} {
		status := make([]byte, len("HTTP/1.1 400"))
		_, err := io.ReadFull(s.dial("GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"), status)
		require.NoError(t, err)
		assert.Equal(t, "HTTP/1.1 400", string(status), host)
		assert.Equal(t, 400, described(host), host)
	}
	for _, host := range []string{"a.example", "a.example:80", "a.example:", "a_b.example.", "192.0.2.1:80", "[::1]",
		"[2001:db8::1]:443"} {
		assert.Equal(t, 200, s.get("/", "Host: "+host).status, host)
		assert.Equal(t, 200, described(host), host)
	}
}

// TestARequestWithoutAHost: with keep_host, a request without a host is not passed on, because net/http would send the
// host of the URL. That could be the host of a rule that the request does not meet.
func TestARequestWithoutAHost(t *testing.T) {
	passed := 0
	upstream := newUpstream(t, func(http.ResponseWriter, *http.Request) { passed++ })
	host, _, _ := net.SplitHostPort(strings.TrimPrefix(upstream, "http://"))
	for keepHost, want := range map[string]int{", keep_host: true": 400, "": 200} {
		passed = 0
		s := start(t, "listen: {address: \"127.0.0.1:0\", h2c: true}\nupstream: {url: \""+upstream+"\""+keepHost+"}\n"+
			"rules: [{name: login, rate: 1/h, burst: 1, match: {host: \""+host+"\"}}]\n")
		for _, request := range []string{"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n"} {
			resp, err := http.ReadResponse(bufio.NewReader(s.dial(request)), nil)
			require.NoError(t, err)
			resp.Body.Close()
			assert.Equal(t, want, resp.StatusCode, "%q%s", request, keepHost)
		}
		frames, _ := s.stream(true, ":method", "GET", ":scheme", "http", ":path", "/")
		assert.Equal(t, strconv.Itoa(want), statusOf(t, frames), "HTTP/2%s", keepHost)
		assert.Equal(t, keepHost == "", passed == 3)
		assert.Equal(t, keepHost != "", passed == 0)
	}
}
