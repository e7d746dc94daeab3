package listen

import (
	"io/fs"
	"net"

	"github.com/weir-go/weir/internal/unixsocket"
)

// A localListener is the listener of a Unix socket. Its peers count as 127.0.0.1.
type localListener struct{ *unixsocket.Listener }

// listenUnix binds a Unix socket whose file gets the mode.
func listenUnix(path string, mode fs.FileMode) (*localListener, error) {
	l, err := unixsocket.Listen(path, mode)
	if err != nil {
		return nil, err
	}
	return &localListener{l}, nil
}

// adoptUnix returns the listener of a Unix socket that another process has bound.
func adoptUnix(l *net.UnixListener, path string) (*localListener, error) {
	adopted, err := unixsocket.Adopt(l, path)
	if err != nil {
		return nil, err
	}
	return &localListener{adopted}, nil
}

func (l *localListener) Accept() (net.Conn, error) {
	conn, err := l.AcceptUnix()
	if err != nil {
		return nil, err
	}
	return localConn{conn}, nil
}

// A localConn is a connection over a Unix socket, whose peer counts as 127.0.0.1. The file's permissions decide who may
// connect, and trusted_proxies decides whether the peer counts as a proxy.
type localConn struct{ *net.UnixConn }

var localAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}

func (localConn) RemoteAddr() net.Addr { return localAddr }

// LocalAddr implements [net.Conn]. It returns no Unix address. If the local address were a Unix socket, package
// httplimit would not trust the peer.
func (localConn) LocalAddr() net.Addr { return localAddr }
