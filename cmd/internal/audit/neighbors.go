package audit

import (
	"context"
	"net"
	"net/netip"
	"slices"
)

// These are two addresses in one /64 IPv6 network, reserved for documentation. Each customer of a provider gets a /64
// network. So if the key is the complete address, a client has as many buckets as it wants.
const (
	firstNeighbor  = "2001:db8:0:64::1"
	secondNeighbor = "2001:db8:0:64::2"
)

// addressFields has the fields from which servers read a client's address.
var addressFields = []string{"X-Forwarded-For", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP", "Forwarded"}

// tryNeighbors finds out whether a second address of an IPv6 network passes while the first is refused. If this machine
// has two such addresses, it sends from both. If clients can choose their address by header fields, it also writes such
// addresses into the fields. It returns the ways that it tried. For each way that it could not try, it returns a text.
func (a *auditor) tryNeighbors(ctx context.Context, ways []*Way, server netip.Addr, capacity uint64) (tried []*Way, notTried []string) {
	tryPair := func(name string, base, other Request) {
		w := &Way{Kind: "IPv6", Name: name, request: other}
		for range 3 {
			if uint64(a.requestsLeft()) < 2*capacity+12 || a.tryNeighbor(ctx, w, base, capacity) {
				break
			}
		}
		tried = append(tried, w)
	}
	if from := networkPair(server); len(from) == 2 {
		base, other := a.plainRequest, a.plainRequest
		base.From, other.From = from[0], from[1]
		tryPair("from "+from[1]+" while "+from[0]+" is refused", base, other)
	} else {
		notTried = append(notTried, "two addresses of an IPv6 network of 64 bits: this machine has none from which it can reach this server")
	}
	isTrusted := false
	for _, name := range addressFields {
		if !slices.ContainsFunc(ways, func(w *Way) bool { return w.Passes && w.SameAnswer && w.Kind == "header" && w.Field == name }) {
			continue
		}
		isTrusted = true
		requestFrom := func(address string) Request {
			request := a.plainRequest
			if name == "Forwarded" {
				address = `for="[` + address + `]"`
			}
			request.Fields = append(slices.Clip(request.Fields), [2]string{name, address})
			return request
		}
		tryPair(name+": "+secondNeighbor+" while "+firstNeighbor+" is refused", requestFrom(firstNeighbor), requestFrom(secondNeighbor))
	}
	if !isTrusted {
		notTried = append(notTried, "two addresses of an IPv6 network in a field: the server takes no address from one")
	}
	return tried, notTried
}

// tryNeighbor sends the request base until it is refused, then the request of w, and then base again. If the last
// request passes, a token has come back, so nothing is known about w. tryNeighbor reports whether the result is
// certain.
func (a *auditor) tryNeighbor(ctx context.Context, w *Way, base Request, capacity uint64) bool {
	for n := uint64(0); ; n++ {
		answer, err := a.do(ctx, base)
		if err != nil || n > 2*capacity+8 {
			return false
		}
		if a.isRefusal(answer.Status) {
			break
		}
	}
	answer, err := a.do(ctx, w.request)
	if err != nil {
		return false
	}
	w.Status = answer.Status
	if w.Refused = a.isRefusal(answer.Status); w.Refused {
		return true
	}
	repeated, err := a.do(ctx, base)
	w.SameAnswer = answer.Status == a.baseline.status
	w.Passes = err == nil && a.isRefusal(repeated.Status)
	return w.Passes
}

// networkPair returns two addresses of this machine in one /64 IPv6 network from which the server can be reached, or
// nil.
func networkPair(server netip.Addr) []string {
	addresses, err := net.InterfaceAddrs()
	if err != nil || !server.Is6() || server.Is4In6() || server.IsLoopback() {
		return nil
	}
	networks := map[netip.Prefix][]string{}
	for _, address := range addresses {
		ipNet, ok := address.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(ipNet.IP)
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
