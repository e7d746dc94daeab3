package serve

import (
	"cmp"
	"crypto/tls"
	"net/http"

	"github.com/weir-go/weir/cmd/internal/listen"
	"github.com/weir-go/weir/cmd/internal/resp"
	"github.com/weir-go/weir/cmd/internal/rulefile"
)

const (
	clients        listen.Role = "clients"
	decisions      listen.Role = "decisions"
	redisClients   listen.Role = "redis"
	administrators listen.Role = "administrators"
)

func endpoints(f *rulefile.File) (all []listen.Endpoint) {
	untimed := httpSettings(&f.Server)
	untimed.ReadTimeout, untimed.WriteTimeout = 0, 0 // event streams and profiles may take a long time
	for _, l := range f.Listen {
		all = append(all, endpoint(clients, l, httpSettings(&f.Server)))
	}
	if f.Decide != nil {
		all = append(all, endpoint(decisions, f.Decide.Listener(), untimed))
	}
	if f.Redis != nil {
		all = append(all, endpoint(redisClients, f.Redis.Listener(), listen.HTTP{}))
	}
	if f.Admin != nil {
		all = append(all, endpoint(administrators, rulefile.Listener{Address: f.Admin.Address, Mode: f.Admin.Mode}, untimed))
	}
	return all
}

func endpoint(r listen.Role, l rulefile.Listener, settings listen.HTTP) listen.Endpoint {
	settings.H2C = l.H2C
	e := listen.Endpoint{
		Role: r, Address: l.Address, Mode: cmp.Or(l.Mode, rulefile.DefaultMode), ProxyProtocol: l.ProxyProtocol,
		ReusePort: l.ReusePort, HTTP: settings,
	}
	if l.TLS != nil {
		e.Certificate = listen.Certificate(*l.TLS)
	}
	return e
}

func httpSettings(s *rulefile.Server) listen.HTTP {
	return listen.HTTP{
		ReadHeaderTimeout: s.ReadHeaderTimeout, ReadTimeout: s.ReadTimeout, WriteTimeout: s.WriteTimeout,
		SendTimeout: s.SendTimeout, IdleTimeout: s.IdleTimeout, MaxHeaderBytes: s.MaxHeaderBytes,
	}
}

// fullRedis is the answer to a connection of a Redis client if there are too many. A Redis server gives the same
// answer.
var fullRedis = listen.Full{Answer: "-ERR max number of clients reached\r\n", Outcome: "refused"}

func (s *Server) newConnLimits() map[listen.Role]*listen.ConnLimit {
	all := map[listen.Role]*listen.ConnLimit{}
	for r, full := range map[listen.Role]listen.Full{
		clients: listen.FullHTTP, decisions: listen.FullHTTP, administrators: listen.FullHTTP, redisClients: fullRedis,
	} {
		all[r] = listen.NewConnLimit(r, full, s.clientOf, s.config.Log)
	}
	return all
}

// protocol returns the protocol of an endpoint. The parameter over is the TLS configuration, or nil for none.
func (s *Server) protocol(e listen.Endpoint, over *tls.Config) listen.Protocol {
	if e.Role == redisClients {
		return &resp.Server{
			Settings: s.redisSettings, TLS: over, Counters: &s.redis.counters, Version: s.config.Version,
		}
	}
	handler := s.handler(e.Role)
	if e.ProxyProtocol {
		handler = s.withoutForgedClient(handler)
	}
	return s.sockets.HTTP(e, handler, over)
}

func (s *Server) handler(r listen.Role) http.Handler {
	switch r {
	case clients:
		return s
	case decisions:
		return http.HandlerFunc(s.decide)
	case administrators:
		return &s.page
	}
	panic("serve: no such role: " + string(r))
}
