package serve

import (
	"bufio"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/internal/freeport"
)

func TestPortInUseLeavesNothingBehind(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	free, taken := freeport.Address(t), other.Addr().String()
	file, err := rulefile.Parse("weir.yaml", []byte(
		"listen: ["+free+", "+taken+"]\nadmin: {address: \"127.0.0.1:0\"}\n"+one))
	require.NoError(t, err)
	_, err = Start(Config{File: file, Log: slog.New(slog.DiscardHandler)})
	assert.EqualError(t, err, "cannot listen on "+taken+": the port is in use; "+
		"stop the program that uses it, or choose another port, with --listen and --admin or in the rule file (0 takes a free one)")
	l, err := net.Listen("tcp", free)
	require.NoError(t, err, "what was bound before is free again")
	require.NoError(t, l.Close())
}

func TestAListenerThatBreaksEndsTheServer(t *testing.T) {
	file, err := rulefile.Parse("weir.yaml", []byte("listen: 127.0.0.1:0\n"+one))
	require.NoError(t, err)
	s, err := Start(Config{File: file, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	s.life.fail(net.ErrClosed)
	assert.ErrorIs(t, s.Run(t.Context()), net.ErrClosed)
}

func TestShutdownLetsRequestsFinish(t *testing.T) {
	entered, finish := make(chan struct{}), make(chan struct{})
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-finish
		_, _ = io.WriteString(w, "done")
	})
	s := start(t, "admin: {address: \"127.0.0.1:0\"}\nserver: {shutdown_timeout: 1h}\nupstream: "+upstream+"\n"+one)
	status := func(path string) int {
		resp, err := http.Get(s.urlOf(administrators) + path)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	assert.Equal(t, 200, status("readyz"))
	readyz := s.urlOf(administrators) + "readyz"
	address := s.address()

	got := make(chan answer, 1)
	go func() { got <- s.get("/") }()
	<-entered
	stopped := make(chan struct{})
	go func() { s.stop(); close(stopped) }()
	// The server closes the port before it waits for requests. So the request is still in progress.
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err != nil
	}, 10*time.Second, time.Millisecond)
	resp, err := http.Get(readyz)
	require.NoError(t, err, "the administrator can look on")
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, 503, resp.StatusCode)
	http.DefaultClient.CloseIdleConnections()
	select {
	case <-stopped:
		t.Fatal("stopped before the request had finished")
	default:
	}
	close(finish)
	assert.Equal(t, "done", (<-got).body)
	<-stopped
	assert.Contains(t, s.log.String(), "msg=stopped requests=1 allowed=1 refused=0")
}

// TestAServerThatIsNotReadyStillServes: a server that is not ready still serves requests. A load balancer sends them
// until it checks /readyz again.
func TestAServerThatIsNotReadyStillServes(t *testing.T) {
	s := start(t, "server: {shutdown_delay: 1h}\n"+one)
	stopped := make(chan struct{})
	go func() { s.stop(); close(stopped) }()
	assert.Equal(t, time.Hour, <-s.asleep)
	assert.Error(t, s.ready())
	conn := s.dial("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	assert.Equal(t, 200, resp.StatusCode)
	close(s.wake)
	<-stopped
}

func TestShutdownCutsOffWhatTakesTooLong(t *testing.T) {
	entered := make(chan struct{})
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})
	s := start(t, "server: {shutdown_timeout: 20ms}\nupstream: "+upstream+"\n"+one)
	conn := s.dial("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-entered
	s.stop()
	assert.Contains(t, s.log.String(), "requests were cut off")
	_, err := http.ReadResponse(bufio.NewReader(conn), nil)
	assert.Error(t, err)
}

func TestASlowHeaderIsCutOff(t *testing.T) {
	s := start(t, "server: {read_header_timeout: 20ms}\n"+one)
	conn := s.dial("GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	_, err := io.Copy(io.Discard, conn) // until the server closes the connection
	assert.NoError(t, err)
	s.change(one) // with 20 ms, a normal request could also be cut off on a busy machine
	assert.Equal(t, "200", s.statuses(1))
}

func TestAHugeHeaderIs431(t *testing.T) {
	s := start(t, "server: {max_header_bytes: 1KiB}\n"+one)
	assert.Equal(t, 431, s.get("/", "X-Huge: "+strings.Repeat("x", 16<<10)).status)
	assert.Equal(t, "200", s.statuses(1))
}

func TestTooManyConnectionsAreToldSo(t *testing.T) {
	entered, finish := make(chan struct{}), make(chan struct{})
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			entered <- struct{}{}
			<-finish
		}
	})
	to := "upstream: " + upstream + "\n"
	s := start(t, "server: {max_connections: 2}\n"+to+one)
	defer close(finish)
	var held []net.Conn
	for range 2 {
		held = append(held, s.dial("GET /busy HTTP/1.1\r\nHost: x\r\n\r\n"))
		<-entered
	}
	conn := s.dial("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	assert.Equal(t, 503, resp.StatusCode)
	assert.Equal(t, "1", resp.Header.Get("Retry-After"))
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "Too many connections\n", string(body))
	assert.Contains(t, s.log.String(), "too many connections: new connections are answered 503")

	s.change("server: {max_connections: 3}\n" + to + one)
	assert.Equal(t, "200", s.statuses(1))
	s.client.CloseIdleConnections()
	require.NoError(t, held[0].Close())
	require.Eventually(t, func() bool { return s.connections[clients].Open() == 1 }, 10*time.Second, time.Millisecond)
	assert.Equal(t, "200", s.statuses(1))
}

func TestHTTP2WithoutTLS(t *testing.T) {
	seen := make(chan string, 1)
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- r.Proto
	}))
	upstream.Config.Protocols = new(http.Protocols)
	upstream.Config.Protocols.SetUnencryptedHTTP2(true)
	upstream.Start()
	defer upstream.Close()
	s := start(t, "listen: {address: \"127.0.0.1:0\", h2c: true}\nupstream: {url: \""+upstream.URL+"\", h2c: true}\n"+one)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(s.URL())
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, "HTTP/2.0", resp.Proto)
	assert.Equal(t, 200, resp.StatusCode)
	assert.Equal(t, "HTTP/2.0", <-seen)
	assert.Equal(t, "200", s.statuses(1), "and HTTP/1.1")
}

func TestACertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	file := "listen: {address: \"127.0.0.1:0\", tls: {cert: " + dir + "/cert.pem, key: " + dir + "/key.pem}}\n" + one
	writeCertificate(t, dir, "first.example.com")
	s := start(t, file)
	name := func() (string, string) {
		conn, err := tls.Dial("tcp", s.address(),
			&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
		require.NoError(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName, conn.ConnectionState().NegotiatedProtocol
	}
	first, protocol := name()
	assert.Equal(t, "first.example.com", first)
	assert.Equal(t, "h2", protocol)
	writeCertificate(t, dir, "second.example.com")
	require.Eventually(t, func() bool { now, _ := name(); return now == "second.example.com" }, 20*time.Second,
		10*time.Millisecond,
		"the files are watched")
	require.NoError(t, os.WriteFile(dir+"/cert.pem", []byte("nonsense"), 0o600))
	s.waitFor("reload failed")
	now, _ := name()
	assert.Equal(t, "second.example.com", now)
}
