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

// Outlast waits for connections to end, but no longer than atMost. It waits only for connections to whose clients the
// server can announce the end.
func (all Servers) Outlast(ctx context.Context, atMost time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for _, h := range all {
		h.protocol.Outlast(ctx)
	}
}

// Drain waits for the requests in progress. If ctx ends first, it cuts off the remaining connections and returns false.
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

// Wait waits for the servers whose sockets changes have closed.
func (s *Sockets) Wait() { s.draining.Wait() }
