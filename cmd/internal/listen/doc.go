// Package listen has the sockets of a server and the connections of its clients.
//
// [Sockets] are the bound addresses. An [Endpoint] says what is served at one of them, and by which settings. A socket
// (socket.go) stays open as long as an endpoint has its address. A server (server.go) accepts connections from it
// through a listener (listener.go) and answers them by a [Protocol]: [Sockets.HTTP], or another one of its caller. A
// change of the endpoints is made in two steps, [Sockets.Prepare] and [Changes.Apply]: after the first one nothing
// fails.
//
// A [ConnLimit] bounds how many connections there are, in all and of one client (clientconns.go), and closes idle ones
// to make room (idleconns.go). Clients that stall are cut off: by a deadline between two bytes of an answer
// (sendtimeout.go, streamsender.go). The PROXY protocol is read in proxyproto.go.
//
// Sockets are inherited from systemd or from another process of the same program (inherited.go), and handed over to the
// next one (handover.go).
//
// The package knows handlers, and neither what they answer nor a rule file.
package listen
