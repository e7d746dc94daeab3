// Package serve is the program as a server: what a rule file says, over HTTP and Redis' protocol.
//
// An endpoint (endpoint.go) is an address of the rule file with what it serves. Its socket (socket.go) stays open as
// long as the file wants the address. A socketServer (socketserver.go) accepts connections from the socket through a
// listener (listener.go), and a connLimit (connlimit.go) bounds how many there are. It speaks HTTP (httpserver.go) or
// Redis' protocol (redis.go, package respdoor).
//
// A request goes to the present generation (generation.go), which is everything that was made of one rule file: the
// limits (rules.go), the routes behind them (route.go), and the upstreams (proxy.go) or the echo. A reload
// (reload.go) builds the next generation and then replaces the present one. Limiters and connections that both use
// are counted (refcounted.go). What becomes of the sockets is in socketchanges.go.
//
// Other proxies ask for decisions only (decide.go). The administrator's endpoint is in admin.go.
package serve
