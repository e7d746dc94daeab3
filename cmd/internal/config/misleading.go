package config

import (
	"fmt"
	"slices"
	"strings"
)

// IsPlainName reports whether a name has only letters, digits and hyphens. Servers with the interfaces CGI, WSGI, Rack
// and FastCGI make one variable of X-Forwarded-For, X_Forwarded_For and sometimes X.Forwarded.For, in which the
// client's value comes last. nginx drops other names, too, unless it is told not to.
func IsPlainName(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-':
		default:
			return false
		}
	}
	return true
}

// Misleads reports whether servers and frameworks read the client's address, or another target of the request, from a
// field. A trusted proxy may pass such a field on as its client sent it, so they are removed from its requests, too.
func Misleads(name string) bool {
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

// isDropped reports whether a field of a client is not passed on, by its canonical name.
func isDropped(name string) bool {
	return !IsPlainName(name) || Misleads(name) || name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-")
}

// isDropped reports whether it is a header that no upstream gets.
func (s Source) isDropped(upstreams []*Upstream) bool {
	return s.Kind == SourceHeader && isDropped(s.Name) &&
		!slices.ContainsFunc(upstreams, func(u *Upstream) bool { return slices.Contains(u.PassHeaders, s.Name) })
}

// droppedKeys says which rules have a key that a client makes up for weir alone.
func (f *File) droppedKeys(upstreams []*Upstream) (all []string) {
	for i := range f.Rules {
		for _, part := range f.Rules[i].Key {
			for _, s := range part {
				if s.isDropped(upstreams) {
					all = append(all, fmt.Sprintf("rule %s: key: header:%s: any client can write it, each value is a bucket of its own, "+
						"and no upstream gets it: for addresses write ip, with trusted_proxies and client_ip", f.Rules[i].Name, s.Name))
				}
			}
		}
	}
	return all
}
