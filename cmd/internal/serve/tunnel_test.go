package serve

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/pipes"
	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// A halvesConn is a connection in memory. Each end can close only its writing half. Written bytes wait until they are
// read.
type halvesConn struct {
	net.Conn // the pipe from which it reads
	out      net.Conn
}

func newHalves() (a, b *halvesConn) {
	in, fromIn := net.Pipe()
	out, fromOut := net.Pipe()
	return &halvesConn{in, fromOut}, &halvesConn{out, fromIn}
}

func (c *halvesConn) Write(b []byte) (int, error)         { return c.out.Write(b) }
func (c *halvesConn) CloseWrite() error                   { return c.out.Close() }
func (c *halvesConn) Close() error                        { _ = c.out.Close(); return c.Conn.Close() }
func (c *halvesConn) SetWriteDeadline(at time.Time) error { return c.out.SetWriteDeadline(at) }
func (c *halvesConn) SetDeadline(at time.Time) error {
	_ = c.out.SetWriteDeadline(at)
	return c.Conn.SetReadDeadline(at)
}

type countedHalves struct {
	*halvesConn
	count *atomic.Int64
	once  sync.Once
}

func (c *countedHalves) Close() error {
	c.once.Do(func() { c.count.Add(-1) })
	return c.halvesConn.Close()
}

// These are two timeouts of package proxy. After one end has finished, the other end may be silent for tunnelSilence.
// An end may accept no bytes for tunnelStall.
const (
	tunnelSilence = 10 * time.Second
	tunnelStall   = time.Minute
)

type halves interface {
	net.Conn
	CloseWrite() error
}

// tunnelled is a WebSocket that passes through a server. The test is both the client and the upstream, and moves the
// time.
type tunnelled struct {
	client, upstream halves
	ended            chan struct{}      // closed when the request has ended
	conns            atomic.Int64       // number of connections to the upstream
	cut              context.CancelFunc // ends the requests, as the server does at its end
}

// inTunnels runs a test with a WebSocket, once to an upstream with TLS and once without. At the end, it checks that no
// connection and no goroutine is left.
func inTunnels(t *testing.T, test func(t *testing.T, s *tunnelled)) {
	inHandshakes(t, func(t *testing.T, s *tunnelled) {
		answer, err := http.ReadResponse(bufio.NewReader(s.client), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusSwitchingProtocols, answer.StatusCode)
		test(t, s)
	})
}

// inHandshakes is like inTunnels, but the client has not yet read the answer to its handshake.
func inHandshakes(t *testing.T, test func(t *testing.T, s *tunnelled)) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			file, err := rulefile.Parse("weir.yaml", []byte("listen: 127.0.0.1:0\nupstream: "+scheme+"://upstream.invalid\n"+
				"rules: [{name: a, concurrency: 1, max_keys: 100}]\n"))
			require.NoError(t, err)
			var transports replaced
			server, err := Start(Config{File: file, Log: slog.New(slog.DiscardHandler), Transport: transports.of})
			require.NoError(t, err)
			t.Cleanup(server.stop)
			dir := t.TempDir()
			writeCertificate(t, dir, "upstream.invalid")
			certificate, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
			require.NoError(t, err)
			synctest.Test(t, func(t *testing.T) {
				s := &tunnelled{ended: make(chan struct{})}
				s.open(t, server, &transports, scheme, &tls.Config{Certificates: []tls.Certificate{certificate}})
				assert.Equal(t, http.StatusTooManyRequests, statusOfAnother(server), "it has the place of its client")
				test(t, s)
				_, _ = s.client.Close(), s.upstream.Close()
				<-s.ended
				synctest.Wait()
				assert.Zero(t, s.conns.Load(), "connections to the upstream")
				assert.Zero(t, server.upstreams.Failures(), "the upstream has done its part")
				assert.NotEqual(t, http.StatusTooManyRequests, statusOfAnother(server), "the place is free")
			})
		})
	}
}

func statusOfAnother(server *Server) int {
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	return w.Code
}

func (s *tunnelled) open(t *testing.T, server *Server, transports *replaced, scheme string, over *tls.Config) {
	conn, upstream := newHalves()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	dials := 0
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		if dials++; dials > 1 {
			return nil, errors.New("this upstream takes one connection")
		}
		s.conns.Add(1)
		return &countedHalves{halvesConn: conn, count: &s.conns}, nil
	}
	transports.by(transport)
	if s.upstream = upstream; scheme == "https" {
		s.upstream = tls.Server(upstream, over)
	}
	hijacked, client := newHalves()
	s.client = client
	base, cut := context.WithCancel(t.Context())
	s.cut = cut
	front := &http.Server{BaseContext: func(net.Listener) context.Context { return base }, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(s.ended)
		r.RemoteAddr = httptest.NewRequest(http.MethodGet, "/", nil).RemoteAddr
		server.ServeHTTP(w, r)
	})}
	listener := pipes.Listener(hijacked)
	go front.Serve(listener)
	t.Cleanup(func() { _, _, _ = s.client.Close(), s.upstream.Close(), front.Close() })

	_, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	require.NoError(t, err)
	_, err = http.ReadRequest(bufio.NewReader(s.upstream))
	require.NoError(t, err)
	_, err = io.WriteString(s.upstream, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	require.NoError(t, err)
}

