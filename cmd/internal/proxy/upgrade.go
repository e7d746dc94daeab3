package proxy

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// stripUpgrade removes the fields by which a request asks to change the protocol. It keeps them if the protocol is
// WebSocket and the upstream can use it. An upstream with HTTP/2 without TLS cannot use WebSocket: the transport would
// return an error, and this error would count as a failure of the upstream.
//
// After a change of the protocol, weir copies bytes and sees no requests. So if a client could change to h2c, it could
// send any number of requests, and the limits would count only one. WebSocket transports messages and no HTTP requests.
// The fields are removed from the incoming request, because [httputil.ReverseProxy] reads them before it calls Rewrite.
func stripUpgrade(r *http.Request, h2c bool) {
	if !h2c && isWebSocket(r) {
		return
	}
	delete(r.Header, "Upgrade")
	delete(r.Header, "Http2-Settings")
}

// isWebSocket reports whether a request opens a WebSocket (RFC 6455, section 4.1). Such a request is a GET without a
// body, and its only Upgrade is the token "websocket". With a list such as "websocket, h2c", the upstream could choose
// another protocol.
func isWebSocket(r *http.Request) bool {
	upgrade := r.Header["Upgrade"]
	return len(upgrade) == 1 && strings.EqualFold(upgrade[0], "websocket") &&
		httpguts.HeaderValuesContainsToken(r.Header["Connection"], "Upgrade") &&
		r.ProtoAtLeast(1, 1) && r.ProtoMajor == 1 && r.Method == http.MethodGet && r.ContentLength == 0
}
