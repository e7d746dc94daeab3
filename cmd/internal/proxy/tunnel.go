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
	// tunnelSilence is how long one end of a tunnel may send nothing when the other end has finished sending.
	tunnelSilence = 10 * time.Second
	// tunnelStall is how long an end of a tunnel may accept no byte while bytes wait for it.
	tunnelStall = time.Minute
)

// A tunnel has the two connections of a request that has changed the protocol, such as a WebSocket: one to the client
// and one to the upstream. [httputil.ReverseProxy] copies between them until both ends have finished sending, or one
// connection has broken off.
//
// If one end finishes sending and the other end does not react, ReverseProxy alone would wait forever. Meanwhile, the
// request would count as in flight, and keep two files open. So when one end has finished, the other end may continue
// only while it sends something every few seconds. The tunnel also ends if an end accepts nothing for a minute, because
// in that case the end of the other direction can never be passed on.
type tunnel struct {
	mu               sync.Mutex
	client, upstream tunnelEnd
	closed           bool
}

// A tunnelEnd is one of the two connections. One goroutine reads from it, and another one writes to it.
type tunnelEnd struct {
	io.ReadWriteCloser // nil for a client that has not been hijacked
	tunnel             *tunnel
	other              *tunnelEnd

	// These fields are about the direction from this end to the other end. The mutex of the tunnel guards them.
	ended   bool        // this end has finished sending
	writing bool        // bytes wait for the other end
	timer   *time.Timer // closes the tunnel; nil before it is used
}

var errUnasked = errors.New("the upstream changes to a protocol that the client did not ask for")

// openTunnel makes the connection of an answer that changes the protocol one end of a tunnel. It returns an error if
// the client did not ask for the protocol that the upstream changes to. ReverseProxy checks this, too, but would leave
// the connection open.
func (x *Exchange) openTunnel(answer *http.Response) error {
	asked, got := upgradeOf(answer.Request.Header), upgradeOf(answer.Header)
	if asked == "" || !strings.EqualFold(asked, got) {
		return fmt.Errorf("%w: %q", errUnasked, got)
	}
	upstream, is := answer.Body.(io.ReadWriteCloser)
	if !is {
		return fmt.Errorf("the connection to the upstream is a %T, which cannot be written to", answer.Body)
	}
	t := &tunnel{}
	t.client.tunnel, t.client.other = t, &t.upstream
	t.upstream = tunnelEnd{ReadWriteCloser: upstream, tunnel: t, other: &t.client}
	x.tunnel, answer.Body = t, &t.upstream
	return nil
}

// upgradeOf returns the protocol to which a message changes, or asks to change; "" if there is none.
func upgradeOf(header http.Header) string {
	if !httpguts.HeaderValuesContainsToken(header["Connection"], "Upgrade") {
		return ""
	}
	return header.Get("Upgrade")
}

// Close closes both connections. ReverseProxy calls it when it has finished. It is also called when the server ends.
func (t *tunnel) Close() error {
	t.mu.Lock()
	t.closed = true
	t.client.await()
	t.upstream.await()
	t.mu.Unlock()
	err := t.upstream.ReadWriteCloser.Close()
	if t.client.ReadWriteCloser != nil {
		err = errors.Join(err, t.client.ReadWriteCloser.Close())
	}
	return err
}

// await sets the timer of this end's direction to the time within which something must happen next. It stops the timer
// if there is no such time. The mutex of the tunnel must be locked.
func (e *tunnelEnd) await() {
	most := time.Duration(0) // no bound
	switch {
	case e.tunnel.closed, e.ended:
	case e.writing:
		most = tunnelStall
	case e.other.ended:
		most = tunnelSilence
	}
	switch {
	case most > 0 && e.timer == nil:
		e.timer = time.AfterFunc(most, func() { _ = e.tunnel.Close() }) // ReverseProxy reports the error
	case most > 0:
		e.timer.Reset(most)
	case e.timer != nil:
		e.timer.Stop()
	}
}

// Read implements [io.Reader]. At the end of the connection, it notes that this end has finished sending.
func (e *tunnelEnd) Read(into []byte) (int, error) {
	n, err := e.ReadWriteCloser.Read(into)
	if errors.Is(err, io.EOF) {
		e.tunnel.mu.Lock()
		defer e.tunnel.mu.Unlock()
		e.ended = true
		e.await()
		e.other.await()
	}
	return n, err
}

// Write implements [io.Writer].
func (e *tunnelEnd) Write(from []byte) (int, error) {
	e.other.setWriting(true)
	defer e.other.setWriting(false)
	return e.ReadWriteCloser.Write(from)
}

func (e *tunnelEnd) setWriting(to bool) {
	e.tunnel.mu.Lock()
	defer e.tunnel.mu.Unlock()
	e.writing = to
	e.await()
}

// CloseWrite notes that the other end has finished sending, and closes the direction to this end.
func (e *tunnelEnd) CloseWrite() error {
	half, is := e.ReadWriteCloser.(interface{ CloseWrite() error })
	if !is {
		return http.ErrNotSupported
	}
	return half.CloseWrite()
}

// Close implements [io.Closer]. It closes both connections.
func (e *tunnelEnd) Close() error { return e.tunnel.Close() }

// A hijackedEnd is the client's end as a net.Conn. Its methods Read, Write and Close come from the tunnelEnd and not
// from the net.Conn, because the tunnelEnd is embedded at a lower depth.
type hijackedEnd struct {
	*tunnelEnd
	hijackedConn
}

type hijackedConn struct{ net.Conn }

// Hijack hijacks the connection, for http.ResponseController. A hijacked connection uses another protocol.
func (x *Exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(x.ResponseWriter).Hijack()
	if err != nil || x.tunnel == nil {
		return conn, buffer, err
	}
	x.tunnel.client.ReadWriteCloser = conn
	conn = hijackedEnd{&x.tunnel.client, hijackedConn{conn}}
	// ReverseProxy writes the header of the answer with this writer, before it copies anything. This write may have to
	// wait for the client, too.
	return conn, bufio.NewReadWriter(buffer.Reader, bufio.NewWriter(conn)), nil
}

// isHijacked reports whether the request has become a tunnel and the client's connection has been hijacked.
func (x *Exchange) isHijacked() bool {
	return x.tunnel != nil && x.tunnel.client.ReadWriteCloser != nil
}
