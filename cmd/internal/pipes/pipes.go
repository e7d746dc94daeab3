// Package pipes has connections in memory, for tests that move the time.
package pipes

import (
	"net"
	"sync"
)

// A Conn is one end of a pipe, as a connection of which each half can be closed.
type Conn struct{ net.Conn }

// CloseWrite does nothing: the other end is to go on.
func (c Conn) CloseWrite() error { return nil }

// Listener returns a listener to which one connection comes. A second call of Accept waits until it is closed.
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
