package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
)

// Warnings says what of a good file is probably not what was meant, a sentence each.
func (f *File) Warnings() (all []string) {
	for _, p := range f.TrustedProxies {
		if p.Bits() == 0 {
			all = append(all, fmt.Sprintf("trusted_proxies: %s is every address: any client can then say in %s which "+
				"address it has, and has a new bucket for each", p, f.ClientIP.header()))
		}
	}
	upstreams := make([]*url.URL, 0, len(f.Routes)+1)
	for i := range f.Routes {
		upstreams = append(upstreams, f.Routes[i].Upstream.URL)
	}
	if f.Upstream != nil {
		upstreams = append(upstreams, f.Upstream.URL)
	}
	for _, u := range upstreams {
		for _, l := range f.Listen {
			if sameServer(u, l.Address) {
				all = append(all,
					fmt.Sprintf("upstream: %s is where weir itself listens, at %s: requests would go round "+
						"until they time out", u, l.Address))
			}
		}
	}
	return all
}

// header names the header that the address of a client is read from.
func (c ClientIP) header() string {
	switch c.From {
	case FromForwarded:
		return "Forwarded"
	case FromHeader:
		return c.Header
	case FromXForwardedFor, FromSocket:
	}
	return "X-Forwarded-For"
}

// sameServer reports whether a URL leads to an address that is listened on, on this machine.
func sameServer(u *url.URL, listened string) bool {
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return overlap(net.JoinHostPort(loopback(u.Hostname()), cmp.Or(u.Port(), port)), loopbackOf(listened)) &&
		(isLoopback(u.Hostname()) || !isEvery(hostOf(listened)))
}

// loopbackOf is the address with its host by number, if that is localhost.
func loopbackOf(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return net.JoinHostPort(loopback(host), port)
}

func loopback(host string) string {
	if host == "localhost" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}).String()
	}
	return host
}

func hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address) // it was checked
	return host
}
