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
	// tunnelSilence is how long one end of a tunnel may send nothing after the other has sent its last byte.
	tunnelSilence = 10 * time.Second
	// tunnelStall is how long an end may accept none of the bytes that wait for it.
	tunnelStall = time.Minute
)

// A tunnel is a request that has become two connections, as a WebSocket does. [httputil.ReverseProxy] copies between
// them until both ends have sent their last byte, or one has broken off.
//
// Without a tunnel it would wait forever if one end does not react when the other has finished. The request would keep
// its place among those in flight, and two open files. So the remaining end may continue only while it sends something
// every few seconds. An end that accepts nothing for a minute ends the tunnel, too, because the other end's last byte
// cannot pass it.
type tunnel struct {
	mu               sync.Mutex
	client, upstream tunnelEnd
	closed           bool
}

// A tunnelEnd is one of the connections. One goroutine reads from it, and another one writes to it.
type tunnelEnd struct {
	io.ReadWriteCloser // nil for a client that has not been hijacked
	tunnel             *tunnel
	other              *tunnelEnd

	// These are about the bytes from this end to the other one. The mutex of the tunnel guards them.
	ended   bool        // the end has sent its last byte
	writing bool        // bytes wait for the other end
	timer   *time.Timer // closes the tunnel; nil before it is needed
}

var errUnasked = errors.New("the upstream changes to a protocol that the client did not ask for")

// openTunnel makes the connection of an answer that changes the protocol one end of a tunnel. It returns an error if
// the client did not ask for the protocol that the upstream changes to. ReverseProxy checks this, too, but leaves the
// connection open.
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

// upgradeOf returns the protocol that a message changes to or asks for; "" for none.
func upgradeOf(header http.Header) string {
	if !httpguts.HeaderValuesContainsToken(header["Connection"], "Upgrade") {
		return ""
	}
	return header.Get("Upgrade")
}

// Close closes both connections. ReverseProxy calls it at its end. It is also called when the server ends.
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

// await sets the timer for the next step in this end's direction. The tunnel must be locked.
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

// Read implements [io.Reader].
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

// CloseWrite notes that the other end has sent its last byte, and closes this direction.
func (e *tunnelEnd) CloseWrite() error {
	half, is := e.ReadWriteCloser.(interface{ CloseWrite() error })
	if !is {
		return http.ErrNotSupported
	}
	return half.CloseWrite()
}

// Close implements [io.Closer]: both connections end.
func (e *tunnelEnd) Close() error { return e.tunnel.Close() }

// A hijackedEnd is the end of the client. Its Read and Write are the tunnelEnd's, which is embedded at the smaller
// depth.
type hijackedEnd struct {
	*tunnelEnd
	hijackedConn
}

type hijackedConn struct{ net.Conn }

// Hijack is for http.ResponseController. A hijacked connection uses another protocol.
func (x *Exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(x.ResponseWriter).Hijack()
	if err != nil || x.tunnel == nil {
		return conn, buffer, err
	}
	x.tunnel.client.ReadWriteCloser = conn
	conn = hijackedEnd{&x.tunnel.client, hijackedConn{conn}}
	// ReverseProxy writes the answer with this writer, before it copies anything. This write may wait for the client,
	// too.
	return conn, bufio.NewReadWriter(buffer.Reader, bufio.NewWriter(conn)), nil
}

// isHijacked reports whether the upstream has changed the protocol and the client is to get the answer.
func (x *Exchange) isHijacked() bool {
	return x.tunnel != nil && x.tunnel.client.ReadWriteCloser != nil
}
