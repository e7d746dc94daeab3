package audit

import (
	"context"
	"net"
	"net/netip"
	"slices"
)

// These are two addresses of a /64 IPv6 network reserved for documentation. Each customer of a provider gets such a
// network. So if the key is the complete address, a client has as many buckets as it wants.
const (
	neighbor = "2001:db8:0:64::1"
	another  = "2001:db8:0:64::2"
)

// neighborsIn has the fields from which servers read a client's address.
var neighborsIn = []string{"X-Forwarded-For", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP", "Forwarded"}

// tryNeighbors finds out whether a second address of an IPv6 network passes while the first is refused. If this machine
// has two such addresses, it sends from both. If clients can choose their address by header fields, it also writes such
// addresses into the fields. It returns the ways that it tried. For each way that it could not try, it returns a text.
func (a *auditor) tryNeighbors(ctx context.Context, ways []*Way, server netip.Addr, most uint64) (tried []*Way, notTried []string) {
	try := func(name string, base, other Ask) {
		w := &Way{What: "IPv6", Name: name, ask: other}
		for range 3 {
			if uint64(a.room()) < 2*most+12 || a.tryNeighbor(ctx, w, base, most) {
				break
			}
		}
		tried = append(tried, w)
	}
	if from := sameNetwork(server); len(from) == 2 {
		base, other := a.plain, a.plain
		base.From, other.From = from[0], from[1]
		try("from "+from[1]+" while "+from[0]+" is refused", base, other)
	} else {
		notTried = append(notTried, "two addresses of an IPv6 network of 64 bits: this machine has none from which it can reach this server")
	}
	trusted := false
	for _, name := range neighborsIn {
		if !slices.ContainsFunc(ways, func(w *Way) bool { return w.Passes && w.Same && w.What == "header" && w.Field == name }) {
			continue
		}
		trusted = true
		with := func(address string) Ask {
			ask := a.plain
			if name == "Forwarded" {
				address = `for="[` + address + `]"`
			}
			ask.Fields = append(slices.Clip(ask.Fields), [2]string{name, address})
			return ask
		}
		try(name+": "+another+" while "+neighbor+" is refused", with(neighbor), with(another))
	}
	if !trusted {
		notTried = append(notTried, "two addresses of an IPv6 network in a field: the server takes no address from one")
	}
	return tried, notTried
}

// tryNeighbor sends the request base until it is refused, then the request of w, and then base again. If the last
// request passes, a token has come back, so nothing is known about w. tryNeighbor reports whether the result is
// certain.
func (a *auditor) tryNeighbor(ctx context.Context, w *Way, base Ask, most uint64) bool {
	for n := uint64(0); ; n++ {
		answer, err := a.do(ctx, base)
		if err != nil || n > 2*most+8 {
			return false
		}
		if a.isRefusal(answer.Status) {
			break
		}
	}
	answer, err := a.do(ctx, w.ask)
	if err != nil {
		return false
	}
	w.Status = answer.Status
	if w.Refused = a.isRefusal(answer.Status); w.Refused {
		return true
	}
	again, err := a.do(ctx, base)
	w.Same = answer.Status == a.usual.status
	w.Passes = err == nil && a.isRefusal(again.Status)
	return w.Passes
}

// sameNetwork returns two addresses of this machine in one /64 IPv6 network from which the server can be reached, or
// nil.
func sameNetwork(server netip.Addr) []string {
	all, err := net.InterfaceAddrs()
	if err != nil || !server.Is6() || server.Is4In6() || server.IsLoopback() {
		return nil
	}
	networks := map[netip.Prefix][]string{}
	for _, address := range all {
		of, ok := address.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(of.IP)
		if !ok || ip.Unmap().Is4() || ip.IsLoopback() || ip.IsLinkLocalUnicast() != server.IsLinkLocalUnicast() {
			continue
		}
		network, err := ip.Prefix(64)
		if err != nil {
			continue
		}
		if networks[network] = append(networks[network], ip.String()); len(networks[network]) == 2 {
			return networks[network]
		}
	}
	return nil
}
