package serve

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// stop ends the server. First it says that it is not ready, then the ports close; then idle
// connections, and others when their request has been answered or the time is up; then connections that
// have become something else, such as WebSockets, which would last for hours; and at last what the
// administrator sees of it.
func (s *Server) stop() {
	s.leaving.Store(true)
	if delay := s.current.Load().file.Server.ShutdownDelay; delay > 0 {
		s.config.Log.Info("stopping: not ready any more, and serving for a while", "for", delay)
		time.Sleep(delay)
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
	s.room.partings.Wait()
	s.sockets, s.retired = nil, nil
}

// shut closes the ports, those of the administrator or all others.
func (s *Server) shut(administrator bool) (fronts []*front) {
	for _, socket := range s.sockets {
		if (socket.front.post.role == administrators) == administrator {
			fronts = append(fronts, socket.shut())
		}
	}
	return fronts
}

// drain lets the requests of all of them finish at the same time.
func drain(ctx context.Context, fronts []*front) bool {
	var all sync.WaitGroup
	var late atomic.Bool
	for _, f := range fronts {
		all.Go(func() {
			if !f.drain(ctx) {
				late.Store(true)
			}
		})
	}
	all.Wait()
	return !late.Load()
}

// drainLater is drain for fronts whose sockets a reload has closed.
func (s *Server) drainLater(fronts []*front, atMost time.Duration) {
	if len(fronts) == 0 {
		return
	}
	s.draining.Go(func() {
		ctx, cancel := context.WithTimeout(s.base, atMost)
		defer cancel()
		drain(ctx, fronts)
	})
}
