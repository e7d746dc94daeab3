package serve

import (
	"context"
	"sync"

	"github.com/weir-go/weir/cmd/internal/listen"
)

// stop ends the server in this order:
//
//  1. For shutdown_delay, /readyz answers 503. From now on, each answer is the last on its connection.
//  2. The ports close. Idle connections end. Other connections end after their answer, within shutdown_timeout.
//  3. Connections that have changed their protocol, such as WebSockets, are cut off, because they could last for
//     hours.
//  4. The administrator's endpoint closes.
//  5. Tokens that this machine admitted while the store was lost are charged to the store. This may take the rest of
//     shutdown_timeout.
//
// After an upgrade, another process has the ports, so this process closes them at once. For half of shutdown_timeout,
// an idle connection may get one more answer. Otherwise a client could send a request while the server closes the
// connection. The client would then not know whether the request counts.
func (s *Server) stop() {
	s.sockets.Leave()
	isUpgrade := s.life.upgrade.isDone()
	if delay := s.current.Load().file.Server.ShutdownDelay; delay > 0 && !isUpgrade {
		s.config.Log.Info("stopping: no longer ready, and still serving", "for", delay)
		s.config.Sleep(delay)
	}
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	s.life.isStopped = true
	timeout := s.current.Load().file.Server.ShutdownTimeout
	s.config.Log.Info("stopping: waiting for requests in progress", "at_most", timeout)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	servers := s.sockets.Shut(func(r listen.Role) bool { return r != administrators })
	if isUpgrade {
		servers = append(servers, s.shutAdmin()...)
		servers.Outlast(ctx, timeout/2)
	}
	if !servers.Drain(ctx) {
		s.config.Log.Warn("requests were cut off: they did not finish in time")
	}
	s.life.cancelBase()
	if !isUpgrade {
		s.shutAdmin().Drain(ctx)
	}
	s.sockets.Wait()
	s.settle(ctx)
	s.current.Load().leave()
	s.generations.Wait()
	if s.redis.holds != nil {
		_ = s.redis.holds.Uses.Close() // Close always returns nil
	}
	if s.redis.places != nil {
		_ = s.redis.places.Close() // Close always returns nil
	}
	for _, limit := range s.connections {
		limit.Wait()
	}
}

// settle charges the store with all debts until ctx ends.
func (s *Server) settle(ctx context.Context) {
	var charges sync.WaitGroup
	g := s.current.Load() // only the current generation, because the limiters of earlier generations are closed
	for i := range g.file.Rules {
		rule := &g.file.Rules[i]
		stored := g.stored[rule.Name]
		if stored == nil {
			continue
		}
		charges.Go(func() {
			switch err := stored.Value.Settle(ctx); {
			case err != nil && rule.Debts != "":
				s.config.Log.Warn("stopping: admitted requests are not charged to the store; the debt is kept in "+
					"the state folder", "rule", rule.Name, "err", err)
			case err != nil:
				s.config.Log.Warn("stopping: admitted requests are not charged to the store", "rule", rule.Name, "err", err)
			}
		})
	}
	charges.Wait()
}

// shutAdmin ends the event streams of the administrator's page, and closes the sockets of its endpoint.
func (s *Server) shutAdmin() listen.Servers {
	s.page.close()
	return s.sockets.Shut(func(r listen.Role) bool { return r == administrators })
}
