// Package script contains the Lua scripts that decide requests on the server and keep a limit's state in Redis or
// Valkey, and the Go code that calls them.
//
// A script is atomic and takes the time from the server, never from a client. The state of a limit for one key is in
// one key of the server, which lives at least as long as the state matters.
//
// The rate of a token bucket is num/den tokens per microsecond, in lowest terms. The bucket counts what is owed in
// units of 1/den of a token, so a microsecond pays back num units, and a token is den units. Both are whole, so nothing
// is ever rounded away, and every rational rate is exact forever, even 333333/s. (A theoretical arrival time in whole
// microseconds cannot be exact: it would give one token in 3µs or in 4µs.)
package script
