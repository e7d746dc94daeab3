package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

const (
	// tunnelSilence is how long one end may send nothing after the other end has finished sending.
	tunnelSilence = 10 * time.Second
	// tunnelStall is how long an end may accept no byte while bytes wait for it.
	tunnelStall = time.Minute
)

// A tunnel has the connections to the client and to the upstream after a change of the protocol, such as to WebSocket.
// [httputil.ReverseProxy] copies bytes in both directions until both ends have finished sending or a connection breaks.
//
// If one end does not react when the other end has finished, ReverseProxy alone would wait forever. The request would
// stay in flight, and keep two files open. So a tunnel ends in two more cases:
//
//   - One end has finished, and the other end sends nothing for tunnelSilence.
//   - An end accepts nothing for tunnelStall. It then could not be informed that the other end has finished.
type tunnel struct {
	mu               sync.Mutex
	client, upstream tunnelEnd
	closed           bool
}

// A tunnelEnd is one of the two connections. One goroutine reads from it, and another writes to it.
type tunnelEnd struct {
	io.ReadWriteCloser // nil for a client whose connection has not been hijacked
	tunnel             *tunnel
	peer               *tunnelEnd

	// These fields describe the bytes that go from this end to the other end. The tunnel's mutex guards them.
	isFinished bool        // this end has finished sending
	isWriting  bool        // bytes wait for the other end
	timer      *time.Timer // closes the tunnel; nil before it is used
}

var errUnrequested = errors.New("the upstream changes to a protocol that the client did not ask for")

// openTunnel makes the connection of an answer one end of a tunnel. It returns an error if the client did not ask for
// the protocol. ReverseProxy returns such an error, too, but does not close the connection.
func (x *Exchange) openTunnel(answer *http.Response) error {
	requested, got := upgradeOf(answer.Request.Header), upgradeOf(answer.Header)
	if requested == "" || !strings.EqualFold(requested, got) {
		return fmt.Errorf("%w: %q", errUnrequested, got)
	}
	upstream, ok := answer.Body.(io.ReadWriteCloser)
	if !ok {
		return fmt.Errorf("the connection to the upstream is a %T, which cannot be written to", answer.Body)
	}
	t := &tunnel{}
	t.client.tunnel, t.client.peer = t, &t.upstream
	t.upstream = tunnelEnd{ReadWriteCloser: upstream, tunnel: t, peer: &t.client}
	x.tunnel, answer.Body = t, &t.upstream
	return nil
}

// upgradeOf returns the protocol to which a message asks to change. It returns "" if there is none.
func upgradeOf(header http.Header) string {
	if !httpguts.HeaderValuesContainsToken(header["Connection"], "Upgrade") {
		return ""
	}
	return header.Get("Upgrade")
}

// Close closes both connections. ReverseProxy calls it at the end, and so does the server when it ends.
func (t *tunnel) Close() error {
	t.mu.Lock()
	t.closed = true
	t.client.setTimer()
	t.upstream.setTimer()
	t.mu.Unlock()
	err := t.upstream.ReadWriteCloser.Close()
	if t.client.ReadWriteCloser != nil {
		err = errors.Join(err, t.client.ReadWriteCloser.Close())
	}
	return err
}

// setTimer sets the timer of this direction to the time within which bytes must move, or stops the timer. The caller
// must have locked the tunnel's mutex.
func (e *tunnelEnd) setTimer() {
	timeout := time.Duration(0) // no bound
	switch {
	case e.tunnel.closed, e.isFinished:
	case e.isWriting:
		timeout = tunnelStall
	case e.peer.isFinished:
		timeout = tunnelSilence
	}
	switch {
	case timeout > 0 && e.timer == nil:
		e.timer = time.AfterFunc(timeout, func() { _ = e.tunnel.Close() }) // ReverseProxy reports the error
	case timeout > 0:
		e.timer.Reset(timeout)
	case e.timer != nil:
		e.timer.Stop()
	}
}

// Read implements [io.Reader]. If the connection ends, Read notes that this end has finished sending.
func (e *tunnelEnd) Read(p []byte) (int, error) {
	n, err := e.ReadWriteCloser.Read(p)
	if errors.Is(err, io.EOF) {
		e.tunnel.mu.Lock()
		defer e.tunnel.mu.Unlock()
		e.isFinished = true
		e.setTimer()
		e.peer.setTimer()
	}
	return n, err
}

func (e *tunnelEnd) Write(p []byte) (int, error) {
	e.peer.setWriting(true)
	defer e.peer.setWriting(false)
	return e.ReadWriteCloser.Write(p)
}

func (e *tunnelEnd) setWriting(writing bool) {
	e.tunnel.mu.Lock()
	defer e.tunnel.mu.Unlock()
	e.isWriting = writing
	e.setTimer()
}

// CloseWrite closes the direction to this end. ReverseProxy calls it when the other end has finished sending.
func (e *tunnelEnd) CloseWrite() error {
	conn, ok := e.ReadWriteCloser.(interface{ CloseWrite() error })
	if !ok {
		return http.ErrNotSupported
	}
	return conn.CloseWrite()
}

func (e *tunnelEnd) Close() error { return e.tunnel.Close() }

// A hijackedEnd is the client's end as a net.Conn. Its methods Read, Write and Close belong to the tunnelEnd,
// because the net.Conn is embedded one level deeper.
type hijackedEnd struct {
	*tunnelEnd
	hijackedConn
}

type hijackedConn struct{ net.Conn }

// Hijack takes over the connection for another protocol. http.ResponseController calls it.
func (x *Exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(x.ResponseWriter).Hijack()
	if err != nil || x.tunnel == nil {
		return conn, buffer, err
	}
	x.tunnel.client.ReadWriteCloser = conn
	conn = hijackedEnd{&x.tunnel.client, hijackedConn{conn}}
	// ReverseProxy writes the header of the answer with this writer. The write may wait for the client.
	return conn, bufio.NewReadWriter(buffer.Reader, bufio.NewWriter(conn)), nil
}

// isHijacked reports whether the client's connection has become a tunnel.
func (x *Exchange) isHijacked() bool {
	return x.tunnel != nil && x.tunnel.client.ReadWriteCloser != nil
}
