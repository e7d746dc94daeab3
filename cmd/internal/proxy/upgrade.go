package proxy

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// stripUpgrade removes the fields that ask to change the protocol, except for a WebSocket to an upstream that can use
// it. With HTTP/2 without TLS, the upstream cannot: the transport would return an error that counts as the upstream's
// failure.
//
// After a change, weir copies bytes and sees no requests. A client that changed to h2c could send any number of
// requests for the tokens of one. WebSocket transports no HTTP requests. The fields are removed from the incoming
// request, because [httputil.ReverseProxy] reads them before it calls Rewrite.
func stripUpgrade(r *http.Request, h2c bool) {
	if !h2c && isWebSocket(r) {
		return
	}
	delete(r.Header, "Upgrade")
	delete(r.Header, "Http2-Settings")
}

// isWebSocket reports whether a request opens a WebSocket (RFC 6455, section 4.1): a GET without a body, whose only
// Upgrade is "websocket". From a list such as "websocket, h2c", the upstream could choose another protocol.
func isWebSocket(r *http.Request) bool {
	upgrade := r.Header["Upgrade"]
	return len(upgrade) == 1 && strings.EqualFold(upgrade[0], "websocket") &&
		httpguts.HeaderValuesContainsToken(r.Header["Connection"], "Upgrade") &&
		r.ProtoAtLeast(1, 1) && r.ProtoMajor == 1 && r.Method == http.MethodGet && r.ContentLength == 0
}
