// Package serve is the server that a rule file describes, over HTTP and over Redis' protocol.
//
// An endpoint (endpoint.go) is an address in the rule file, with what the server serves there. Package listen opens the
// endpoints, serves HTTP, and bounds connections to the numbers of budget.go. Package resp serves the Redis protocol
// (redis.go).
//
// A generation (generation.go) is everything that is made from one rule file: the limits (rules.go), the routes
// (route.go), and the upstreams (upstreams.go, package proxy) or the built-in echo. The current generation answers
// requests.
//
// A reload (reload.go) builds the next generation, which replaces the current one. Both generations may use the same
// limiters and connections. Packages live and refcount count how many generations use each of them.
//
// A server has several phases (life.go). It ends by an upgrade (handover.go) or by a stop (stop.go). decide.go answers
// other proxies that ask for decisions. page.go and admin.go have the administrator's endpoint.
package serve
