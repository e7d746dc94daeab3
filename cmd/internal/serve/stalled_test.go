package serve

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/config"
)

// pipeTo serves one connection by a handler, in a bubble of virtual time.
func pipeTo(t *testing.T, handler http.HandlerFunc) net.Conn {
	t.Helper()
	client, conn := net.Pipe()
	e := endpoint{role: clients, server: config.Server{ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute}}
	h := newHTTPProtocol(e, handler, nil, t.Context(), slog.New(slog.DiscardHandler))
	limit := newConnLimit(clients, func(netip.Addr) bool { return false }, slog.New(slog.DiscardHandler))
	// ends with the server
	go h.server.Serve(&oneConn{conn: limit.admit(pipeConn{conn}, 0), closed: make(chan struct{})})
	t.Cleanup(func() {
		client.Close()
		h.server.Close()
	})
	return client
}

// TestAnUnknownExpectIs417AndEnds: net/http answers by itself and reads the body, which may never come.
func TestAnUnknownExpectIs417AndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := pipeTo(t, func(http.ResponseWriter, *http.Request) { t.Error("the handler is called") })
		begin := time.Now()
		_, err := io.WriteString(client, "POST / HTTP/1.1\r\nHost: a\r\nExpect: x\r\nContent-Length: 5\r\n\r\n")
		require.NoError(t, err)
		require.NoError(t, client.SetReadDeadline(begin.Add(time.Hour)))
		all, err := io.ReadAll(client)
		require.NoError(t, err, "the server closes the connection")
		assert.Contains(t, string(all), "HTTP/1.1 417 ")
		assert.Contains(t, string(all), "Connection: close")
		assert.Equal(t, time.Minute, time.Since(begin), "read_header_timeout")
	})
}

// TestTheDeadlineOfTheHeaderEndsWithIt: an answer and a body may take longer than the header.
func TestTheDeadlineOfTheHeaderEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := pipeTo(t, func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			assert.NoError(t, err)
			time.Sleep(time.Hour)
			assert.NoError(t, r.Context().Err(), "nobody takes the end of the deadline for that of the client")
		})
		in := bufio.NewReader(client)
		for _, request := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"} {
			_, err := io.WriteString(client, request)
			require.NoError(t, err)
			if request[0] == 'P' {
				time.Sleep(time.Hour)
				_, err = io.WriteString(client, "12345")
				require.NoError(t, err)
			}
			resp, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			assert.Equal(t, 200, resp.StatusCode)
		}
	})
}

// TestIdleConnectionsMakeRoom, those first that have been idle for longest, and none that has a request under way.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	entered, finish := make(chan struct{}), make(chan struct{})
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			entered <- struct{}{}
			<-finish
		}
	})
	end := sync.OnceFunc(func() { close(finish) })
	defer end()
	s := start(t, "server: {max_connections: 4}\nupstream: "+upstream+"\nrules: [{name: a, rate: 1/h, burst: 100}]")
	busy := s.dial("GET /busy HTTP/1.1\r\nHost: x\r\n\r\n")
	<-entered
	ask := func(conn net.Conn) {
		t.Helper()
		_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		want200(t, conn)
	}
	var idle []net.Conn
	rested := func() { // an answer has been read before the server takes its connection for idle
		t.Helper()
		require.Eventually(t, func() bool { return s.idle() == len(idle) }, 20*time.Second, time.Millisecond)
	}
	for range 3 {
		conn := s.dial("")
		ask(conn)
		idle = append(idle, conn)
		rested()
	}
	ask(idle[0]) // now the second has been idle for longest
	rested()
	ask(s.dial(""))
	_, err := idle[1].Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	ask(idle[0])
	ask(idle[2])
	for range 40 { // new ones with half a header, too
		s.dial("GET / HTTP/1.1\r\nX-Slow: ")
	}
	ask(s.dial(""))
	end()
	want200(t, busy)
}

// idle returns how many connections of clients are idle.
func (r *running) idle() (n int) {
	lists := &r.connections[clients].idle.lists
	for i := range lists {
		lists[i].mu.Lock()
		for c := lists[i].first; c != nil; c = c.idle.after {
			n++
		}
		lists[i].mu.Unlock()
	}
	return n
}

// want200 reads an answer, which must be a 200.
func want200(t *testing.T, conn net.Conn) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
}

// TestADroppedConnectionExecutesNothing: a request that was read before the connection was closed ends unanswered.
func TestADroppedConnectionExecutesNothing(t *testing.T) {
	c := &countedConn{}
	new(idleConns).assign(c)
	c.idle.dropped = true
	executed := false
	h := started(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { executed = true }), 0)
	r, err := http.NewRequestWithContext(withCountedConn(t.Context(), c), http.MethodGet, "/", nil)
	require.NoError(t, err)
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { h.ServeHTTP(nil, r) })
	assert.False(t, executed)
}

