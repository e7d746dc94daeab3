package serve

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// http2Upstream returns the URL of an upstream with HTTP/2 without TLS, and with headers of at most 4 KiB.
func http2Upstream(t *testing.T, handler http.HandlerFunc) string {
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Config.MaxHeaderBytes = 4 << 10
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// TestAHeaderThatAnUpstreamDoesNotTake: if a header is too large for the upstream, this is the client's fault. Over
// HTTP/2, the transport knows the upstream's bound. It then returns an error and does not send the request.
func TestAHeaderThatAnUpstreamDoesNotTake(t *testing.T) {
	url := http2Upstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a") })
	s := start(t, "upstream: {url: [\""+url+"\", \""+url+"/b\"], h2c: true}"+many)
	assert.Equal(t, "aaaa", s.bodies(4), "the connections are there, and the settings have come")
	for range 4 {
		assert.Equal(t, 431, s.get("/", "X-Large: "+strings.Repeat("x", 8<<10)).status)
	}
	assert.NotContains(t, s.log.String(), "upstream failed")
	assert.Zero(t, s.upstreams.Failures())
	assert.Equal(t, "aaaa", s.bodies(4))
}

// TestAnAnswerWhoseHeaderIsTooLarge: if the header of an answer is too large, the upstream has failed. The client does
// not get the answer.
func TestAnAnswerWhoseHeaderIsTooLarge(t *testing.T) {
	value := strings.Repeat("x", 4000) // HTTP/2 sends it once, and then its number
	large := func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["X-Large"] = slices.Repeat([]string{value}, 11<<20/len(value))
	}
	for setting, url := range map[string]string{"h2c: true": http2Upstream(t, large), "h2c: false": newUpstream(t, large)} {
		s := start(t, "upstream: {url: [\""+url+"\", \""+url+"/b\"], "+setting+"}"+many)
		assert.Equal(t, "!!", s.bodies(2), setting)
		assert.EqualValues(t, 2, s.upstreams.Failures(), setting)
		assert.NotContains(t, s.log.String(), "upstream down", "connections can be made")
	}
}

// TestAMethodThatIsNone: if a method is invalid, this is the client's fault. Over HTTP/2, net/http accepts any text as
// a method.
func TestAMethodThatIsNone(t *testing.T) {
	url := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a") })
	s := start(t, "listen: {address: \"127.0.0.1:0\", h2c: true}\nupstream: {url: [\""+url+"\", \""+url+
		"/b\"]}"+many)
	for _, method := range []string{"A B", "GET /x HTTP/1.1", "GE\tT", "(", "\x80"} {
		frames, _ := s.stream(true, ":method", method, ":scheme", "http", ":authority", "a.example", ":path", "/")
		assert.Equal(t, "400", statusOf(t, frames), "%q", method)
	}
	assert.NotContains(t, s.log.String(), "upstream failed")
}

// TestABodyThatAnUpstreamDoesNotTake: if the upstream refuses a body, this is the client's fault. The upstream may
// close the connection during the body. net/http then often reports the failed write instead of the answer.
func TestABodyThatAnUpstreamDoesNotTake(t *testing.T) {
	url := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Too large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		_ = conn.Close() // unread bytes are left, so the system sends a reset
	})
	s := start(t, "upstream: {url: [\""+url+"\", \""+url+"/b\"]}"+many)
	body := strings.Repeat("x", 32<<20)
	for range 20 {
		conn := s.dial("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n")
		go io.WriteString(conn, body)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if assert.NoError(t, err) {
			assert.Contains(t, []int{413, 502}, answer.StatusCode)
		}
		_ = conn.Close()
	}
	broken := &net.OpError{Op: "write", Err: syscall.EPIPE}
	for _, err := range []error{
		broken, fmt.Errorf("it is broken: %w", &net.OpError{Op: "readfrom", Err: broken}),
		&net.OpError{Op: "read", Err: syscall.ECONNRESET},
	} {
		s.failWith(err)
		assert.Equal(t, 502, s.get("/").status)
	}
	assert.NotContains(t, s.log.String(), "upstream down")
	s.failWith(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
	assert.Equal(t, 502, s.get("/").status)
	s.waitFor("upstream down")
}

// TestAWebSocketThatAnUpstreamCannotHave: a server has only HTTP/2 over TLS, and closes the connection of a WebSocket
// request. This is the client's fault. If the server cannot be reached, it has failed.
func TestAWebSocketThatAnUpstreamCannotHave(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a") }))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP2(true)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	s := start(t, "upstream: {url: [\""+server.URL+"\", \""+server.URL+"/b\"]}"+many)
	for _, t := range s.transports.own {
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	assert.Equal(t, "aa", s.bodies(2))
	wish := func() int { return s.get("/", "Connection: Upgrade", "Upgrade: websocket").status }
	for range 4 {
		assert.Equal(t, 502, wish())
	}
	assert.NotContains(t, s.log.String(), "upstream down")
	s.failWith(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
	assert.Equal(t, 502, wish())
	s.waitFor("upstream down")
}

func (r *running) failWith(err error) {
	r.transports.by(roundTripper(func(*http.Request) (*http.Response, error) { return nil, err }))
}
