package listen

import (
	"net"
	"sync/atomic"
	"time"
)

// A listener accepts the connections of one server. Its socket stays open when the server is replaced.
type listener struct {
	streamListener
	limit       *ConnLimit
	proxy       *proxyProtocol // nil if connections begin with HTTP or TLS
	retired     atomic.Bool
	sendTimeout time.Duration // how long clients may accept no byte of an answer; 0 for no bound
}

// retire ends the current and all later calls of Accept.
func (l *listener) retire() {
	l.retired.Store(true)
	_ = l.SetDeadline(time.Unix(1, 0)) // fails only on a closed socket, where Accept has ended in any case
}

// Close implements [net.Listener]. The socket stays open for another server.
func (l *listener) Close() error { return nil }

func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.streamListener.Accept()
		switch {
		case err != nil && l.retired.Load():
			return nil, net.ErrClosed // not a timeout error, because net/http would then try again
		case err != nil:
			return nil, err
		}
		counted := l.limit.Admit(conn.(streamConn), l.sendTimeout)
		switch {
		case counted == nil: // the connection has been rejected
		case l.proxy != nil:
			return l.proxy.wrap(counted), nil
		default:
			return counted, nil
		}
	}
}
