package listen

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/weir-go/weir/cmd/internal/pipes"
)

// pipeTo serves one connection in virtual time, and returns the client's end.
func pipeTo(t *testing.T, handler http.HandlerFunc) net.Conn {
	t.Helper()
	client, conn := net.Pipe()
	e := Endpoint{HTTP: HTTP{ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute}}
	h := newHTTPProtocol(e, handler, nil, t.Context(), slog.New(slog.DiscardHandler))
	limit := NewConnLimit("clients", FullHTTP, anyClient, slog.New(slog.DiscardHandler))
	// This goroutine ends with the server.
	go h.server.Serve(pipes.Listener(limit.Admit(pipes.Conn{Conn: conn}, 0)))
	t.Cleanup(func() {
		client.Close()
		h.server.Close()
	})
	return client
}

// TestAnUnknownExpectIs417AndEnds: if the Expect field is unknown, net/http answers without the handler, and waits for
// a body that may never come. The connection ends nevertheless.
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

// TestTheDeadlineOfTheHeaderEndsWithIt: body and answer may take longer than the header.
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

// TestADroppedConnectionExecutesNothing: if a connection was closed to make room, a request that was read from it is
// not executed.
func TestADroppedConnectionExecutesNothing(t *testing.T) {
	c := &Conn{}
	new(idleConns).assign(c)
	c.idle.dropped = true
	executed := false
	h := withBodyDeadline(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { executed = true }), 0)
	r, err := http.NewRequestWithContext(withConn(t.Context(), c), http.MethodGet, "/", nil)
	require.NoError(t, err)
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { h.ServeHTTP(nil, r) })
	assert.False(t, executed)
}

// TestOneClientHasABound: the connections of one client are bounded. Connections are not bounded if their address does
// not belong to one client.
func TestOneClientHasABound(t *testing.T) {
	c := clientConns{counts: map[netip.Prefix]int64{}, client: func(a netip.Addr) (client netip.Prefix) {
		if a != netip.MustParseAddr("10.0.0.1") {
			client, _ = a.Prefix(min(a.BitLen(), 64))
		}
		return client
	}}
	c.maxPerClient.Store(1)
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
}

func anyClient(netip.Addr) netip.Prefix { return netip.Prefix{} }

// A slowConn accepts one byte per deadline.
type slowConn struct {
	streamConn
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

// TestAnyProgressCounts: a slow reader gets its complete answer, unless it stops reading or write_timeout is over.
func TestAnyProgressCounts(t *testing.T) {
	slow := &slowConn{}
	s := sender{timeout: time.Nanosecond} // so each write is after the deadline of the previous write
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
	require.NoError(t, s.setDeadline(slow, time.Now().Add(-time.Second)))
	n, err = s.write(slow, make([]byte, 10))
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.Equal(t, 1, n)
}

// TestDeadlinesAreSetSeldom: net/http clears deadlines before each request. An answer does not set a new deadline while
// the current deadline is good enough. When net/http clears a deadline that it has set, this deadline no longer
// applies.
func TestDeadlinesAreSetSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &deadlineConn{}
		s := sender{timeout: time.Hour}
		answer := func() {
			require.NoError(t, s.setDeadline(conn, time.Time{}))
			_, err := s.write(conn, []byte("answer"))
			require.NoError(t, err)
		}
		for range 3 {
			answer()
		}
		hour := time.Now().Add(time.Hour)
		assert.Equal(t, []time.Time{hour}, conn.deadlines)
		require.NoError(t, s.setDeadline(conn, hour.Add(-time.Minute)))
		answer()
		assert.Equal(t, []time.Time{hour, hour.Add(-time.Minute), {}, hour}, conn.deadlines)
		time.Sleep(time.Minute)
		answer()
		assert.Equal(t, hour.Add(time.Minute), conn.deadlines[len(conn.deadlines)-1])
	})
}

// A deadlineConn accepts everything, and notes the deadlines of writes.
type deadlineConn struct {
	streamConn
	deadlines []time.Time
}

func (c *deadlineConn) Write(p []byte) (int, error) { return len(p), nil }

func (c *deadlineConn) SetWriteDeadline(t time.Time) error {
	c.deadlines = append(c.deadlines, t)
	return nil
}
