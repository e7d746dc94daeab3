// Package proxy passes on requests to upstreams.
//
// [Upstreams] has what all proxies of a program share: the metrics, and the bound on connections (conns.go). A [Set]
// has the connections (transport.go) and the servers (pool.go, member.go) of one configuration. A Set shares with the
// previous Set the connections and servers that both need. Health checks (healthcheck.go) and failed connections decide
// which servers are used.
//
// A [Proxy] is the handler for one upstream. It is an [httputil.ReverseProxy] with its own transport (balance.go). The
// transport chooses a server for each request. If it cannot connect to this server, it chooses another one. No request
// is executed twice (resend.go). An [Exchange] is a request in progress: it distinguishes failures of the client
// (clientbody.go) and failures of the upstream, and bounds the tunnel that a request becomes if it changes the protocol
// (tunnel.go). forwarded.go sets the header fields that describe the client to an upstream.
//
// The package does not know rules. Its caller decides how failures are answered ([Failure]).
package proxy
