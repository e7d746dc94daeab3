// Package sealed makes ids for requests whose cost is reported by a later call: a reservation in Kuadrant's service, or
// a hold of a Redis client. An id contains the receipt of the tokens that were taken, sealed with a key. So there is no
// registry of holds that could grow or leak, and a hold that is never settled costs only its estimate.
//
// # What an id is good for
//
// The receipt in an id ([Sealer.Open]) gives tokens back at most once. It never gives back more tokens than the limiter
// still counts for the take. To remember that an id was used, the salt of the id is a key in a limiter with a limit of
// one token ([Uses]). This limiter remembers the id for the lifetime of the id. After its lifetime an id gives nothing
// back, so it need not be remembered for longer. What a request costs beyond its estimate can be charged at any time,
// but only once per lifetime of an id.
package sealed
