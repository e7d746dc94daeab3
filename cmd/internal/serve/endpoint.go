package serve

import (
	"net/http"

	"github.com/weir-go/weir/cmd/internal/config"
)

// An endpoint is an address to serve on: its role, its listener of the rule file, and the settings of its server.
type endpoint struct {
	role     role
	listener config.Listener
	server   config.Server
}

// A role says what an endpoint serves.
type role string

const (
	clients        role = "clients"
	decisions      role = "decisions"
	redisClients   role = "redis"
	administrators role = "administrators"
)

// roles are all of them.
var roles = []role{clients, decisions, redisClients, administrators}

// endpoints returns all endpoints of a file.
func endpoints(f *config.File) (all []endpoint) {
	for _, l := range f.Listen {
		all = append(all, endpoint{clients, l, f.Server})
	}
	if f.Decide != nil {
		all = append(all, endpoint{decisions, f.Decide.Listener(), f.Server})
	}
	if f.Redis != nil {
		all = append(all, endpoint{role: redisClients, listener: f.Redis.Listener()}) // the settings are about HTTP
	}
	if f.Admin != nil {
		all = append(all, endpoint{administrators, config.Listener{Address: f.Admin.Address, Mode: f.Admin.Mode}, f.Server})
	}
	return all
}

// equal reports whether one server can serve both.
func (e endpoint) equal(other endpoint) bool {
	for _, s := range []*config.Server{&e.server, &other.server} { // these settings are not a server's
		s.MaxConnections, s.MaxConnectionsPerClient, s.ShutdownTimeout, s.ShutdownDelay = 0, 0, 0, 0
	}
	return e.role == other.role && e.listener.Equal(other.listener) && e.server == other.server
}

// handler returns the handler of a role. It looks up the present generation at each request.
func (s *Server) handler(r role) http.Handler {
	switch r {
	case clients:
		return s
	case decisions:
		return http.HandlerFunc(s.decide)
	case administrators:
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if a := s.admin.Load(); a != nil { // nil: a reload has just removed it
				a.Handler().ServeHTTP(w, r)
			}
		})
	}
	panic("serve: no such role: " + string(r))
}
