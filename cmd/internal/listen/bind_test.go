package listen

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestListenErrorsSayWhatToDo(t *testing.T) {
	// 192.0.2.1 is reserved for documentation: no machine has it.
	_, err := new(Sockets).bind(Endpoint{Address: "192.0.2.1:0"})
	assert.ErrorContains(t, err, "cannot listen on 192.0.2.1:0: this machine has no such address")
	wrap := func(e error) error { return &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", e)} }
	assert.ErrorContains(t, explain("127.0.0.1:80", "", wrap(syscall.EACCES)),
		"only the administrator may use ports below 1024")
	assert.ErrorContains(t, explain("a:80", "", &net.DNSError{Err: "no such host"}), "this machine has no such address")
	odd := errors.New("odd")
	assert.ErrorIs(t, explain("a:80", "", odd), odd)
	assert.ErrorIs(t, wrap(syscall.EACCES), fs.ErrPermission)
}

func TestURLIsOneThatCanBeTried(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1": "http://127.0.0.1:8080/",
		"0.0.0.0":   "http://localhost:8080/",
		"::":        "http://localhost:8080/",
		"::1":       "http://[::1]:8080/",
	} {
		assert.Equal(t, want, urlOf("http", &net.TCPAddr{IP: net.ParseIP(host), Port: 8080}))
	}
}

func TestAUnixSocketThatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err := new(Sockets).bind(Endpoint{Address: "unix:" + path, Mode: 0o600})
	require.EqualError(t, err,
		"cannot listen on unix:"+path+": there is a file that is not a socket: remove it, or choose another path")
	assert.FileExists(t, path)
}

// TestAListenerThatBreaksIsReported: when a listener fails, it calls the function Failed. So the program can end.
func TestAListenerThatBreaksIsReported(t *testing.T) {
	failed := make(chan error, 1)
	s := sockets(t, http.NotFoundHandler(), func(err error) { failed <- err })
	require.NoError(t, s.open[0].Close())
	assert.ErrorIs(t, <-failed, net.ErrClosed)
}

// TestAServerIsKeptForItsConnections: after a change of settings, the old server lasts as long as its connections.
func TestAServerIsKeptForItsConnections(t *testing.T) {
	s := sockets(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil)
	conn, err := net.Dial("tcp", s.open[0].Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	ask := func() {
		t.Helper()
		_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		assert.Equal(t, 200, answer.StatusCode)
	}
	ask()
	address := s.URL("clients")
	for timeout := range 3 {
		changes, err := s.Prepare([]Endpoint{{Role: "clients", Address: "127.0.0.1:0", HTTP: HTTP{IdleTimeout: time.Minute << timeout}}})
		require.NoError(t, err)
		changes.Apply(time.Second)
		ask()
		assert.Equal(t, address, s.URL("clients"))
		assert.Len(t, s.retired, 1, "a server with a connection is kept, one without is not")
	}
	assert.Equal(t, int64(1), s.config.Limits["clients"].Open())
}

// sockets returns Sockets with one socket on a free port, until the test ends.
func sockets(t *testing.T, handler http.Handler, failed func(error)) (s *Sockets) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s = New(Config{
		Base: t.Context(), Limits: map[Role]*ConnLimit{"clients": NewConnLimit("clients", FullHTTP, anyClient, log)}, Log: log,
		Protocol: func(e Endpoint, over *tls.Config) Protocol { return s.HTTP(e, handler, over) }, Failed: failed,
	})
	changes, err := s.Prepare([]Endpoint{{Role: "clients", Address: "127.0.0.1:0"}})
	require.NoError(t, err)
	changes.Apply(time.Second)
	t.Cleanup(func() { s.Shut(func(Role) bool { return true }).Drain(t.Context()) })
	return s
}
