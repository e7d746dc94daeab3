package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
)

// A server serves a socket. Its settings never change: a reload with other settings starts a new server on the socket.
// The previous server keeps its connections.
type server struct {
	endpoint    Endpoint
	protocol    Protocol
	certificate atomic.Pointer[tls.Certificate]
	listener    *listener
	acceptDone  chan struct{} // closed when the server accepts no more connections
}

// A Protocol answers the connections of a listener.
type Protocol interface {
	// Scheme returns the scheme of URLs without TLS.
	Scheme() string
	// Serve accepts connections until the listener fails, and returns its error.
	Serve(net.Listener) error
	// Outlast waits for connections to end, until ctx is done. It waits only for connections to whose clients the
	// protocol can announce the end. No new connections are accepted.
	Outlast(ctx context.Context)
	// Shutdown waits for the requests in progress. When ctx is done, it cuts off the remaining connections and returns
	// an error.
	Shutdown(ctx context.Context) error
	// Open returns the number of connections.
	Open() int
}

// newServer returns a server that does not serve yet.
func (s *Sockets) newServer(e Endpoint) *server {
	h := &server{endpoint: e}
	var tlsConfig *tls.Config
	if e.Certificate != (Certificate{}) {
		tlsConfig = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return h.certificate.Load(), nil },
		}
	}
	h.protocol = s.config.Protocol(e, tlsConfig)
	return h
}

// start accepts connections until the listener is retired. If accepting ends for another reason, start calls onFailure.
func (h *server) start(l *listener, onFailure func(error)) {
	h.listener, h.acceptDone = l, make(chan struct{})
	go func() {
		defer close(h.acceptDone)
		if err := h.protocol.Serve(l); !l.retired.Load() && !errors.Is(err, http.ErrServerClosed) {
			onFailure(err)
		}
	}()
}
