package serve

import (
	"net"
	"time"
)

// A socket is a bound address. It outlives the servers on it, so that no client finds the port closed while the
// settings change.
type socket struct {
	*net.TCPListener
	address string // as it was asked for
	server  *httpServer
}

// bind returns a socket without a server.
func bind(address string) (*socket, error) {
	l, err := listen(address)
	if err != nil {
		return nil, err
	}
	return &socket{TCPListener: l, address: address}, nil
}

// setServer starts a server on the socket and returns the one before it, which accepts no more connections.
// Connections that arrive in between wait in the system's queue.
func (s *socket) setServer(next *httpServer, limit *connLimit, proxied *proxyProtocol, failed func(error),
) (before *httpServer) {
	if before = s.server; before != nil {
		before.listener.retire()
		<-before.served
		_ = s.SetDeadline(time.Time{}) // fails on a closed socket only, which start reports
	}
	s.server = next
	next.start(&listener{TCPListener: s.TCPListener, limit: limit, proxied: proxied}, failed)
	return before
}

// shut closes the address. It returns the server, whose connections stay open.
func (s *socket) shut() *httpServer {
	s.server.listener.retire()
	_ = s.Close() // is closed, whatever it says
	<-s.server.served
	return s.server
}

// url is the URL at which a person can try it.
func (s *socket) url() string {
	if s.server.endpoint.listener.TLS != nil {
		return urlOf("https", s.Addr())
	}
	return urlOf("http", s.Addr())
}
