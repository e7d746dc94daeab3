package serve

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/cmd/internal/config"
)

// clientConns counts the open connections of each client, so that one cannot take the room of all. The addresses of an
// IPv6 /64 are one client. Proxies that are trusted and Unix sockets are not counted: many clients come through them.
type clientConns struct {
	most   atomic.Int64 // of one client; 0 for no bound
	trusts func(netip.Addr) bool

	mu sync.Mutex
	of map[netip.Prefix]int64
}

// add counts a connection. It returns the client, the zero Prefix for one that is not counted, and whether there is
// room for it: if not, nothing is counted.
func (c *clientConns) add(peer net.Addr) (client netip.Prefix, ok bool) {
	tcp, is := peer.(*net.TCPAddr)
	if !is {
		return client, true
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	if c.trusts(addr) {
		return client, true
	}
	bits := config.IPv6Prefix
	if addr.Is4() {
		bits = 32
	}
	client, _ = addr.Prefix(bits) // fails for other numbers of bits only
	c.mu.Lock()
	defer c.mu.Unlock()
	if most := c.most.Load(); most > 0 && c.of[client] >= most {
		return netip.Prefix{}, false
	}
	c.of[client]++
	return client, true
}

// remove ends the count of a connection.
func (c *clientConns) remove(client netip.Prefix) {
	if !client.IsValid() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[client]--; c.of[client] == 0 {
		delete(c.of, client)
	}
}

// A client may have a share of all connections where the rule file does not say how many, and minPerClient at the
// least, or a browser could not load a page.
const (
	perClientShare = 8
	minPerClient   = 16
)

// perClient returns how many connections one client may have, of so many; 0 for no bound.
func perClient(said int, all int64) int64 {
	if said != config.ByShare {
		return int64(said)
	}
	if all <= minPerClient {
		return 0 // the bound of all is the narrower one
	}
	return max(all/perClientShare, minPerClient)
}