// TestOneClientCannotTakeAllConnections, unless it is a trusted proxy.
func TestOneClientCannotTakeAllConnections(t *testing.T) {
	s := start(t, "server: {max_connections: 1000, max_connections_per_client: 2}\n"+one)
	for range 2 {
		s.dial("GET / HTTP/1.1\r\nX-Slow: ")
	}
	require.Eventually(t, func() bool { return s.idle() == 2 }, 20*time.Second, time.Millisecond)
	full, err := http.ReadResponse(bufio.NewReader(s.dial("GET / HTTP/1.1\r\nHost: x\r\n\r\n")), nil)
	require.NoError(t, err)
	assert.Equal(t, 503, full.StatusCode)
	assert.Contains(t, s.log.String(), "too many connections of one client: its new ones are answered 503")
	s.change("server: {max_connections: 1000, max_connections_per_client: 2}\ntrusted_proxies: 127.0.0.1\n" + one)
	conn := s.dial("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	want200(t, conn)

	c := clientConns{trusts: func(a netip.Addr) bool { return a == netip.MustParseAddr("10.0.0.1") }, of: map[netip.Prefix]int64{}}
	c.most.Store(1)
	has := func(ip string) bool {
		_, ok := c.add(&net.TCPAddr{IP: net.ParseIP(ip), Port: 1})
		return ok
	}
	assert.True(t, has("192.0.2.1"))
	assert.False(t, has("192.0.2.1"))
	assert.False(t, has("::ffff:192.0.2.1"))
	assert.True(t, has("2001:db8::1"))
	assert.False(t, has("2001:db8::ffff:2"), "an IPv6 /64 is one client")
	assert.True(t, has("2001:db8:0:1::1"))
	assert.True(t, has("10.0.0.1"))
	assert.True(t, has("10.0.0.1"))
	c.remove(netip.MustParsePrefix("192.0.2.1/32"))
	assert.True(t, has("192.0.2.1"))
	assert.Equal(t, []int64{0, 0, 0, 16, 125, 7},
		[]int64{perClient(config.ByShare, 0), perClient(config.ByShare, 2), perClient(config.ByShare, 16), perClient(config.ByShare, 100),
			perClient(config.ByShare, 1000), perClient(7, 1000)})
}

// TestOneClientBehindABalancer: the client that the PROXY protocol names is the one whose connections are bounded.
func TestOneClientBehindABalancer(t *testing.T) {
	s := start(t, byProxyProtocol+"trusted_proxies: 127.0.0.1\nserver: {max_connections: 1000, max_connections_per_client: 2}\n"+one)
	const ann, bob, balancer = "PROXY TCP4 192.0.2.1 192.0.2.9 5 80\r\n", "PROXY TCP4 192.0.2.2 192.0.2.9 5 80\r\n", "PROXY UNKNOWN\r\n"
	const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	var open []net.Conn
	for range 2 {
		conn := s.dial(ann + request)
		want200(t, conn)
		open = append(open, conn)
	}
	assert.Equal(t, 503, s.status(ann, request))
	assert.Contains(t, s.log.String(), "192.0.2.1")
	for range 3 {
		want200(t, s.dial(balancer+request))
	}
	want200(t, s.dial(bob+request))
	require.NoError(t, open[0].Close())
	require.Eventually(t, func() bool { return s.status(ann, request) == 200 }, time.Minute, time.Millisecond)
}

// TestAClientThatDoesNotReadIsDropped: it frees its place and the connection to the upstream.
func TestAClientThatDoesNotReadIsDropped(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 1<<20); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	s := start(t, "server: {send_timeout: 100ms}\nupstream: "+upstream+"\n"+one)
	s.dial("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.Eventually(t, func() bool {
		return s.connections[clients].open.Load() == 0 && s.traffic.inFlight.Load() == 0
	}, 60*time.Second, 10*time.Millisecond)
}

// slowConn takes one byte for each deadline.
type slowConn struct {
	net.Conn
	taken, silent int
	deadlines     []time.Time
}

func (c *slowConn) Write(p []byte) (int, error) {
	if c.silent > 0 && c.taken == c.silent {
		return 0, os.ErrDeadlineExceeded
	}
	c.taken++
	if len(p) == 1 {
		return 1, nil
	}
	return 1, os.ErrDeadlineExceeded
}

func (c *slowConn) SetWriteDeadline(t time.Time) error {
	c.deadlines = append(c.deadlines, t)
	return nil
}

// TestAnyProgressCounts: a client that reads slowly has its whole answer; one that stops, or whose write_timeout is
// over, does not.
func TestAnyProgressCounts(t *testing.T) {
	slow := &slowConn{}
	s := sender{timeout: time.Nanosecond} // each write is after the deadline of the one before
	n, err := s.write(slow, make([]byte, 1000))
	require.NoError(t, err)
	assert.Equal(t, 1000, n)
	assert.NotEmpty(t, slow.deadlines)
	slow = &slowConn{silent: 3}
	n, err = (&sender{timeout: time.Hour}).write(slow, make([]byte, 10))
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.Equal(t, 3, n)
	slow = &slowConn{}
	s = sender{timeout: time.Hour}
	require.NoError(t, s.ask(slow, time.Now().Add(-time.Second)))
	n, err = s.write(slow, make([]byte, 10))
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.Equal(t, 1, n)
}
