package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
)

// A socketServer is a server on a socket. Its settings never change: a reload that wants others starts another server
// on the socket, and this one keeps its connections.
type socketServer struct {
	endpoint    endpoint
	protocol    protocol
	certificate atomic.Pointer[tls.Certificate]
	listener    *listener
	served      chan struct{} // closed when it accepts no more connections
}

// A protocol answers the connections of a listener: an httpProtocol or a [respdoor.Server].
type protocol interface {
	// Serve accepts connections until the listener fails, and returns its error.
	Serve(net.Listener) error
	// Outlast waits until there is no connection left whose end the protocol can announce, or ctx is done. No
	// connection is accepted any more.
	Outlast(ctx context.Context)
	// Shutdown waits until the requests under way have ended. When ctx is done it cuts off those that are left and
	// returns an error.
	Shutdown(ctx context.Context) error
	// Open returns how many connections there are.
	Open() int
}

// newSocketServer returns a server of an endpoint that does not serve yet.
func (s *Server) newSocketServer(e endpoint) *socketServer {
	h := &socketServer{endpoint: e}
	var over *tls.Config
	if e.listener.TLS != nil {
		over = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return h.certificate.Load(), nil },
		}
	}
	if e.role == redisClients {
		h.protocol = s.newRedisProtocol(over)
		return h
	}
	handler := s.withLastAnswers(s.handler(e.role))
	if e.listener.ProxyProtocol {
		handler = s.withoutForgedClient(handler)
	}
	h.protocol = newHTTPProtocol(e, handler, over, s.base, s.config.Log)
	return h
}

// start accepts connections until the listener is retired. Any other end is passed to failed.
func (h *socketServer) start(l *listener, failed func(error)) {
	h.listener, h.served = l, make(chan struct{})
	go func() {
		defer close(h.served)
		if err := h.protocol.Serve(l); !l.retired.Load() && !errors.Is(err, http.ErrServerClosed) {
			failed(err)
		}
	}()
}

// drain waits until the requests under way have ended or ctx is done, and reports which: true if they have ended. The
// listener must be retired.
func (h *socketServer) drain(ctx context.Context) bool { return h.protocol.Shutdown(ctx) == nil }
