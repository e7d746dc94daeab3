package listen

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// clientConns counts the open connections of each client, so that one client cannot use all the room. Unix sockets do
// not count, because each may serve many clients.
type clientConns struct {
	most   atomic.Int64                  // largest number for one client; 0 for no bound
	client func(netip.Addr) netip.Prefix // returns the zero Prefix for an address that is not counted

	mu sync.Mutex
	of map[netip.Prefix]int64
}

// add counts a connection, and reports whether there was room. client is the zero Prefix if the peer's connections are
// not counted. Without room, nothing is counted.
func (c *clientConns) add(peer net.Addr) (client netip.Prefix, ok bool) {
	tcp, is := peer.(*net.TCPAddr)
	if !is {
		return client, true
	}
	if client = c.client(tcp.AddrPort().Addr().Unmap().WithZone("")); !client.IsValid() {
		return client, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if most := c.most.Load(); most > 0 && c.of[client] >= most {
		return netip.Prefix{}, false
	}
	c.of[client]++
	return client, true
}

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
