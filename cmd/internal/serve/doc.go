// Package serve is the program as a server: what a rule file says, over HTTP and Redis' protocol.
//
// The endpoints (endpoint.go) are the addresses of the rule file with what they serve. Package listen opens them,
// bounds their connections as budget.go says, and speaks HTTP there; package resp speaks Redis' protocol
// (redis.go).
//
// A request goes to the present generation (generation.go), which is everything that was made of one rule file: the
// limits (rules.go), the routes behind them (route.go), and the upstreams (upstreams.go, package proxy) or the echo. A
// reload (reload.go) builds the next generation and then replaces the present one. Limiters and connections that both
// use are counted (packages live and refcount).
//
// How far a server is between its start and its end is in life.go; handover.go and stop.go are its two ends. Other
// proxies ask for decisions only (decide.go). The administrator's endpoint is in page.go and admin.go.
package serve
