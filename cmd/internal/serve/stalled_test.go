package serve

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// TestIdleConnectionsMakeRoom: the connection that has been idle for longest is closed to make room. Connections with a
// request in progress stay open.
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
	rested := func() { // the client has read an answer before the server counts the connection as idle
		t.Helper()
		require.Eventually(t, func() bool { return s.connections[clients].Idle() == len(idle) }, 20*time.Second, time.Millisecond)
	}
	for range 3 {
		conn := s.dial("")
		ask(conn)
		idle = append(idle, conn)
		rested()
	}
	ask(idle[0]) // now the second connection has been idle for the longest time
	rested()
	ask(s.dial(""))
	_, err := idle[1].Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	ask(idle[0])
	ask(idle[2])
	for range 40 { // connections that have sent half a header also make room
		s.dial("GET / HTTP/1.1\r\nX-Slow: ")
	}
	ask(s.dial(""))
	end()
	want200(t, busy)
}

func want200(t *testing.T, conn net.Conn) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
}

// TestOneClientCannotTakeAllConnections: one client cannot use all connections, unless it is a trusted proxy.
func TestOneClientCannotTakeAllConnections(t *testing.T) {
	s := start(t, "server: {max_connections: 1000, max_connections_per_client: 2}\n"+one)
	for range 2 {
		s.dial("GET / HTTP/1.1\r\nX-Slow: ")
	}
	require.Eventually(t, func() bool { return s.connections[clients].Idle() == 2 }, 20*time.Second, time.Millisecond)
	full, err := http.ReadResponse(bufio.NewReader(s.dial("GET / HTTP/1.1\r\nHost: x\r\n\r\n")), nil)
	require.NoError(t, err)
	assert.Equal(t, 503, full.StatusCode)
	assert.Contains(t, s.log.String(), "too many connections of one client: its new connections are answered 503")
	s.change("server: {max_connections: 1000, max_connections_per_client: 2}\ntrusted_proxies: 127.0.0.1\n" + one)
	conn := s.dial("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	want200(t, conn)

	ann, bob := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:0:1::1")
	assert.Equal(t, s.clientOf(ann), s.clientOf(netip.MustParseAddr("2001:db8::ffff:2")), "an IPv6 /64 is one client")
	assert.NotEqual(t, s.clientOf(ann), s.clientOf(bob))
	assert.Equal(t, netip.MustParsePrefix("192.0.2.1/32"), s.clientOf(netip.MustParseAddr("192.0.2.1")))
	assert.Zero(t, s.clientOf(netip.MustParseAddr("127.0.0.1")), "a trusted proxy")
	assert.Equal(t, []int64{0, 0, 0, 16, 125, 7},
		[]int64{perClient(rulefile.ByShare, 0), perClient(rulefile.ByShare, 2), perClient(rulefile.ByShare, 16), perClient(rulefile.ByShare, 100),
			perClient(rulefile.ByShare, 1000), perClient(7, 1000)})
}

// TestOneClientBehindABalancer: the bound for one client applies to the client that the PROXY protocol names.
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

// TestAClientThatDoesNotReadIsDropped: if a client does not read, its connection ends. Its request is then no longer in
// flight, and the connection to the upstream closes.
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
		return s.connections[clients].Open() == 0 && s.traffic.inFlight.Load() == 0
	}, 60*time.Second, 10*time.Millisecond)
}
