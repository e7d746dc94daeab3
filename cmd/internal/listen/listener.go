package listen

import (
	"net"
	"sync/atomic"
	"time"
)

// A listener accepts the connections of one server. The socket under it stays open when the server is replaced.
type listener struct {
	bound
	limit   *ConnLimit
	proxied *proxyProtocol // nil if connections begin with HTTP or TLS
	retired atomic.Bool
	send    time.Duration // how long clients may accept no byte of an answer; 0 for no bound
}

// retire ends a running call of Accept and all later ones.
func (l *listener) retire() {
	l.retired.Store(true)
	_ = l.SetDeadline(time.Unix(1, 0)) // only fails on a closed socket, for which Accept has ended
}

// Close implements [net.Listener]. The socket stays open, because other servers may follow the one that calls Close at
// its end.
func (l *listener) Close() error { return nil }

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.bound.Accept()
		switch {
		case err != nil && l.retired.Load():
			return nil, net.ErrClosed // net/http would try again after a timeout error
		case err != nil:
			return nil, err
		}
		counted := l.limit.Admit(conn.(streamConn), l.send)
		switch {
		case counted == nil: // it has been rejected
		case l.proxied != nil:
			return l.proxied.wrap(counted), nil
		default:
			return counted, nil
		}
	}
}
