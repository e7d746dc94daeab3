package serve

import (
	"crypto/tls"
	"fmt"
	"slices"

	"github.com/weir-go/weir/cmd/internal/config"
)

// A socketChange is a socket and the endpoint that it is to serve.
type socketChange struct {
	socket      *socket
	endpoint    endpoint
	bound       bool // by this change
	certificate *tls.Certificate
}

// socketChanges are what a reload does to the sockets. All that can fail is done by prepareSockets.
type socketChanges struct {
	wanted   []socketChange
	unwanted []*socket
}

// prepareSockets binds the addresses that are new and reads the certificates. A socket whose address is still wanted
// stays.
func (s *Server) prepareSockets(f *config.File) (_ *socketChanges, err error) {
	changes := &socketChanges{unwanted: slices.Clone(s.sockets)}
	defer func() {
		if err != nil {
			changes.abandon()
		}
	}()
	for _, want := range endpoints(f) {
		change := socketChange{endpoint: want}
		if t := want.listener.TLS; t != nil {
			pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("listen %s: tls: %w", want.listener.Address, err)
			}
			change.certificate = &pair
		}
		i := slices.IndexFunc(changes.unwanted, func(s *socket) bool {
			return s.address == want.listener.Address && s.server.endpoint.role == want.role
		})
		if i >= 0 {
			change.socket = changes.unwanted[i]
			changes.unwanted = slices.Delete(changes.unwanted, i, i+1)
		} else if change.socket, err = s.bind(want); err != nil {
			return nil, err
		} else {
			change.bound = true
		}
		changes.wanted = append(changes.wanted, change)
		if err := change.socket.checkReusePort(want.listener.ReusePort); err != nil {
			return nil, err
		}
	}
	return changes, s.config.Inherited.unclaimed()
}

// abandon closes the sockets that the changes have bound.
func (c *socketChanges) abandon() {
	for _, change := range c.wanted {
		if change.bound {
			_ = change.socket.Close()
		}
	}
}

// applySockets makes the changes.
func (s *Server) applySockets(changes *socketChanges, f *config.File) {
	budget := newBudget(s.config.OpenFiles, f)
	budget.warn(s.config.OpenFiles, s.config.Log)
	s.connections[clients].most.Store(budget.clients)
	s.connections[clients].clients.most.Store(perClient(f.Server.MaxConnectionsPerClient, budget.clients))
	s.connections[decisions].most.Store(budget.decisions)
	s.connections[redisClients].most.Store(budget.redis)
	s.connections[administrators].most.Store(budget.administrators)
	s.upstreams.most.Store(budget.upstreams)
	s.sockets = nil
	for _, change := range changes.wanted {
		if err := change.socket.setMode(change.endpoint.listener.Mode); err != nil {
			s.config.Log.Error("the mode of a socket stays as it was", "listen", change.socket.address, "err", err)
		}
		if change.bound || !change.socket.server.endpoint.equal(change.endpoint) {
			s.serveOn(change)
		} else if change.certificate != nil {
			change.socket.server.certificate.Store(change.certificate)
		}
		s.sockets = append(s.sockets, change.socket)
	}
	s.retired = slices.DeleteFunc(s.retired, func(h *socketServer) bool { return h.protocol.Open() == 0 })
	var closed []*socketServer
	for _, socket := range changes.unwanted {
		closed = append(closed, socket.shut())
	}
	s.drainLater(closed, f.Server.ShutdownTimeout)
}

// serveOn starts a server on a socket.
func (s *Server) serveOn(change socketChange) {
	next := s.newSocketServer(change.endpoint)
	next.certificate.Store(change.certificate)
	limit := s.connections[change.endpoint.role]
	var proxied *proxyProtocol
	if change.endpoint.listener.ProxyProtocol {
		proxied = &proxyProtocol{s.trustsPeer, change.endpoint.server.ReadHeaderTimeout}
	}
	if before := change.socket.setServer(next, limit, proxied, s.fail); before != nil {
		s.retired = append(s.retired, before)
	}
	if change.bound {
		s.config.Log.Info("listening", "url", change.socket.url(), "for", change.endpoint.role)
	}
}
