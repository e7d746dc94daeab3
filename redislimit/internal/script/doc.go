// Package script decides on the server: it holds the Lua scripts that keep a limit's state in
// Redis or Valkey, and how they are asked.
//
// A script is atomic and takes the time from the server, never from a client. All that it knows of one
// limit and key is in one key of the server, which is written together with its time to live, and
// that time is never shorter than what is written matters. A request that is refused takes nothing.
//
// The token bucket keeps what is owed in units of 1/den of a token, for a rate of num/den
// tokens a microsecond in lowest terms: a microsecond pays back num units and a token is den
// units, so no remainder is ever rounded away and every rational rate is exact for ever, 97/s and
// 333333/s too. (A theoretical arrival time in whole microseconds cannot do that: it would
// make 333333/s one token in 3µs or in 4.)
package script
