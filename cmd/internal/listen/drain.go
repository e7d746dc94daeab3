package listen

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Leave makes each answer over HTTP the last one of its connection.
func (s *Sockets) Leave() { s.leaving.Store(true) }

// Leaving reports whether [Sockets.Leave] was called.
func (s *Sockets) Leaving() bool { return s.leaving.Load() }

// Servers are servers whose sockets are closed, with the connections that are still open.
type Servers []*server

// Shut closes the sockets whose roles are to be closed, and returns their servers, with those whose settings have
// changed since.
func (s *Sockets) Shut(which func(Role) bool) (all Servers) {
	s.open = slices.DeleteFunc(s.open, func(socket *socket) bool {
		is := which(socket.server.endpoint.Role)
		if is {
			all = append(all, socket.shut())
		}
		return is
	})
	s.retired = slices.DeleteFunc(s.retired, func(h *server) bool {
		is := which(h.endpoint.Role)
		if is {
			all = append(all, h)
		}
		return is
	})
	return all
}

// Outlast waits until the servers have no connections left, for at most as long as it is told.
func (all Servers) Outlast(ctx context.Context, atMost time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for _, h := range all {
		h.protocol.Outlast(ctx)
	}
}

// Drain waits for the requests under way of all servers, and reports whether they have ended. Those that have not when
// ctx ends are cut off.
func (all Servers) Drain(ctx context.Context) bool {
	var ending sync.WaitGroup
	var late atomic.Bool
	for _, h := range all {
		ending.Go(func() {
			if h.protocol.Shutdown(ctx) != nil {
				late.Store(true)
			}
		})
	}
	ending.Wait()
	return !late.Load()
}

// drainLater drains servers. It does not wait.
func (s *Sockets) drainLater(servers Servers, atMost time.Duration) {
	if len(servers) == 0 {
		return
	}
	s.draining.Go(func() {
		ctx, cancel := context.WithTimeout(s.config.Base, atMost)
		defer cancel()
		servers.Drain(ctx)
	})
}

// Wait waits for the servers of sockets that changes have closed.
func (s *Sockets) Wait() { s.draining.Wait() }
