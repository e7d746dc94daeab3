package listen

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config has the settings of [Sockets].
type Config struct {
	Base      context.Context     // context of all requests; its end cuts off connections that are being drained
	Inherited *Inherited          // sockets that the process got at its start; nil for none
	Limits    map[Role]*ConnLimit // has a limit for every role
	// Trusts reports whether a peer's PROXY protocol header is trusted.
	Trusts func(netip.Addr) bool
	// Protocol returns the protocol of an endpoint. The parameter tlsConfig is nil for no TLS.
	Protocol func(e Endpoint, tlsConfig *tls.Config) Protocol
	Failed   func(error) // called when a listener fails
	Log      *slog.Logger
}

// Sockets has the open sockets of a server. Only one goroutine at a time may call its methods, except [Sockets.Leave]
// and [Sockets.Leaving].
type Sockets struct {
	config   Config
	open     []*socket
	retired  []*server      // replaced servers that still have connections
	draining sync.WaitGroup // waits for the servers of sockets that a change has closed
	leaving  atomic.Bool
}

// New returns Sockets without an open socket. [Sockets.Prepare] opens sockets.
func New(c Config) *Sockets { return &Sockets{config: c} }

type change struct {
	socket      *socket
	endpoint    Endpoint
	isNew       bool // this change has bound the socket
	certificate *tls.Certificate
}

// Changes lead from the current endpoints to new endpoints. [Sockets.Prepare] has already done everything that can
// fail.
type Changes struct {
	sockets  *Sockets
	wanted   []change
	unwanted []*socket
}

// Prepare binds new addresses and reads certificates. Sockets with an endpoint's address stay open. The caller must
// call Apply or Abandon on the result. After an error nothing has changed.
func (s *Sockets) Prepare(endpoints []Endpoint) (_ *Changes, err error) {
	changes := &Changes{sockets: s, unwanted: slices.Clone(s.open)}
	defer func() {
		if err != nil {
			changes.Abandon()
		}
	}()
	for _, want := range endpoints {
		next := change{endpoint: want}
		if c := want.Certificate; c != (Certificate{}) {
			pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("listen %s: tls: %w", want.Address, err)
			}
			next.certificate = &pair
		}
		i := slices.IndexFunc(changes.unwanted, func(s *socket) bool {
			return s.address == want.Address && s.server.endpoint.Role == want.Role
		})
		if i >= 0 {
			next.socket = changes.unwanted[i]
			changes.unwanted = slices.Delete(changes.unwanted, i, i+1)
		} else if next.socket, err = s.bind(want); err != nil {
			return nil, err
		} else {
			next.isNew = true
		}
		changes.wanted = append(changes.wanted, next)
		if err := next.socket.checkReusePort(want.ReusePort); err != nil {
			return nil, err
		}
	}
	return changes, s.config.Inherited.unclaimed()
}

// Abandon closes the sockets that the changes have bound.
func (c *Changes) Abandon() {
	for _, change := range c.wanted {
		if change.isNew {
			_ = change.socket.Close()
		}
	}
}

// Apply makes the changes and closes sockets that are no longer needed. It does not wait: in the background, the
// servers of these sockets finish requests in progress, but no longer than timeout.
func (c *Changes) Apply(timeout time.Duration) {
	s := c.sockets
	s.open = nil
	for _, change := range c.wanted {
		if err := change.socket.setMode(change.endpoint.Mode); err != nil {
			s.config.Log.Error("the mode of a socket stays as it was", "listen", change.socket.address, "err", err)
		}
		if change.isNew || change.socket.server.endpoint != change.endpoint {
			s.serveOn(change)
		} else if change.certificate != nil {
			change.socket.server.certificate.Store(change.certificate)
		}
		s.open = append(s.open, change.socket)
	}
	s.retired = slices.DeleteFunc(s.retired, func(h *server) bool { return h.protocol.Open() == 0 })
	var closed Servers
	for _, socket := range c.unwanted {
		closed = append(closed, socket.shut())
	}
	s.drainLater(closed, timeout)
}

func (s *Sockets) serveOn(change change) {
	next := s.newServer(change.endpoint)
	next.certificate.Store(change.certificate)
	var proxy *proxyProtocol
	if change.endpoint.ProxyProtocol {
		proxy = &proxyProtocol{s.config.Trusts, change.endpoint.HTTP.ReadHeaderTimeout}
	}
	if prev := change.socket.setServer(next, s.config.Limits[next.endpoint.Role], proxy, s.config.Failed); prev != nil {
		s.retired = append(s.retired, prev)
	}
	if change.isNew {
		s.config.Log.Info("listening", "url", change.socket.url(), "for", change.endpoint.Role)
	}
}

// URL returns the URL of the first endpoint of a role, as seen from this machine. It has the actual port. It is "" if
// the role has no endpoint.
func (s *Sockets) URL(r Role) string {
	for _, socket := range s.open {
		if socket.server.endpoint.Role == r {
			return socket.url()
		}
	}
	return ""
}