func (s *tunnelled) isOpen() bool {
	synctest.Wait()
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// endsIn checks that the request ends after d, or at most a second earlier.
func (s *tunnelled) endsIn(t *testing.T, d time.Duration) {
	t.Helper()
	time.Sleep(d - time.Second)
	assert.True(t, s.isOpen(), "before")
	time.Sleep(time.Second)
	assert.False(t, s.isOpen(), "after %v", d)
}

// takeAll reads everything from the ends. If the bytes were not read, an end would not even accept the closing alert of
// TLS.
func (*tunnelled) takeAll(ends ...halves) {
	for _, end := range ends {
		go io.Copy(io.Discard, end)
	}
}

// TestAnEndThatDoesNotReact: one end has disconnected, and the other end does not react. The tunnel must end after some
// time. Otherwise the request would be in flight forever, and keep two files open.
func TestAnEndThatDoesNotReact(t *testing.T) {
	for name, end := range map[string]func(s *tunnelled) (ended, left halves){
		"upstream": func(s *tunnelled) (halves, halves) { return s.client, s.upstream },
		"client":   func(s *tunnelled) (halves, halves) { return s.upstream, s.client },
	} {
		t.Run(name, func(t *testing.T) {
			inTunnels(t, func(t *testing.T, s *tunnelled) {
				ended, left := end(s)
				s.takeAll(ended, left)
				time.Sleep(24 * time.Hour)
				assert.True(t, s.isOpen(), "an idle WebSocket")
				require.NoError(t, ended.CloseWrite())
				s.endsIn(t, tunnelSilence)
			})
		})
	}
}

// TestTheEndThatIsLeftMayGoOn: when one end has closed its half, the tunnel continues as long as the other end sends
// something.
func TestTheEndThatIsLeftMayGoOn(t *testing.T) {
	inTunnels(t, func(t *testing.T, s *tunnelled) {
		received := make(chan string, 1)
		go func() {
			all, _ := io.ReadAll(s.client)
			received <- string(all)
		}()
		s.takeAll(s.upstream)
		require.NoError(t, s.client.CloseWrite())
		for range 100 {
			time.Sleep(tunnelSilence - time.Second)
			_, err := io.WriteString(s.upstream, "x")
			require.NoError(t, err)
		}
		s.endsIn(t, tunnelSilence)
		assert.Equal(t, strings.Repeat("x", 100), <-received)
	})
}

// TestAnEndThatTakesNothing: an end accepts no bytes. The bytes for it wait, and the close after them waits, too. So
// the tunnel ends after some time.
func TestAnEndThatTakesNothing(t *testing.T) {
	for name, ends := range map[string]func(s *tunnelled) (from, to halves){
		"client":   func(s *tunnelled) (halves, halves) { return s.upstream, s.client },
		"upstream": func(s *tunnelled) (halves, halves) { return s.client, s.upstream },
	} {
		t.Run(name, func(t *testing.T) {
			inTunnels(t, func(t *testing.T, s *tunnelled) {
				from, to := ends(s)
				s.takeAll(from)
				go io.WriteString(from, "first")
				time.Sleep(tunnelStall - time.Second)
				_, err := io.ReadFull(to, make([]byte, 5))
				require.NoError(t, err)
				time.Sleep(time.Hour)
				assert.True(t, s.isOpen(), "slow is not stuck")
				go func() {
					_, _ = io.WriteString(from, "second")
					_ = from.CloseWrite()
				}()
				s.endsIn(t, tunnelStall)
			})
		})
	}
}

// TestAClientThatTakesNotEvenTheAnswer: a client does not read the answer to its handshake. Nothing is then read from
// the upstream, so the upstream cannot end the request. When the request ends, the upstream has not failed.
func TestAClientThatTakesNotEvenTheAnswer(t *testing.T) {
	inHandshakes(t, func(t *testing.T, s *tunnelled) {
		s.takeAll(s.upstream)
		s.endsIn(t, tunnelStall)
	})
}

// TestASlowEndHasItsTime: an end has finished sending, and reads slowly. The bytes for it are not cut off after a few
// seconds.
func TestASlowEndHasItsTime(t *testing.T) {
	inTunnels(t, func(t *testing.T, s *tunnelled) {
		s.takeAll(s.upstream)
		require.NoError(t, s.client.CloseWrite())
		go io.WriteString(s.upstream, "hello")
		time.Sleep(tunnelStall - time.Second)
		_, err := io.ReadFull(s.client, make([]byte, 5))
		require.NoError(t, err)
		s.endsIn(t, tunnelSilence)
	})
}

// TestTheServerEndsWithTunnelsInWhichNothingMoves: a client does not read what its upstream writes. ReverseProxy alone
// would wait for the client forever, but the server can end.
func TestTheServerEndsWithTunnelsInWhichNothingMoves(t *testing.T) {
	inTunnels(t, func(t *testing.T, s *tunnelled) {
		s.takeAll(s.upstream)
		go io.WriteString(s.upstream, "hello")
		synctest.Wait()
		s.cut()
		assert.False(t, s.isOpen())
	})
}

func (r *running) websocket() (conn net.Conn, in *bufio.Reader) {
	r.t.Helper()
	conn = r.dial("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in = bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil)
	require.NoError(r.t, err)
	require.Equal(r.t, http.StatusSwitchingProtocols, answer.StatusCode)
	return conn, in
}

// raw returns the URL of an upstream that changes the protocol of every connection, and then calls serve. The parameter
// answer has header lines for the answer.
func raw(t *testing.T, answer string, serve func(net.Conn)) string {
	return newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n"+answer+"\r\n")
		serve(conn)
	})
}

