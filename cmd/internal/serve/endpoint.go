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

func endpoints(f *rulefile.File) (list []listen.Endpoint) {
	noTimeouts := httpSettings(&f.Server)
	noTimeouts.ReadTimeout, noTimeouts.WriteTimeout = 0, 0 // event streams and profiles may take a long time
	for _, l := range f.Listen {
		list = append(list, endpoint(clients, l, httpSettings(&f.Server)))
	}
	if f.Decide != nil {
		list = append(list, endpoint(decisions, f.Decide.Listener(), noTimeouts))
	}
	if f.Redis != nil {
		list = append(list, endpoint(redisClients, f.Redis.Listener(), listen.HTTP{}))
	}
	if f.Admin != nil {
		list = append(list, endpoint(administrators, rulefile.Listener{Address: f.Admin.Address, Mode: f.Admin.Mode}, noTimeouts))
	}
	return list
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
	connLimits := map[listen.Role]*listen.ConnLimit{}
	for r, full := range map[listen.Role]listen.Full{
		clients: listen.FullHTTP, decisions: listen.FullHTTP, administrators: listen.FullHTTP, redisClients: fullRedis,
	} {
		connLimits[r] = listen.NewConnLimit(r, full, s.clientOf, s.config.Log)
	}
	return connLimits
}

// protocol returns the protocol of an endpoint. The parameter tlsConfig is nil for an endpoint without TLS.
func (s *Server) protocol(e listen.Endpoint, tlsConfig *tls.Config) listen.Protocol {
	if e.Role == redisClients {
		return &resp.Server{
			Settings: s.redisSettings, TLS: tlsConfig, Counters: &s.redis.counters, Version: s.config.Version,
		}
	}
	handler := s.handler(e.Role)
	if e.ProxyProtocol {
		handler = s.withoutForgedClient(handler)
	}
	return s.sockets.HTTP(e, handler, tlsConfig)
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
