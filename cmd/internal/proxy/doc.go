// Package proxy passes on requests to upstreams.
//
// [Upstreams] has what all proxies of a program share: the metrics, and the bound on connections (conns.go). A [Set]
// has the connections (transport.go) and the servers (pool.go, member.go) of one configuration. It takes over
// connections and servers from the previous Set where possible. A server is not used after failed health checks
// (healthcheck.go) or a failed connection.
//
// A [Proxy] is the handler for one upstream. It is an [httputil.ReverseProxy] whose transport chooses a server for each
// request (balance.go). No request is executed twice (resend.go).
//
// An [Exchange] is a request in progress. It distinguishes failures of the client (clientbody.go) and of the upstream.
// It also bounds the tunnel after a change of the protocol (tunnel.go). forwarded.go sets the header fields that
// describe the client to an upstream.
//
// The package does not know rules. Its caller decides how failures are answered ([Failure]).
package proxy
