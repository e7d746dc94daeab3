// Package proxy passes on requests to upstreams.
//
// [Upstreams] has what all proxies of a program share: the metrics, and the bound on connections (conns.go). A [Set]
// has the connections (transport.go) and the servers (pool.go, member.go) of one configuration, and shares them with
// the previous Set where possible. Health checks (healthcheck.go) and failed connections decide which servers are used.
//
// A [Proxy] is the handler for one upstream: an [httputil.ReverseProxy] whose transport (balance.go) chooses a server
// for each request. No request is executed twice (resend.go). An [Exchange] is a request in progress. It separates the
// client's failures (clientbody.go) from the upstream's, and bounds the tunnel that follows a change of the protocol
// (tunnel.go). forwarded.go sets the fields that describe the client to an upstream.
//
// The package does not know rules. Its caller decides how failures are answered ([Failure]).
package proxy
