package serve

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/pires/go-proxyproto"
)

// A proxyProtocol reads the address of the client from the beginning of a connection, where a load balancer has written
// it in the PROXY protocol, version 1 or 2.
type proxyProtocol struct {
	trusts  func(netip.Addr) bool // whether a peer is such a load balancer
	timeout time.Duration         // for the header
}

// wrap returns a connection whose RemoteAddr is that of the client. A trusted peer must send the header. That of any
// other peer is not read: it is no HTTP, so the connection ends with an error.
//
// The header is read at the first call of RemoteAddr or Read, which net/http makes in the connection's own goroutine.
func (p *proxyProtocol) wrap(conn *countedConn) net.Conn {
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil || !p.trusts(peer.Addr().Unmap().WithZone("")) {
		return conn
	}
	return &proxiedConn{
		Conn: proxyproto.NewConn(conn, proxyproto.WithPolicy(proxyproto.REQUIRE),
			proxyproto.SetReadHeaderTimeout(p.timeout)),
		counted: conn,
	}
}

// A proxiedConn is a connection through a load balancer.
type proxiedConn struct {
	*proxyproto.Conn
	counted *countedConn
	begun   bool // the client is counted; of the goroutine that reads
}

// Read implements [net.Conn]. Before the first byte the connection counts for the client that the header names.
func (c *proxiedConn) Read(p []byte) (int, error) {
	if !c.begun {
		c.begun = true
		if client := c.RemoteAddr(); !c.counted.countFor(client) {
			limit := c.counted.limit
			limit.warnOf(client)
			if limit.mayAnswer(c.counted) {
				limit.answer(c.counted, fullAnswer)
			}
			return 0, io.EOF
		}
	}
	return c.Conn.Read(p)
}

// namesNoClient reports whether the header says no address: the balancer's own check, or a client of which it knows
// none.
func (c *proxiedConn) namesNoClient() bool {
	header := c.ProxyHeader()
	return header != nil && header.Command.IsLocal()
}

type proxiedConnKey struct{}

// withProxiedConn keeps the connection for [Server.withoutForgedClient]. It is an [http.Server]'s ConnContext, and must
// not wait for the header.
func withProxiedConn(ctx context.Context, conn net.Conn) context.Context {
	if secured, is := conn.(*tls.Conn); is {
		conn = secured.NetConn()
	}
	return context.WithValue(ctx, proxiedConnKey{}, conn)
}

// withoutForgedClient removes what a request says about its client where the header named none. The request has the
// address of the balancer, which is trusted, and has written none of these fields.
func (s *Server) withoutForgedClient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, is := r.Context().Value(proxiedConnKey{}).(*proxiedConn); is && conn.namesNoClient() {
			told := s.current.Load().file.ClientIP.Header
			for name := range r.Header {
				if name == told || name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-") {
					delete(r.Header, name)
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// CloseWrite is for net/http, which closes one half of a connection so that a client reads the last answer.
func (c *proxiedConn) CloseWrite() error { return c.counted.CloseWrite() }

// trustsPeer reports whether an address is that of a trusted proxy in the present generation.
func (s *Server) trustsPeer(addr netip.Addr) bool {
	return slices.ContainsFunc(s.current.Load().file.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}
