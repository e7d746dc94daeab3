package serve

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProxyPassesRequestAndAnswer(t *testing.T) {
	seen := make(chan *http.Request, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		w.Header().Set("Content-Type", "text/x-test")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "from upstream")
	}))
	defer upstream.Close()
	s := start(t, "ip", upstream.URL+"/base")

	got := s.get("/a?b=c", "X-Forwarded-For: 203.0.113.66", "X-Mine: yes")
	assert.Equal(t, answer{http.StatusTeapot, "", "text/x-test", "from upstream"}, got)
	r := <-seen
	assert.Equal(t, "/base/a?b=c", r.URL.RequestURI())
	assert.Equal(t, "yes", r.Header.Get("X-Mine"))
	assert.Equal(t, "127.0.0.1", r.Header.Get("X-Forwarded-For"), "what the client claimed is dropped")
	assert.Equal(t, "http", r.Header.Get("X-Forwarded-Proto"))
	assert.Equal(t, strings.Trim(s.URL(), "htp:/"), r.Header.Get("X-Forwarded-Host"))
}

func TestProxyDoesNotBotherTheUpstreamWithRefusals(t *testing.T) {
	calls := make(chan struct{}, 10)
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls <- struct{}{} }))
	defer upstream.Close()
	s := start(t, "ip", upstream.URL)
	assert.Equal(t, []int{200, 200, 200, 200, 200, 429, 429}, s.statuses(7))
	assert.Len(t, calls, 5)
}

// deadURL returns the URL of a port that nobody listens on.
func deadURL(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return "http://" + l.Addr().String()
}

func TestUpstreamDownIs502AndNotARefusal(t *testing.T) {
	s := start(t, "ip", deadURL(t))
	assert.Equal(t, answer{502, "", "application/json", `{"error":"The upstream server did not answer"}` + "\n"}, s.get("/x"))
	assert.Equal(t, []int{502, 502, 502, 502, 429}, s.statuses(5), "the limit holds all the same")
	s.stop()
	assert.Contains(t, s.log.String(), `level=ERROR msg="upstream failed" method=GET path=/x`)
	assert.Contains(t, s.log.String(), "connection refused")
	assert.Contains(t, s.log.String(), "msg=stopped requests=6 allowed=5 refused=1 upstream_failures=5\n")
}

func TestUpstreamBreakingOffIsAFailure(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	}))
	defer upstream.Close()
	s := start(t, "ip", upstream.URL)
	conn, err := net.Dial("tcp", s.listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	// Whether the head came through is a matter of buffers; a whole answer did not.
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
	}
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF, "the client must notice")
	s.stop()
	assert.Contains(t, s.log.String(), "requests=1 allowed=1 refused=0 upstream_failures=1\n")
}

func TestAClientThatLeavesIsNoUpstreamFailure(t *testing.T) {
	entered, left := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done() // the proxy gave the request up
		close(left)
	}))
	defer upstream.Close()
	s := start(t, "ip", upstream.URL)
	conn, err := net.Dial("tcp", s.listener.Addr().String())
	require.NoError(t, err)
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	<-entered
	require.NoError(t, conn.Close())
	<-left
	s.stop()
	assert.Contains(t, s.log.String(), "requests=1 allowed=1 refused=0 upstream_failures=0\n")
}

func TestProxyPassesAnUpgradedConnection(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = both.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = both.Flush()
		word, _ := both.ReadString('\n')
		_, _ = both.WriteString(word)
		_ = both.Flush()
	}))
	defer upstream.Close()
	s := start(t, "ip", upstream.URL)
	conn, err := net.Dial("tcp", s.listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	_, err = io.WriteString(conn, "hello\n")
	require.NoError(t, err)
	word, err := in.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "hello\n", word)
}

func TestUpstreamRefusesWhatItCannotUse(t *testing.T) {
	for text, want := range map[string]string{
		"localhost:9000":          `upstream "localhost:9000": want a URL that begins with http:// or https://; write for example http://127.0.0.1:9000`,
		"":                        `upstream "": want a URL that begins with http://`,
		"ftp://example.org":       `upstream "ftp://example.org": want a URL that begins with http://`,
		"http://":                 `upstream "http://": the URL has no host`,
		"http://:9000":            `upstream "http://:9000": the URL has no host`,
		"http://a:b":              `upstream "http://a:b": not a URL`,
		"127.0.0.1:9000":          `upstream "127.0.0.1:9000": not a URL; write for example`,
		"http://me:secret@host/":  `upstream "http://me:xxxxx@host/": a user name and password`,
		"http://host/#top":        `a fragment (#top) is never sent`,
		"http://host/\x7fcontrol": `not a URL`,
	} {
		var u Upstream
		assert.ErrorContains(t, u.UnmarshalText([]byte(text)), want, text)
	}
}
