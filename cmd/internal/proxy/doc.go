// Package proxy passes requests on to upstreams.
//
// [Upstreams] has what all proxies of a program share: metrics, and the bound on connections (conns.go). A [Set] has
// the connections (transport.go) and the servers (pool.go, member.go) of one configuration. Two consecutive Sets share
// what both need. Health checks (healthcheck.go) and failed connections decide which servers are used.
//
// A [Proxy] is the handler for one upstream. It is an [httputil.ReverseProxy] with another transport (balance.go),
// which chooses a server for each request, and another server if it cannot connect to the first. No request is executed
// twice (resend.go). An [Exchange] is a request in progress: it distinguishes failures of the client (clientbody.go)
// from those of the upstream, and bounds the tunnel after a change of the protocol (tunnel.go). forwarded.go sets the
// header fields that describe the client to an upstream.
//
// The package does not know rules. Its caller decides how failures are answered ([Failure]).
package proxy
