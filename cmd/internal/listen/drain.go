package listen

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Leave makes each HTTP answer the last one on its connection.
func (s *Sockets) Leave() { s.leaving.Store(true) }

// Leaving reports whether [Sockets.Leave] was called.
func (s *Sockets) Leaving() bool { return s.leaving.Load() }

// Servers has servers whose sockets are closed. They may still have open connections.
type Servers []*server

// Shut closes the sockets of each role for which the given function returns true. It returns the servers of these
// sockets, including servers that a change of settings has replaced.
func (s *Sockets) Shut(match func(Role) bool) (servers Servers) {
	s.open = slices.DeleteFunc(s.open, func(socket *socket) bool {
		matches := match(socket.server.endpoint.Role)
		if matches {
			servers = append(servers, socket.shut())
		}
		return matches
	})
	s.retired = slices.DeleteFunc(s.retired, func(h *server) bool {
		matches := match(h.endpoint.Role)
		if matches {
			servers = append(servers, h)
		}
		return matches
	})
	return servers
}

// Outlast waits for connections to end, but no longer than timeout. It waits only for connections to whose clients the
// server can announce the end.
func (s Servers) Outlast(ctx context.Context, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, h := range s {
		h.protocol.Outlast(ctx)
	}
}

// Drain waits for the requests in progress. If ctx ends first, it cuts off the remaining connections and returns false.
func (s Servers) Drain(ctx context.Context) bool {
	var shutdowns sync.WaitGroup
	var cutOff atomic.Bool
	for _, h := range s {
		shutdowns.Go(func() {
			if h.protocol.Shutdown(ctx) != nil {
				cutOff.Store(true)
			}
		})
	}
	shutdowns.Wait()
	return !cutOff.Load()
}

func (s *Sockets) drainLater(servers Servers, timeout time.Duration) {
	if len(servers) == 0 {
		return
	}
	s.draining.Go(func() {
		ctx, cancel := context.WithTimeout(s.config.Base, timeout)
		defer cancel()
		servers.Drain(ctx)
	})
}

// Wait waits for the servers whose sockets changes have closed.
func (s *Sockets) Wait() { s.draining.Wait() }
