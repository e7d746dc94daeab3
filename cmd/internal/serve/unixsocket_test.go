//go:build unix

package serve

import (
	"bufio"
	"context"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/weir-go/weir/cmd/internal/listen"
)

// socketDir returns a folder whose path is short enough for Unix sockets.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func askSocket(t *testing.T, socket, path string, header ...string) (int, string) {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// TestListenOnUnixSockets: the peer of a Unix socket counts as 127.0.0.1, both as a client and as a trusted proxy.
func TestListenOnUnixSockets(t *testing.T) {
	dir := socketDir(t)
	listen, decide, admin := filepath.Join(dir, "l"), filepath.Join(dir, "d"), filepath.Join(dir, "a")
	file := "listen: [{address: \"unix:" + listen + "\", mode: 666}, 127.0.0.1:0]\ndecide: \"unix:" + decide +
		"\"\nadmin: {address: \"unix:" + admin + "\", mode: 0600}\ntrusted_proxies: 127.0.0.1\n" +
		"rules: [{name: a, rate: 1/h, burst: 1}]\n"
	s := start(t, file)
	mode := func(path string) fs.FileMode {
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.Mode()
	}
	assert.Equal(t, fs.ModeSocket|0o666, mode(listen))
	assert.Equal(t, fs.ModeSocket|0o660, mode(decide))
	assert.Equal(t, fs.ModeSocket|0o600, mode(admin))
	assert.Contains(t, s.log.String(), "unix:"+listen)

	for _, want := range []int{200, 429} {
		status, _ := askSocket(t, listen, "/", "X-Forwarded-For", "203.0.113.1")
		assert.Equal(t, want, status)
	}
	status, body := askSocket(t, listen, "/", "X-Forwarded-For", "203.0.113.2")
	assert.Equal(t, 200, status)
	assert.Contains(t, body, "203.0.113.2")
	status, _ = askSocket(t, decide, "/decide", "X-Forwarded-For", "203.0.113.1", "X-Forwarded-Uri", "/",
		"X-Forwarded-Method", "GET")
	assert.Equal(t, 429, status)
	_, body = askSocket(t, admin, "/metrics")
	assert.Contains(t, body, "weir_connections")

	s.change(strings.Replace(strings.Replace(file, "0600", "0660", 1), "trusted_proxies: 127.0.0.1\n",
		"trusted_proxies: 10.0.0.0/8\n", 1))
	assert.Equal(t, fs.ModeSocket|0o660, mode(admin), "a reload changes the mode")
	status, body = askSocket(t, listen, "/", "X-Forwarded-For", "203.0.113.9")
	assert.Equal(t, 200, status)
	assert.Contains(t, body, "client  127.0.0.1\n", "not trusted")

	s.change("listen: 127.0.0.1:0\n" + one)
	assert.NoFileExists(t, decide)
	s.change(file)
	s.stop()
	for _, path := range []string{listen, decide, admin} {
		assert.NoFileExists(t, path)
		assert.NoFileExists(t, path+"~")
	}
}

// TestEveryListenerHasABound: a client cannot use up all files through the administrator's listener. It also cannot do
// so through the listener for decisions.
func TestEveryListenerHasABound(t *testing.T) {
	s := start(t, "decide: 127.0.0.1:0\ntrusted_proxies: 127.0.0.1\n"+administered+one)
	for role, path := range map[listen.Role]string{administrators: "/healthz", decisions: "/decide"} {
		limit := s.connections[role]
		require.Positive(t, limit.Max(), role)
		limit.Bound(2, 0)
		address := strings.TrimSuffix(strings.TrimPrefix(s.urlOf(role), "http://"), "/")
		var got []int
		for range 3 {
			conn, err := net.Dial("tcp", address)
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Uri: /\r\n"+
				"X-Forwarded-Method: GET\r\n\r\n")
			require.NoError(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			got = append(got, resp.StatusCode)
		}
		assert.Equal(t, []int{200, 200, 200}, got, role)
		assert.LessOrEqual(t, limit.Open(), int64(2), "the third has taken the room of one that was idle")
	}
}

// TestRedisOnAUnixSocket: Redis clients can use a Unix socket, and a reload can change its mode.
func TestRedisOnAUnixSocket(t *testing.T) {
	path := filepath.Join(socketDir(t), "r")
	s := startRedis(t, "redis: {address: \"unix:"+path+"\", mode: 600, max_keys: 100}\n")
	assert.Equal(t, first, says(t, dialRedis(t, path), takes))
	s.rewrite("redis: {address: \"unix:" + path + "\", mode: 666, max_keys: 100}\n")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o666), info.Mode().Perm())
	assert.Equal(t, second, says(t, dialRedis(t, path), takes))
}

func TestAnUpstreamOnAUnixSocket(t *testing.T) {
	socket := filepath.Join(socketDir(t), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host+r.URL.Path) })}}
	server.Start()
	t.Cleanup(server.Close)
	s := start(t, administered+"upstream: \"unix:"+socket+"\""+many)
	assert.Equal(t, "localhost/a", s.get("/a").body)
	_, metrics := s.askAdmin("/metrics")
	assert.Contains(t, metrics, `weir_upstream_up{upstream="unix:`+socket+`"} 1`)
}
