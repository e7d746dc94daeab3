// Package pipes has connections in memory, for tests in simulated time.
package pipes

import (
	"net"
	"sync"
)

// A Conn is one end of a pipe. It has the method CloseWrite, like a connection that can be closed in one direction.
type Conn struct{ net.Conn }

// CloseWrite does nothing, because the other direction must continue.
func (c Conn) CloseWrite() error { return nil }

// Listener returns a listener that accepts conn once. The next call of Accept waits until the listener is closed.
func Listener(conn net.Conn) net.Listener { return &listener{conn: conn, closed: make(chan struct{})} }

type listener struct {
	conn   net.Conn
	once   sync.Once
	closed chan struct{}
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
