package listen

import (
	"bytes"
	"context"
	"crypto/tls"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type httpProtocol struct {
	server      http.Server
	connections atomic.Int64
	open        sync.WaitGroup // waits for the counted connections
	unanswered  sync.WaitGroup // waits for connections whose first request was not answered yet
}

// beginTime is how long a shutdown waits for the first request on a new connection.
const beginTime = 5 * time.Second

// HTTP returns the protocol that answers an endpoint with a handler. The parameter tlsConfig is nil for no TLS.
func (s *Sockets) HTTP(e Endpoint, handler http.Handler, tlsConfig *tls.Config) Protocol {
	return newHTTPProtocol(e, s.withLastAnswers(handler), tlsConfig, s.config.Base, s.config.Log)
}

func newHTTPProtocol(e Endpoint, handler http.Handler, tlsConfig *tls.Config, base context.Context, logger *slog.Logger) *httpProtocol {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(tlsConfig != nil)
	protocols.SetUnencryptedHTTP2(e.HTTP.H2C)
	h := &httpProtocol{}
	h.server = http.Server{
		Protocols:         protocols,
		TLSConfig:         tlsConfig,
		ReadHeaderTimeout: e.HTTP.ReadHeaderTimeout,
		ReadTimeout:       e.HTTP.ReadHeaderTimeout, // until the handler sets the deadline of the body
		WriteTimeout:      e.HTTP.WriteTimeout,
		IdleTimeout:       e.HTTP.IdleTimeout,
		MaxHeaderBytes:    e.HTTP.MaxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 250,
			SendPingTimeout:      30 * time.Second, // detects a peer that has gone
			WriteByteTimeout:     time.Minute,      // detects a peer that does not read
		},
		ErrorLog:    errorLog(logger),
		BaseContext: func(net.Listener) context.Context { return base },
		ConnState:   h.count,
	}
	// "OPTIONS *" reaches the handler, because net/http's own handler would wait forever for the body.
	h.server.DisableGeneralOptionsHandler = true
	h.server.ConnContext = withConn
	if e.ProxyProtocol {
		h.server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
			return withProxiedConn(withConn(ctx, conn), conn)
		}
	}
	h.server.Handler = withBodyDeadline(handler, e.HTTP.ReadTimeout)
	return h
}

// errorLog returns the log of an http.Server. All lines have the same message, so that lines about bad clients are
// summed up.
func errorLog(logger *slog.Logger) *log.Logger {
	return log.New(writerFunc(func(line []byte) (int, error) {
		logger.Warn("a connection failed", "err", strings.TrimPrefix(string(bytes.TrimSuffix(line, []byte("\n"))), "http: "))
		return len(line), nil
	}), "", 0)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// count counts the open connections, because a shutdown waits for them. A hijacked connection no longer counts.
func (h *httpProtocol) count(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		h.connections.Add(1)
		h.open.Add(1)
		h.unanswered.Add(1)
		connOf(conn).markIdle()
	case http.StateClosed, http.StateHijacked:
		h.markAnswered(conn)
		h.connections.Add(-1)
		h.open.Done()
	case http.StateIdle:
		h.markAnswered(conn)
		connOf(conn).markIdle()
	case http.StateActive:
		connOf(conn).markActive()
	}
}

// markAnswered notes that a connection's first request was answered, or that the connection has ended.
func (h *httpProtocol) markAnswered(conn net.Conn) {
	if c := connOf(conn); !c.answered {
		c.answered = true
		h.unanswered.Done()
	}
}

func (h *httpProtocol) Scheme() string { return "http" }

func (h *httpProtocol) Open() int { return int(h.connections.Load()) }

func (h *httpProtocol) Serve(l net.Listener) error {
	if h.server.TLSConfig != nil {
		return h.server.ServeTLS(l, "", "")
	}
	return h.server.Serve(l)
}

// Outlast implements [Protocol]. HTTP/1.1 announces the end of a connection in a header field, and HTTP/2 in a frame.
func (h *httpProtocol) Outlast(ctx context.Context) {
	await(ctx, &h.open)
}

func await(ctx context.Context, wg *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// withLastAnswers returns a handler that announces the end of a connection in its next answer, once [Sockets.Leave] was
// called. This does not work for a WebSocket, because the answer that opens it has another Connection field. WebSockets
// are cut off later.
func (s *Sockets) withLastAnswers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.leaving.Load() && r.Header.Get("Upgrade") == "" {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// Shutdown implements [Protocol]. If an http.Server shuts down while it reads the request of a new connection, it
// closes the connection. So Shutdown first waits for the first requests of new connections, for at most beginTime.
func (h *httpProtocol) Shutdown(ctx context.Context) error {
	beginCtx, cancel := context.WithTimeout(ctx, beginTime)
	defer cancel()
	await(beginCtx, &h.unanswered)
	err := h.server.Shutdown(ctx)
	if err != nil {
		_ = h.server.Close() // closes the remaining connections; an error does not matter here
	}
	return err
}
