// Package serve is the server: it does what a rule file says, over HTTP and Redis' protocol.
//
// The endpoints (endpoint.go) are the addresses in the rule file, with what they serve. Package listen opens them,
// bounds their connections as budget.go says, and serves HTTP. Package resp serves Redis' protocol (redis.go).
//
// A request goes to the current generation (generation.go), which is everything that was made from one rule file: the
// limits (rules.go), the routes behind them (route.go), and the upstreams (upstreams.go, package proxy) or the echo. A
// reload (reload.go) builds the next generation and then replaces the current one. Packages live and refcount count the
// users of limiters and connections that both generations share.
//
// life.go keeps track of the phases of a server. A server ends by an upgrade (handover.go) or a stop (stop.go). Other
// proxies can ask for decisions (decide.go). The administrator's endpoint is in page.go and admin.go.
package serve
