// Package serve is the server that a rule file describes, over HTTP and over Redis' protocol.
//
// An endpoint (endpoint.go) is an address in the rule file, and what the server serves there. Package listen opens
// endpoints, bounds connections as budget.go says, and serves HTTP. Package resp serves Redis' protocol (redis.go).
//
// A generation (generation.go) is everything that was made from one rule file: the limits (rules.go), the routes
// (route.go), and the upstreams (upstreams.go, package proxy) or the built-in echo. The current generation answers
// requests. A reload (reload.go) builds the next generation and replaces the current one. Both may use the same
// limiters and connections. Packages live and refcount count the generations that use each of them.
//
// life.go has the phases of a server. A server ends by an upgrade (handover.go) or a stop (stop.go). Other proxies ask
// for decisions in decide.go. The administrator's endpoint is in page.go and admin.go.
package serve
