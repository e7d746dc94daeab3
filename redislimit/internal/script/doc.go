// Package script makes the decisions on the server. It has the Lua scripts that keep a limit's state in Redis or
// Valkey, and the Go code that calls them.
//
// A script is atomic and takes the time from the server, never from a client. One key of the server has the whole state
// of one limit and key. It is written together with its time to live, which is never shorter than the state matters. A
// refused request takes nothing.
//
// The token bucket keeps what is owed in units of 1/den of a token, for a rate of num/den tokens a microsecond in
// lowest terms. A microsecond pays back num units and a token is den units. So no remainder is ever rounded away, and
// every rational rate is exact forever, also 97/s and 333333/s. (A theoretical arrival time in whole microseconds
// cannot do that: it would make 333333/s one token in 3µs or in 4.)
package script
