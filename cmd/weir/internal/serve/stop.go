package serve

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// stop ends the server, in this order:
//
//  1. /readyz answers 503, for shutdown_delay.
//  2. The ports close. Idle connections end, and others when their request has been answered, within
//     shutdown_timeout.
//  3. Connections that have become something else, such as WebSockets, are cut: they would last for hours.
//  4. The administrator's endpoint closes.
func (s *Server) stop() {
	s.leaving.Store(true)
	if delay := s.current.Load().file.Server.ShutdownDelay; delay > 0 {
		s.config.Log.Info("stopping: not ready any more, and serving for a while", "for", delay)
		s.config.Sleep(delay)
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	s.stopped = true
	atMost := s.current.Load().file.Server.ShutdownTimeout
	s.config.Log.Info("stopping: waiting for requests under way", "at_most", atMost)
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	if !drain(ctx, append(s.shut(false), s.retired...)) {
		s.config.Log.Warn("requests were cut off: they did not finish in time")
	}
	s.cut()
	if a := s.admin.Load(); a != nil {
		_ = a.Close() // always nil
	}
	drain(ctx, s.shut(true))
	s.draining.Wait()
	s.current.Load().leave()
	s.generations.Wait()
	for _, limit := range s.connections {
		limit.sending.Wait()
	}
	s.sockets, s.retired = nil, nil
}

// shut closes the sockets, those of the administrator or all others, and returns their servers.
func (s *Server) shut(administrator bool) (servers []*socketServer) {
	for _, socket := range s.sockets {
		if (socket.server.endpoint.role == administrators) == administrator {
			servers = append(servers, socket.shut())
		}
	}
	return servers
}

// drain drains all servers at the same time, and reports whether all requests have ended.
func drain(ctx context.Context, servers []*socketServer) bool {
	var all sync.WaitGroup
	var late atomic.Bool
	for _, f := range servers {
		all.Go(func() {
			if !f.drain(ctx) {
				late.Store(true)
			}
		})
	}
	all.Wait()
	return !late.Load()
}

// drainLater drains servers whose sockets a reload has closed. It does not wait.
func (s *Server) drainLater(servers []*socketServer, atMost time.Duration) {
	if len(servers) == 0 {
		return
	}
	s.draining.Go(func() {
		ctx, cancel := context.WithTimeout(s.base, atMost)
		defer cancel()
		drain(ctx, servers)
	})
}
