package serve

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/weir-go/weir/cmd/internal/listen"
	"github.com/weir-go/weir/limits/spec"
)

// withoutForgedClient removes the fields that describe a client, if the PROXY protocol header names no client. The peer
// is then a trusted balancer. But a balancer that sends the PROXY protocol writes none of these fields, so the client
// wrote them.
func (s *Server) withoutForgedClient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if listen.NamesNoClient(r) {
			file := s.current.Load().file
			for name := range r.Header {
				if file.IsProxyHeader(name) {
					delete(r.Header, name)
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) trustsPeer(addr netip.Addr) bool {
	return slices.ContainsFunc(s.current.Load().file.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// clientOf returns the client for which a connection counts. An IPv6 /64 is one client. For a trusted proxy, the result
// is the zero Prefix: its connections do not count, because each may serve many clients.
func (s *Server) clientOf(addr netip.Addr) (client netip.Prefix) {
	if s.trustsPeer(addr) {
		return client
	}
	bits := spec.IPv6Prefix
	if addr.Is4() {
		bits = 32
	}
	client, _ = addr.Prefix(bits) // fails only for other numbers of bits
	return client
}
