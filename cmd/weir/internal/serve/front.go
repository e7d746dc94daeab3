package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// A front is an http.Server on a socket. Its settings are for ever: a reload that changes them puts
// another front on the socket, and this one keeps the connections that it has.
type front struct {
	post        post
	server      http.Server
	certificate atomic.Pointer[tls.Certificate]
	connections atomic.Int64
	door        *door
	served      chan struct{} // closed when it takes no more connections
}

// A post is what a socket is for, and the settings that its front has.
type post struct {
	role     role
	listener config.Listener
	server   config.Server
}

// A role is who is served on a socket.
type role string

const (
	clients        role = "clients"
	decisions      role = "decisions"
	administrators role = "administrators"
)

// newFront returns one that does not serve yet.
func newFront(p post, handler http.Handler, base context.Context, log *slog.Logger) *front {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(p.listener.TLS != nil)
	protocols.SetUnencryptedHTTP2(p.listener.H2C)
	f := &front{post: p}
	f.server = http.Server{
		Handler:           handler,
		Protocols:         protocols,
		ReadHeaderTimeout: p.server.ReadHeaderTimeout, // of a TLS handshake, too
		ReadTimeout:       p.server.ReadTimeout,
		WriteTimeout:      p.server.WriteTimeout,
		IdleTimeout:       p.server.IdleTimeout,
		MaxHeaderBytes:    p.server.MaxHeaderBytes,
		// A peer that has gone without a word is noticed, and one that does not read.
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: 250, SendPingTimeout: 30 * time.Second, WriteByteTimeout: time.Minute},
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return base },
		ConnState:   f.count,
	}
	if p.role != clients {
		f.server.ReadTimeout, f.server.WriteTimeout = 0, 0 // event streams and profiles last
	}
	if p.listener.TLS != nil {
		f.server.TLSConfig = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.certificate.Load(), nil },
		}
	}
	return f
}

// count keeps the number of connections that the front has to look after.
func (f *front) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		f.connections.Add(1)
	case http.StateClosed, http.StateHijacked:
		f.connections.Add(-1)
	}
}

// start serves at a door. What breaks that is told to failed; that the door is shut does not.
func (f *front) start(d *door, failed func(error)) {
	f.door, f.served = d, make(chan struct{})
	go func() {
		defer close(f.served)
		var err error
		if f.post.listener.TLS != nil {
			err = f.server.ServeTLS(d, "", "")
		} else {
			err = f.server.Serve(d)
		}
		if !d.shut.Load() && !errors.Is(err, http.ErrServerClosed) {
			failed(err)
		}
	}()
}

// drain lets the requests under way finish, until ctx is done, and reports whether they did.
// The door is shut.
func (f *front) drain(ctx context.Context) bool {
	if f.server.Shutdown(ctx) == nil {
		return true
	}
	_ = f.server.Close() // only closes connections, whose errors are moot
	return false
}
