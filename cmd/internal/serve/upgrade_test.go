package serve

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/weir-go/weir/internal/freeport"
)

// h2cApp is an application that notes its requests.
const h2cApp = `
seen = []

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = b"ok"
    if scope["path"] == "/seen":
        body = " ".join(seen).encode()
    else:
        seen.append(scope["method"] + scope["path"])
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
`

func startHypercorn(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("hypercorn")
	if err != nil {
		t.Skip("hypercorn is not installed: apt-get install --no-install-recommends python3-hypercorn")
	}
	dir, address := t.TempDir(), freeport.Address(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "app.py"), []byte(h2cApp), 0o600))
	cmd := exec.Command(program, "--bind", address, "app:app")
	cmd.Dir = dir
	startProgram(t, address, cmd)
	return address
}

// smuggle asks to change to h2c. It then sends POST /login over h2c, as often as logins says. It returns the status of
// the first answer, and how many of the POST requests were answered.
func smuggle(t *testing.T, address, upgrade string, logins int) (status, answered int) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"+upgrade+
		"HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return resp.StatusCode, 0
	}
	_, err = io.WriteString(conn, http2.ClientPreface)
	require.NoError(t, err)
	frames := http2.NewFramer(conn, in)
	require.NoError(t, frames.WriteSettings())
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := range logins {
		block.Reset()
		for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "x"}, {":path", "/login"}} {
			require.NoError(t, encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
		}
		require.NoError(t, frames.WriteHeaders(http2.HeadersFrameParam{
			StreamID: uint32(3 + 2*i), BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true,
		}))
	}
	for answered < logins {
		f, err := frames.ReadFrame()
		require.NoError(t, err)
		if h, is := f.(*http2.HeadersFrame); is && h.StreamID > 1 {
			answered++
		}
	}
	return resp.StatusCode, answered
}

// TestNoTunnelPastTheLimits: an admitted request with Upgrade: h2c opens no tunnel. Such a tunnel would carry any
// number of requests past all limits.
func TestNoTunnelPastTheLimits(t *testing.T) {
	upstream := startHypercorn(t)
	status, answered := smuggle(t, upstream, "Upgrade: h2c\r\n", 9)
	require.Equal(t, []int{101, 9}, []int{status, answered}, "this upstream can be asked")
	for _, upgrade := range []string{
		"Upgrade: h2c\r\n", "Upgrade: H2C\r\n", "Upgrade: websocket, h2c\r\n", "Upgrade: h2c, websocket\r\n",
		"Upgrade: websocket\r\nUpgrade: h2c\r\n", "Upgrade: h2c\r\nUpgrade: websocket\r\n", "upgrade:\th2c \r\n",
		"Upgrade: h2c/1\r\n", "Upgrade: \x80\r\n", "",
	} {
		s := start(t, "upstream: http://"+upstream+"\n"+one)
		status, answered := smuggle(t, s.address(), upgrade, 9)
		assert.Equal(t, []int{200, 0}, []int{status, answered}, upgrade)
		s.stop()
		assert.Contains(t, s.log.String(), "requests=1 allowed=1 refused=0 upstream_failures=0", upgrade)
	}
	resp, err := http.Get("http://" + upstream + "/seen")
	require.NoError(t, err)
	defer resp.Body.Close()
	seen, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, 9, bytes.Count(seen, []byte("POST/login")), "those of the first test alone")
	http.DefaultClient.CloseIdleConnections()
}

// TestAnUpgradeThatWasNotAskedFor: an upstream changes the protocol although the client did not ask for it. This is a
// failure of the upstream, and opens no tunnel.
func TestAnUpgradeThatWasNotAskedFor(t *testing.T) {
	s := start(t, "upstream: "+newUpstream(t, upgradeUpstream)+"\n"+one)
	assert.Equal(t, 502, s.get("/", "Connection: Upgrade", "Upgrade: h2c").status)
	for _, request := range []string{
		"POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\nx",
		"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n",
	} {
		resp, err := http.ReadResponse(bufio.NewReader(s.dial(request)), nil)
		require.NoError(t, err)
		assert.Equal(t, 502, resp.StatusCode, request)
	}
}

// TestEitherEndMayEndItsHalf: when a client has finished sending, it still gets what the server sends.
func TestEitherEndMayEndItsHalf(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		said, err := io.ReadAll(buffered)
		assert.NoError(t, err)
		_, _ = conn.Write(append([]byte("you said "), said...))
	})
	s := start(t, "upstream: "+upstream+"\n"+one)
	conn := s.dial("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	from := bufio.NewReader(conn)
	resp, err := http.ReadResponse(from, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	_, err = io.WriteString(conn, "hello")
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	answer, err := io.ReadAll(from)
	require.NoError(t, err)
	assert.Equal(t, "you said hello", string(answer))
}

// TestAnUpstreamThatHasNoWebSockets: an upstream cannot have WebSockets. A request for one reaches it without the
// fields that ask for it. With these fields, the transport would return an error, and a client could make the server
// count as down.
func TestAnUpstreamThatHasNoWebSockets(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+r.Header.Get("Upgrade"))
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	s := start(t, "upstream: {url: \""+server.URL+"\", h2c: true}\n"+one)
	got := s.get("/", "Connection: Upgrade", "Upgrade: websocket")
	assert.Equal(t, "HTTP/2.0", got.body)
	assert.NotContains(t, s.log.String(), "upstream failed")
}
