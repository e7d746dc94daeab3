// Package listen has the sockets of a server and the connections of its clients.
//
// [Sockets] has the bound addresses. An [Endpoint] is an address with its [Role] and its settings. A socket (socket.go)
// stays open while there is an endpoint with its address. A server (server.go) accepts connections from the socket
// through a listener (listener.go) and answers them with a [Protocol]. The protocol comes from [Sockets.HTTP] or from
// the caller. A change of the endpoints has two steps, [Sockets.Prepare] and [Changes.Apply]. Only Prepare can fail.
//
// A [ConnLimit] bounds the number of connections, in total and for each client (clientconns.go), and closes idle
// connections to make room (idleconns.go). A client that stalls is cut off, because the next byte of an answer must be
// accepted within a timeout (sendtimeout.go, streamsender.go). The PROXY protocol is read in proxyproto.go.
//
// A process can inherit sockets from systemd or from a previous process of the same program (inherited.go). It can hand
// over its sockets to the next process (handover.go).
//
// The package gets handlers from its caller. It does not depend on what they answer, or on rule files.
package listen
