package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// An httpServer is an http.Server on a socket. Its settings never change: a reload that wants others starts another
// server on the socket, and this one keeps its connections.
type httpServer struct {
	endpoint    endpoint
	server      http.Server
	certificate atomic.Pointer[tls.Certificate]
	connections atomic.Int64
	listener    *listener
	served      chan struct{} // closed when it accepts no more connections
}

// newHTTPServer returns a server that does not serve yet.
func newHTTPServer(e endpoint, handler http.Handler, base context.Context, to *slog.Logger) *httpServer {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(e.listener.TLS != nil)
	protocols.SetUnencryptedHTTP2(e.listener.H2C)
	h := &httpServer{endpoint: e}
	h.server = http.Server{
		Handler:           handler,
		Protocols:         protocols,
		ReadHeaderTimeout: e.server.ReadHeaderTimeout, // of a TLS handshake, too
		ReadTimeout:       e.server.ReadTimeout,
		WriteTimeout:      e.server.WriteTimeout,
		IdleTimeout:       e.server.IdleTimeout,
		MaxHeaderBytes:    e.server.MaxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 250,
			SendPingTimeout:      30 * time.Second, // finds a peer that is gone
			WriteByteTimeout:     time.Minute,      // finds a peer that does not read
		},
		ErrorLog:    errorLog(to),
		BaseContext: func(net.Listener) context.Context { return base },
		ConnState:   h.count,
	}
	if e.role != clients {
		h.server.ReadTimeout, h.server.WriteTimeout = 0, 0 // event streams and profiles last
	}
	if e.listener.TLS != nil {
		h.server.TLSConfig = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return h.certificate.Load(), nil },
		}
	}
	return h
}

// errorLog returns the log of an http.Server. All its lines have the same message, so that those about bad clients,
// which differ in the address, are summed up.
func errorLog(to *slog.Logger) *log.Logger {
	return log.New(writerFunc(func(line []byte) (int, error) {
		to.Warn("a connection failed", "err", strings.TrimPrefix(string(bytes.TrimSuffix(line, []byte("\n"))), "http: "))
		return len(line), nil
	}), "", 0)
}

// A writerFunc is an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// count keeps the number of connections that end with the server. A hijacked one does not.
func (h *httpServer) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		h.connections.Add(1)
	case http.StateClosed, http.StateHijacked:
		h.connections.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}

// start accepts connections until the listener is retired. Any other end is passed to failed.
func (h *httpServer) start(l *listener, failed func(error)) {
	h.listener, h.served = l, make(chan struct{})
	go func() {
		defer close(h.served)
		var err error
		if h.endpoint.listener.TLS != nil {
			err = h.server.ServeTLS(l, "", "")
		} else {
			err = h.server.Serve(l)
		}
		if !l.retired.Load() && !errors.Is(err, http.ErrServerClosed) {
			failed(err)
		}
	}()
}

// drain waits until the requests under way have ended or ctx is done, and reports which: true if they have ended. The
// listener must be retired.
func (h *httpServer) drain(ctx context.Context) bool {
	if h.server.Shutdown(ctx) == nil {
		return true
	}
	_ = h.server.Close() // closes connections, whose errors do not matter any more
	return false
}
