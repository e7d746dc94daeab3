// Package script contains the Lua scripts that decide requests on the server and keep a limit's state in Redis or
// Valkey. It also contains the Go code that calls the scripts.
//
// A script is atomic and takes the time from the server, never from a client. The complete state of a limit for one of
// its keys is in one key of the server. The state is written together with the time to live of this key, so that the
// key lives at least as long as the state matters. A refused request takes nothing.
//
// The rate of a token bucket is num/den tokens per microsecond, in lowest terms. The bucket counts the tokens that are
// owed in units of 1/den of a token. So a microsecond pays back num units, and a token is den units. Both numbers are
// whole, so no remainder is ever rounded away, and every rational rate is exact forever, even 97/s and 333333/s. (A
// theoretical arrival time in whole microseconds cannot be exact: for 333333/s, it would give one token in 3µs or in
// 4µs.)
package script
