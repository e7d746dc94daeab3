package resp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Server answers the clients of a listener.
type Server struct {
	// Settings returns the current settings. It is called for each batch, from any goroutine. Later, Leave of the
	// returned settings is called. If Settings returns nil, the settings no longer exist, and each connection keeps the
	// settings that it used last.
	Settings func() *Settings
	// TLS is the TLS configuration; nil for none.
	TLS *tls.Config
	// Counters counts commands and connections. Several servers may share it. It must not be nil.
	Counters *Counters
	// Version is the version of the program.
	Version string

	mutex    sync.Mutex
	conns    map[*conn]struct{}
	draining bool
	handlers sync.WaitGroup
	lastID   atomic.Int64
}

// Serve accepts connections until the listener fails, and returns its error. Each connection has a goroutine. If the
// system has no room for another connection, Serve waits a little and tries again.
func (s *Server) Serve(l net.Listener) error {
	const minPause, maxPause = 5 * time.Millisecond, time.Second
	pause := minPause
	for {
		netConn, err := l.Accept()
		if err != nil && slices.ContainsFunc(temporaryErrors, func(e error) bool { return errors.Is(err, e) }) {
			time.Sleep(pause)
			pause = min(2*pause, maxPause)
			continue
		}
		if err != nil {
			return err
		}
		pause = minPause
		if s.TLS != nil {
			netConn = tls.Server(netConn, s.TLS)
		}
		c := &conn{Conn: netConn, server: s, id: s.lastID.Add(1)}
		if !s.add(c) {
			_ = netConn.Close()
			continue
		}
		go func() {
			defer s.remove(c)
			c.serve()
		}()
	}
}

var temporaryErrors = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}

func (s *Server) add(c *conn) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.draining {
		return false
	}
	if s.conns == nil {
		s.conns = map[*conn]struct{}{}
	}
	s.conns[c] = struct{}{}
	s.handlers.Add(1)
	return true
}

func (s *Server) remove(c *conn) {
	_ = c.Close()
	s.mutex.Lock()
	delete(s.conns, c)
	s.mutex.Unlock()
	s.handlers.Done()
}

// Scheme returns the scheme of URLs without TLS.
func (s *Server) Scheme() string { return "redis" }

// Open returns the number of open connections.
func (s *Server) Open() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.conns)
}

// Outlast returns at once, because Redis' protocol cannot announce the end of a connection.
func (s *Server) Outlast(context.Context) {}

// Shutdown accepts no new connections and ends the others. Waiting connections end at once. The others first answer the
// commands that they have read. If ctx ends before that, Shutdown cuts off the remaining connections and returns the
// error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mutex.Lock()
	s.draining = true
	for c := range s.conns {
		c.interrupt()
	}
	s.mutex.Unlock()
	done := make(chan struct{})
	go func() {
		s.handlers.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mutex.Lock()
	for c := range s.conns {
		_ = c.NetConn().SetDeadline(time.Unix(1, 0)) // fails only on a closed connection
	}
	s.mutex.Unlock()
	<-done
	return ctx.Err()
}
