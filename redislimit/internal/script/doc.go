// Package script contains the Lua scripts that decide requests on the server, and the Go code that calls them. The
// scripts keep the state of a limit in Redis or Valkey.
//
// A script is atomic. It takes the time from the server, never from a client. The state of a limit for one key is in
// one key of the server. This key lives at least as long as the state matters.
//
// The rate of a token bucket is num/den tokens per microsecond, in lowest terms. The bucket counts what a key owes in
// units of 1/den of a token. So a token is den units, and in a microsecond num units come back. Both are whole numbers,
// so nothing is ever rounded away, and every rational rate is exact forever, even 333333/s. A theoretical arrival time
// in whole microseconds cannot be exact: it would give one token in 3µs or in 4µs.
package script
