// Package fieldname recognizes names of request fields that mislead servers.
package fieldname

// IsPlain reports whether a name has only letters, digits and hyphens. Other names can be dangerous. Servers with the
// interfaces CGI, WSGI, Rack and FastCGI merge X-Forwarded-For, X_Forwarded_For and sometimes X.Forwarded.For into one
// variable, in which the client's value comes last. nginx drops names with other characters unless it is configured not
// to.
func IsPlain(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-':
		default:
			return false
		}
	}
	return true
}

// Misleads reports whether a name is the name of a field that servers and frameworks trust too much. From such a field,
// they may read a client's address or user. They may also read a URL, host or method that the request does not have.
// Even a trusted proxy may pass on such a field as its client has sent it. So the fields are also removed from requests
// of trusted proxies.
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
