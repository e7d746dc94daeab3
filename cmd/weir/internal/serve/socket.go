package serve

import (
	"cmp"
	"io/fs"
	"os"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// A socket is a bound address. It outlives the servers on it, so that no client finds the port closed while the
// settings change.
type socket struct {
	bound
	address string      // as it was asked for
	mode    fs.FileMode // of a Unix socket
	server  *socketServer
}

// bind returns a socket without a server.
func bind(address string, mode fs.FileMode) (*socket, error) {
	l, err := listen(address, mode)
	if err != nil {
		return nil, err
	}
	return &socket{bound: l, address: address, mode: mode}, nil
}

// setServer starts a server on the socket and returns the one before it, which accepts no more connections.
// Connections that arrive in between wait in the system's queue.
func (s *socket) setServer(next *socketServer, limit *connLimit, proxied *proxyProtocol, failed func(error),
) (before *socketServer) {
	if before = s.server; before != nil {
		before.listener.retire()
		<-before.served
		_ = s.SetDeadline(time.Time{}) // fails on a closed socket only, which start reports
	}
	s.server = next
	next.start(&listener{bound: s.bound, limit: limit, proxied: proxied}, failed)
	return before
}

// setMode changes the mode of a Unix socket.
func (s *socket) setMode(mode fs.FileMode) error {
	path, isSocket := config.SocketPath(s.address)
	if !isSocket || mode == s.mode {
		return nil
	}
	s.mode = mode
	return os.Chmod(path, cmp.Or(mode, config.DefaultMode))
}

// shut closes the address. It returns the server, whose connections stay open.
func (s *socket) shut() *socketServer {
	s.server.listener.retire()
	_ = s.Close() // is closed, whatever it says
	<-s.server.served
	return s.server
}

// url is the URL at which a person can try it.
func (s *socket) url() string {
	scheme := "http"
	if s.server.endpoint.role == redisClients {
		scheme = "redis"
	}
	if s.server.endpoint.listener.TLS != nil {
		scheme += "s"
	}
	return urlOf(scheme, s.Addr())
}
