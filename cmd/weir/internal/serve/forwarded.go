package serve

import (
	"net/http/httputil"
	"net/netip"
	"slices"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// A forwarder sets the fields that tell an upstream which client a request is from.
type forwarder struct {
	trusted []netip.Prefix
	header  string // in which proxies tell the client's address, beside X-Forwarded-For; "" for none
}

func newForwarder(f *config.File) *forwarder {
	return &forwarder{trusted: f.TrustedProxies, header: f.ClientIP.Header}
}

// set writes X-Forwarded-For, -Host and -Proto. The fields of a trusted proxy are kept, and its address is appended to
// X-Forwarded-For. Those of other peers are dropped. [httputil.ReverseProxy] has dropped Forwarded, in which this proxy
// would be missing.
func (f *forwarder) set(r *httputil.ProxyRequest) {
	if !f.trusts(r.In.RemoteAddr) {
		r.SetXForwarded()
		if f.header != "" {
			r.Out.Header.Del(f.header)
		}
		return
	}
	r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	r.SetXForwarded()
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
		if told := r.In.Header[name]; len(told) > 0 {
			r.Out.Header[name] = told
		}
	}
}

// trusts reports whether the peer is a trusted proxy.
func (f *forwarder) trusts(remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	addr := peer.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(f.trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}
