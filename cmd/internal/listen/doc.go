// Package listen has the sockets of a server and the connections of its clients.
//
// An [Endpoint] is an address with its [Role] and settings:
//
//   - A socket (socket.go) is open as long as an endpoint has its address.
//   - A server (server.go) accepts the connections of a socket through a listener (listener.go).
//   - A [Protocol] answers the connections of a server. It comes from [Sockets.HTTP] or from the caller.
//
// The endpoints change in two steps, [Sockets.Prepare] and [Changes.Apply]. Only Prepare can fail.
//
// A [ConnLimit] bounds the connections, in total and for each client (clientconns.go), and closes idle connections to
// make room (idleconns.go). A client that stalls is cut off (sendtimeout.go, streamsender.go). proxyproto.go reads the
// PROXY protocol.
//
// A process can inherit sockets from systemd, or from a previous process of the same program (inherited.go). It can
// hand them over to the next process (handover.go).
//
// The package does not depend on handlers or rule files.
package listen
