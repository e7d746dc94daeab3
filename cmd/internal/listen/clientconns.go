package listen

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// clientConns counts the open connections of each client, so that no client can use all connections. Connections over a
// Unix socket do not count, because they may serve many clients.
type clientConns struct {
	maxPerClient atomic.Int64                  // largest number for one client; 0 for no bound
	client       func(netip.Addr) netip.Prefix // returns the zero Prefix for an address that is not counted

	mu     sync.Mutex
	counts map[netip.Prefix]int64
}

// add counts a connection of a peer, and returns the client for which it counts. The client is the zero Prefix if the
// connections of the peer are not counted. If the client has too many connections, add returns false and counts
// nothing.
func (c *clientConns) add(peer net.Addr) (client netip.Prefix, ok bool) {
	tcp, isTCP := peer.(*net.TCPAddr)
	if !isTCP {
		return client, true
	}
	if client = c.client(tcp.AddrPort().Addr().Unmap().WithZone("")); !client.IsValid() {
		return client, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit := c.maxPerClient.Load(); limit > 0 && c.counts[client] >= limit {
		return netip.Prefix{}, false
	}
	c.counts[client]++
	return client, true
}

func (c *clientConns) remove(client netip.Prefix) {
	if !client.IsValid() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts[client]--; c.counts[client] == 0 {
		delete(c.counts, client)
	}
}
