package proxy

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strings"

	"github.com/weir-go/weir/cmd/internal/fieldname"
)

// A Forwarding sets the header fields that describe the client to an upstream. It removes fields with which a client
// could describe itself as another client.
type Forwarding struct {
	Trusted []netip.Prefix // addresses of trusted proxies
	Headers []string       // canonical names of other fields that only trusted proxies may set
	Client  func(*http.Request) netip.Addr
	Pass    []string // canonical names of fields that are not removed
}

// set writes X-Real-IP, X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto. The X-Forwarded fields of a trusted
// proxy stay, and the proxy's address is appended to X-Forwarded-For. The fields of other peers are removed.
//
// [httputil.ReverseProxy] has already removed X-Forwarded-For and Forwarded. Forwarded stays removed, because it would
// not name this proxy.
//
// The X-Forwarded values are the same as from [httputil.ProxyRequest.SetXForwarded], but set does not allocate for
// them.
func (f *Forwarding) set(r *httputil.ProxyRequest) {
	isTrusted := f.isTrusted(r.In.RemoteAddr)
	out := r.Out.Header
	f.remove(out, isTrusted)
	if r.Out.Trailer != nil {
		f.remove(r.Out.Trailer, isTrusted)
	}
	values := &exchangeOf(r.In).forwarded
	values[2] = "http"
	if peer, _, err := net.SplitHostPort(r.In.RemoteAddr); err == nil {
		if before := r.In.Header["X-Forwarded-For"]; isTrusted && len(before) > 0 {
			peer = strings.Join(before, ", ") + ", " + peer
		}
		values[0] = peer
		out["X-Forwarded-For"] = values[0:1:1]
	}
	values[1] = r.In.Host
	if r.In.TLS != nil {
		values[2] = "https"
	}
	out["X-Forwarded-Host"], out["X-Forwarded-Proto"] = values[1:2:2], values[2:3:3]
	if isTrusted {
		for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
			if list := r.In.Header[name]; len(list) > 0 {
				out[name] = list
			}
		}
	}
	if client := f.Client(r.In); client.IsValid() && !slices.Contains(f.Pass, "X-Real-Ip") {
		out["X-Real-Ip"] = fieldValue(client, out["X-Forwarded-For"])
	}
}

// fieldValue returns an address as the only value of a header field. If the existing values are already this address,
// fieldValue returns them, to save an allocation.
func fieldValue(addr netip.Addr, existing []string) []string {
	var buffer [len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%")]byte
	text := addr.AppendTo(buffer[:0])
	if len(existing) == 1 && existing[0] == string(text) {
		return existing
	}
	return []string{string(text)}
}

func (f *Forwarding) remove(header http.Header, isTrusted bool) {
	for name := range header {
		switch {
		case slices.Contains(f.Pass, name):
		case isTrusted && slices.Contains(f.Headers, name):
		case fieldname.IsPlain(name) && !fieldname.Misleads(name) &&
			(isTrusted || !slices.Contains(f.Headers, name) && !strings.HasPrefix(name, "X-Forwarded-")):
		default:
			delete(header, name)
		}
	}
}

func (f *Forwarding) isTrusted(remote string) bool {
	if len(f.Trusted) == 0 {
		return false
	}
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	addr := peer.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(f.Trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}
