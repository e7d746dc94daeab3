package proxy

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// stripUpgrade removes the fields by which a request asks to change the protocol, unless the protocol is WebSocket and
// the upstream can speak it. Over HTTP/2 without TLS it cannot, and the transport would return an error for which the
// upstream is not to blame.
//
// After a change of the protocol weir copies bytes and sees no requests. A client that changes to h2c could send any
// number of requests for the price of one. WebSocket carries messages and no HTTP requests. The fields are removed from
// the request itself, because [httputil.ReverseProxy] reads them before it calls Rewrite.
func stripUpgrade(r *http.Request, h2c bool) {
	if !h2c && isWebSocket(r) {
		return
	}
	delete(r.Header, "Upgrade")
	delete(r.Header, "Http2-Settings")
}

// isWebSocket reports whether a request opens a WebSocket (RFC 6455, section 4.1): a GET without a body whose only
// Upgrade is the token "websocket". A list such as "websocket, h2c" leaves the choice to the upstream.
func isWebSocket(r *http.Request) bool {
	upgrade := r.Header["Upgrade"]
	return len(upgrade) == 1 && strings.EqualFold(upgrade[0], "websocket") &&
		httpguts.HeaderValuesContainsToken(r.Header["Connection"], "Upgrade") &&
		r.ProtoAtLeast(1, 1) && r.ProtoMajor == 1 && r.Method == http.MethodGet && r.ContentLength == 0
}
