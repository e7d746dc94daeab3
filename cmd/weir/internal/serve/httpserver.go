package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// An httpProtocol is an http.Server that counts its connections.
type httpProtocol struct {
	server      http.Server
	connections atomic.Int64
}

// newHTTPProtocol returns what answers an endpoint; over is TLS, nil for none.
func newHTTPProtocol(e endpoint, handler http.Handler, over *tls.Config, base context.Context, to *slog.Logger) *httpProtocol {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(over != nil)
	protocols.SetUnencryptedHTTP2(e.listener.H2C)
	h := &httpProtocol{}
	h.server = http.Server{
		Handler:           handler,
		Protocols:         protocols,
		TLSConfig:         over,
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
	if e.listener.ProxyProtocol {
		h.server.ConnContext = withProxiedConn
	}
	if e.role != clients {
		h.server.ReadTimeout, h.server.WriteTimeout = 0, 0 // event streams and profiles last
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
func (h *httpProtocol) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		h.connections.Add(1)
	case http.StateClosed, http.StateHijacked:
		h.connections.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}

// Open implements protocol.
func (h *httpProtocol) Open() int { return int(h.connections.Load()) }

// Serve implements protocol.
func (h *httpProtocol) Serve(l net.Listener) error {
	if h.server.TLSConfig != nil {
		return h.server.ServeTLS(l, "", "")
	}
	return h.server.Serve(l)
}

// Shutdown implements protocol.
func (h *httpProtocol) Shutdown(ctx context.Context) error {
	err := h.server.Shutdown(ctx)
	if err != nil {
		_ = h.server.Close() // closes connections, whose errors do not matter any more
	}
	return err
}
