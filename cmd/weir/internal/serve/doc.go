// Package serve is the program as a server: what a rule file says, over HTTP.
//
// A request comes in at a front (front.go) of a socket (socket.go) and goes to the present generation
// (generation.go), which is everything that was made of one rule file: the limits
// (rules.go, keys.go), the routes behind them (route.go), and the upstreams (proxy.go) or the echo. A
// reload (reload.go) makes the next generation beside it and puts it in its place; limiters
// and connections that both need are handed on (shared.go).
//
// Others ask for decisions only (decide.go), and the administrator has a listener of
// their own (admin.go).
package serve
