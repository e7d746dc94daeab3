// Package serve is the server. It does what a rule file says, over HTTP and over Redis' protocol.
//
// An endpoint (endpoint.go) is an address in the rule file, together with what the server serves at that address.
// Package listen opens endpoints, bounds their connections as budget.go says, and serves HTTP. Package resp serves
// Redis' protocol (redis.go).
//
// A request is answered by the current generation (generation.go), which is everything that was made from one rule
// file: the limits (rules.go), the routes behind them (route.go), and the upstreams (upstreams.go, package proxy) or
// the built-in echo. A reload (reload.go) builds the next generation and then replaces the current one. The two
// generations may share limiters and connections. Packages live and refcount count how many generations use each of
// them.
//
// life.go has the phases of a server. A server ends by an upgrade (handover.go) or a stop (stop.go). Other proxies can
// ask for decisions (decide.go). The administrator's endpoint is in page.go and admin.go.
package serve