const toWebSocket = "Connection: Upgrade\r\nUpgrade: websocket\r\n"

// TestAnUpstreamThatIsKilledAmidAFrame: an upstream is killed within a frame of a WebSocket. The WebSocket ends, and no
// connection or goroutine of the tunnel is left.
func TestAnUpstreamThatIsKilledAmidAFrame(t *testing.T) {
	s := start(t, "upstream: "+raw(t, toWebSocket, func(conn net.Conn) {
		_, _ = conn.Write([]byte{0x82, 0x7e, 0xff, 0xff, 1, 2, 3}) // announces 65,535 bytes, which never come
		_ = conn.(*net.TCPConn).SetLinger(0)                       // closing sends a reset
	})+"\nrules: [{name: a, concurrency: 1, max_keys: 100}]\n")
	for range 20 {
		conn, in := s.websocket()
		_, _ = io.ReadAll(in)
		conn.Close()
		require.Eventually(t, func() bool { return s.traffic.inFlight.Load() == 0 }, 20*time.Second, time.Millisecond)
	}
	require.Eventually(t, func() bool { return s.upstreams.Connections() == 0 }, 20*time.Second, time.Millisecond)
}

// TestAnUpstreamThatChangesToSomethingElse: an upstream changes to a protocol that the client did not ask for. Its
// connection is closed, and the client gets an error. ReverseProxy alone would leave the connection open.
func TestAnUpstreamThatChangesToSomethingElse(t *testing.T) {
	for _, answer := range []string{
		"Connection: Upgrade\r\nUpgrade: h2c\r\n", "Connection: Upgrade\r\n", "Upgrade: websocket\r\n", "",
		"Connection: Upgrade\r\nUpgrade: websocket\x80\r\n",
	} {
		url := raw(t, answer, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
		s := start(t, "upstream: {url: [\""+url+"\", \""+url+"/b\"]}"+many)
		for range 6 {
			assert.Equal(t, 502, s.get("/", "Connection: Upgrade", "Upgrade: websocket").status, answer)
		}
		require.Eventually(t, func() bool { return s.upstreams.Connections() == 0 }, 20*time.Second, time.Millisecond, answer)
		assert.NotContains(t, s.log.String(), "upstream down", "connections can be made")
	}
}

// TestAnUpstreamThatNeverAnswersTheWish: an upstream does not answer a request for a WebSocket. response_timeout ends
// the request, and no connection or goroutine is left.
func TestAnUpstreamThatNeverAnswersTheWish(t *testing.T) {
	done := make(chan struct{})
	url := newUpstream(t, func(http.ResponseWriter, *http.Request) { <-done })
	defer close(done)
	s := start(t, "upstream: {url: \""+url+"\", response_timeout: 1ms}\nrules: [{name: a, concurrency: 1, max_keys: 100}]\n")
	for range 3 {
		assert.Equal(t, 504, s.get("/", "Connection: Upgrade", "Upgrade: websocket").status)
		require.Eventually(t, func() bool { return s.traffic.inFlight.Load() == 0 }, 20*time.Second, time.Millisecond)
	}
	require.Eventually(t, func() bool { return s.upstreams.Connections() == 0 }, 20*time.Second, time.Millisecond)
}
