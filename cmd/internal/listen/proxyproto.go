package listen

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/pires/go-proxyproto"
)

// A proxyProtocol reads the address of the client from the start of a connection. A load balancer has written it there
// in the PROXY protocol, version 1 or 2.
type proxyProtocol struct {
	trusts  func(netip.Addr) bool // whether a peer is such a load balancer
	timeout time.Duration         // for the header
}

// wrap returns a connection whose RemoteAddr is the client's. A trusted peer must send the header. If any other peer
// sends the header, it is not recognized: the connection ends with an error, because the header is not HTTP.
//
// The header is read at the first call of RemoteAddr or Read, which net/http makes in the connection's own goroutine.
func (p *proxyProtocol) wrap(conn *Conn) net.Conn {
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
	counted *Conn
	begun   bool // the client is counted; only used by the goroutine that reads
}

// Read implements [net.Conn]. From the first byte on, the connection counts for the client that the header names.
func (c *proxiedConn) Read(p []byte) (int, error) {
	if !c.begun {
		c.begun = true
		if client := c.RemoteAddr(); !c.counted.countFor(client) {
			limit := c.counted.limit
			limit.warnOf(client)
			if limit.mayAnswer(c.counted) {
				limit.answer(c.counted)
			}
			return 0, io.EOF
		}
	}
	return c.Conn.Read(p)
}

// namesNoClient reports whether the header has no address: the connection is the balancer's own check, or the balancer
// does not know the client.
func (c *proxiedConn) namesNoClient() bool {
	header := c.ProxyHeader()
	return header != nil && header.Command.IsLocal()
}

type proxiedConnKey struct{}

// withProxiedConn stores the connection in the context for [NamesNoClient]. It is the ConnContext of an [http.Server],
// and must not wait for the header.
func withProxiedConn(ctx context.Context, conn net.Conn) context.Context {
	if secured, is := conn.(*tls.Conn); is {
		conn = secured.NetConn()
	}
	return context.WithValue(ctx, proxiedConnKey{}, conn)
}

// NamesNoClient reports whether a request came over a connection of a trusted peer whose PROXY protocol header names no
// client.
func NamesNoClient(r *http.Request) bool {
	conn, is := r.Context().Value(proxiedConnKey{}).(*proxiedConn)
	return is && conn.namesNoClient()
}

// CloseWrite is for net/http, which closes one half of a connection so that a client can read the last answer.
func (c *proxiedConn) CloseWrite() error { return c.counted.CloseWrite() }
