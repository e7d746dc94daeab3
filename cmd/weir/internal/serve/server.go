package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/weir-go/weir/engine"
)

// Config is what a server needs; all of it but Upstream.
type Config struct {
	Listen   Address
	Upstream *Upstream // nil for the built-in echo
	Key      KeySource
	Limiter  *engine.Limiter // the caller's: the server does not close it
	Log      *slog.Logger
}

// How long the server waits for whom. A slow client may not hold a connection
// by sending its header byte by byte; a body, and an answer, may take as long as
// they move, because uploads and streams are the upstream's business.
const (
	headerTimeout   = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 10 * time.Second // for requests under way at the end
	maxHeaderBytes  = 64 << 10
)

// Server is a server that has its port. Make one with Listen, then call Run.
type Server struct {
	config   Config
	listener net.Listener
	counts   counters
	proxy    *proxy // nil for the echo
	http     http.Server
}

// Listen binds the port, so that a port in use is known before anything is
// said to listen, and clients can connect from now on.
func Listen(c Config) (*Server, error) {
	listener, err := c.Listen.listen()
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, listener: listener}
	next := admitted(echo)
	if c.Upstream != nil {
		s.proxy = newProxy(c.Upstream, &s.counts, c.Log)
		next = s.proxy.serve
	}
	s.http = http.Server{
		Handler:           &gate{limiter: c.Limiter, source: c.Key, counts: &s.counts, log: c.Log, next: next},
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
	}
	return s, nil
}

// URL is where the server can be tried from this machine, with the port it
// really has.
func (s *Server) URL() string { return urlOf(s.listener) }

// Run serves until ctx ends, then stops accepting, gives the requests under way
// a moment to finish and logs a summary. Call it once. The error is that of a
// listener that broke; the end of ctx is none.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.listener) }()

	var err error
	select {
	case <-ctx.Done():
		s.shutdown()
		<-failed // Serve has returned
	case err = <-failed:
	}
	if s.proxy != nil {
		s.proxy.close()
	}
	s.config.Log.LogAttrs(context.Background(), slog.LevelInfo, "stopped", s.counts.summary(s.config.Limiter.Stats())...)
	return err
}

func (s *Server) shutdown() {
	s.config.Log.Info("stopping: waiting for requests under way", "at_most", shutdownTimeout)
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := s.http.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
		s.config.Log.Warn("requests were cut off: they did not finish in time")
		_ = s.http.Close() // only closes connections, whose errors are moot
	}
}
