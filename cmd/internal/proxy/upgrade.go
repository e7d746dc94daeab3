package proxy

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// stripUpgrade removes the fields that ask to change the protocol. It keeps them for a WebSocket, unless the upstream
// uses HTTP/2 without TLS. With such an upstream, the transport would return an error that counts as a failure of the
// upstream.
//
// After a change of the protocol, weir copies bytes and sees no requests. A client that changed to h2c could send any
// number of requests for the tokens of one request. A WebSocket does not transport HTTP requests.
//
// The fields are removed from the incoming request, because [httputil.ReverseProxy] reads them before it calls Rewrite.
func stripUpgrade(r *http.Request, h2c bool) {
	if !h2c && isWebSocket(r) {
		return
	}
	delete(r.Header, "Upgrade")
	delete(r.Header, "Http2-Settings")
}

// isWebSocket reports whether a request opens a WebSocket (RFC 6455, section 4.1): a GET without a body, whose only
// Upgrade is "websocket". Lists such as "websocket, h2c" do not count, because the upstream could choose the other
// protocol.
func isWebSocket(r *http.Request) bool {
	upgrade := r.Header["Upgrade"]
	return len(upgrade) == 1 && strings.EqualFold(upgrade[0], "websocket") &&
		httpguts.HeaderValuesContainsToken(r.Header["Connection"], "Upgrade") &&
		r.ProtoAtLeast(1, 1) && r.ProtoMajor == 1 && r.Method == http.MethodGet && r.ContentLength == 0
}
