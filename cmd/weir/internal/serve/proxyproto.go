package serve

import (
	"net"
	"net/netip"
	"slices"
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
}

// CloseWrite is for net/http, which closes one half of a connection so that a client reads the last answer.
func (c *proxiedConn) CloseWrite() error { return c.counted.CloseWrite() }

// trustsPeer reports whether an address is that of a trusted proxy in the present generation.
func (s *Server) trustsPeer(addr netip.Addr) bool {
	return slices.ContainsFunc(s.current.Load().file.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}
