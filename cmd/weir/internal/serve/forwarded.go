package serve

import (
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strings"

	"github.com/weir-go/weir/cmd/weir/internal/config"
	"github.com/weir-go/weir/httplimit"
)

// A forwarder sets the fields that tell an upstream which client a request is from, and removes those with which a
// client could tell it something else.
type forwarder struct {
	trusted []netip.Prefix
	header  string // in which trusted proxies write the client's address, beside X-Forwarded-For; "" for none
	ip      *httplimit.ClientIP
	pass    []string // canonical names of fields that are passed on although they would be removed
}

func newForwarder(u *config.Upstream, f *config.File, ip *httplimit.ClientIP) *forwarder {
	return &forwarder{trusted: f.TrustedProxies, header: f.ClientIP.Header, ip: ip, pass: u.PassHeaders}
}

// set writes X-Forwarded-For, -Host and -Proto and X-Real-IP. The X-Forwarded fields of a trusted proxy are kept, and
// its address is appended to X-Forwarded-For. Those of other peers are dropped. [httputil.ReverseProxy] has dropped
// Forwarded, in which this proxy would be missing.
func (f *forwarder) set(r *httputil.ProxyRequest) {
	trusted := f.trusts(r.In.RemoteAddr)
	f.remove(r.Out.Header, trusted)
	f.remove(r.Out.Trailer, trusted)
	if trusted {
		r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	}
	r.SetXForwarded()
	if trusted {
		for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
			if told := r.In.Header[name]; len(told) > 0 {
				r.Out.Header[name] = told
			}
		}
	}
	if client := f.ip.Addr(r.In); client.IsValid() && !slices.Contains(f.pass, "X-Real-Ip") {
		r.Out.Header["X-Real-Ip"] = asField(client, r.Out.Header["X-Forwarded-For"])
	}
}

// asField returns an address as the values of a field: the given ones if they are that.
func asField(addr netip.Addr, same []string) []string {
	var room [len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%")]byte
	text := addr.AppendTo(room[:0])
	if len(same) == 1 && same[0] == string(text) {
		return same
	}
	return []string{string(text)}
}

// remove removes the fields that must not come from a client.
func (f *forwarder) remove(header http.Header, trusted bool) {
	for name := range header {
		switch {
		case slices.Contains(f.pass, name):
		case trusted && name == f.header:
		case isPlain(name) && !misleads(name) && (trusted || name != f.header && !strings.HasPrefix(name, "X-Forwarded-")):
		default:
			delete(header, name)
		}
	}
}

// isPlain reports whether a name has only letters, digits and hyphens. Servers with the interfaces CGI, WSGI, Rack and
// FastCGI make one variable of X-Forwarded-For, X_Forwarded_For and sometimes X.Forwarded.For, in which the client's
// value comes last. nginx drops other names, too, unless it is told not to.
func isPlain(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-':
		default:
			return false
		}
	}
	return true
}

// misleads reports whether servers and frameworks read the client's address, or another target of the request, from a
// field. A trusted proxy may pass such a field on as its client sent it, so they are removed from its requests, too.
func misleads(name string) bool {
	switch name {
	case "X-Real-Ip", "True-Client-Ip", "X-Client-Ip", "Client-Ip", "X-Cluster-Client-Ip", "X-Remote-Ip", "X-Remote-Addr",
		"X-Originating-Ip", "X-Proxyuser-Ip", "Cf-Connecting-Ip", "Cf-Connecting-Ipv6", "Cf-Pseudo-Ipv4",
		"Fastly-Client-Ip", "Fly-Client-Ip", "Do-Connecting-Ip", "X-Azure-Clientip", "X-Azure-Socketip",
		"X-Appengine-User-Ip", "X-Envoy-External-Address", "X-Forwarded", "Forwarded-For", "X-Forward-For",
		"X-Original-Forwarded-For", "Proxy-Client-Ip", "Wl-Proxy-Client-Ip", "X-Real-Client-Ip", "Remote-User",
		"X-Remote-User", "Remote-Addr":
		return true
	case "X-Original-Url", "X-Original-Uri", "X-Original-Host", "X-Original-Method", "X-Original-For", "X-Rewrite-Url",
		"X-Host", "X-Url-Scheme", "X-Scheme", "Front-End-Https", "X-Envoy-Original-Path", "X-Waws-Unencoded-Url",
		"X-Http-Host-Override", "X-Accel-Redirect", "Proxy", "X-Http-Method-Override", "X-Http-Method", "X-Method-Override",
		"X-Override-Url", "X-Original-Path", "X-Rewrite-Path", "X-Http-Destinationurl", "Http-Host", "X-Real-Host":
		return true
	}
	return false
}

// trusts reports whether the peer is a trusted proxy.
func (f *forwarder) trusts(remote string) bool {
	if len(f.trusted) == 0 {
		return false
	}
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	addr := peer.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(f.trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}
