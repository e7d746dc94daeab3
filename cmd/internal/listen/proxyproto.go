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

// A proxyProtocol reads the address of the client, which a load balancer writes at the start of a connection. It knows
// versions 1 and 2 of the PROXY protocol.
type proxyProtocol struct {
	isTrusted func(netip.Addr) bool // reports whether a peer's header is trusted
	timeout   time.Duration         // for reading the header
}

// wrap returns a connection whose RemoteAddr is the client's address. A trusted peer must send a PROXY protocol header.
// If another peer sends such a header, the connection ends with an error, because the header is read as HTTP.
//
// The header is read by the first call of RemoteAddr or Read, in the connection's own goroutine. So a slow header does
// not delay other connections.
func (p *proxyProtocol) wrap(conn *Conn) net.Conn {
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil || !p.isTrusted(peer.Addr().Unmap().WithZone("")) {
		return conn
	}
	return &proxiedConn{
		Conn: proxyproto.NewConn(conn, proxyproto.WithPolicy(proxyproto.REQUIRE),
			proxyproto.SetReadHeaderTimeout(p.timeout)),
		counted: conn,
	}
}

type proxiedConn struct {
	*proxyproto.Conn
	counted   *Conn
	isCounted bool // the client is counted; used only by the goroutine that reads
}

// Read implements [net.Conn]. From the first byte on, the connection counts for the client in the header.
func (c *proxiedConn) Read(p []byte) (int, error) {
	if !c.isCounted {
		c.isCounted = true
		if client := c.RemoteAddr(); !c.counted.countFor(client) {
			limit := c.counted.limit
			limit.warnClient(client)
			if limit.mayAnswer(c.counted) {
				limit.answer(c.counted)
			}
			return 0, io.EOF
		}
	}
	return c.Conn.Read(p)
}

// namesNoClient reports whether the header has no address of a client. Such a connection is a health check of the load
// balancer, or the balancer does not know the client.
func (c *proxiedConn) namesNoClient() bool {
	header := c.ProxyHeader()
	return header != nil && header.Command.IsLocal()
}

type proxiedConnKey struct{}

// withProxiedConn stores the connection in the context for [NamesNoClient]. It is the ConnContext of an [http.Server],
// so it must not wait for the PROXY protocol header.
func withProxiedConn(ctx context.Context, conn net.Conn) context.Context {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	return context.WithValue(ctx, proxiedConnKey{}, conn)
}

// NamesNoClient reports whether a request came from a trusted peer whose PROXY protocol header has no client's address.
func NamesNoClient(r *http.Request) bool {
	conn, ok := r.Context().Value(proxiedConnKey{}).(*proxiedConn)
	return ok && conn.namesNoClient()
}

// CloseWrite closes the sending half. net/http calls it so that a client can read the last answer.
func (c *proxiedConn) CloseWrite() error { return c.counted.CloseWrite() }
