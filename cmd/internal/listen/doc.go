// Package listen has the sockets of a server and the connections of its clients.
//
// [Sockets] are the bound addresses. An [Endpoint] is an address, what is served there, and the settings. A socket
// (socket.go) stays open while an endpoint has its address. A server (server.go) accepts connections from the socket
// through a listener (listener.go) and answers them with a [Protocol]: that of [Sockets.HTTP], or one from the caller.
// A change of the endpoints has two steps, [Sockets.Prepare] and [Changes.Apply]. Only the first can fail.
//
// A [ConnLimit] bounds the number of connections, in all and for each client (clientconns.go), and closes idle ones to
// make room (idleconns.go). Clients that stall are cut off by a deadline between two bytes of an answer
// (sendtimeout.go, streamsender.go). The PROXY protocol is read in proxyproto.go.
//
// Sockets are inherited from systemd or from a previous process of the same program (inherited.go), and handed over to
// the next process (handover.go).
//
// The package gets handlers from its caller. It does not depend on what they answer, or on rule files.
package listen
