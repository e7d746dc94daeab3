// Package serve is the HTTP side of the program: a server that charges every
// request to its client's bucket, passes what is admitted to an upstream or to
// a small echo, and answers the rest with 429.
//
// It is one way through: listen (server.go), who is asking (client.go), may they
// (handler.go), and then proxy.go or echo.go.
package serve
