// Package proxy passes requests on to upstreams.
//
// [Upstreams] are what all proxies of a program share: metrics, and the bound of connections (conns.go). A [Set] has
// the connections (transport.go) and the servers (pool.go, member.go) of one configuration, and shares with the next
// one what both have. Checks (healthcheck.go) and connections that fail say which servers are used.
//
// A [Proxy] is the handler for one upstream. It is an [httputil.ReverseProxy] with another transport (balance.go),
// which chooses a server for each request, and another one where no connection can be made. No request is executed
// twice (resend.go). An [Exchange] is a request on its way: it tells failures of the client (clientbody.go) from those
// of the upstream, and bounds what follows a change of the protocol (tunnel.go). What an upstream is told of the client
// is in forwarded.go.
//
// The package knows no rule. Whoever calls it says how failures are answered ([Failure]).
package proxy
