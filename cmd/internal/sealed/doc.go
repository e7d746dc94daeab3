// Package sealed makes ids for requests whose cost is reported by a later call: a reservation of Kuadrant's service, or
// a hold of a Redis client. An id contains the receipt of the taken tokens, sealed with a key. So there is no registry
// of holds that could grow or leak, and a hold that is never settled costs only its estimate.
//
// # What an id is good for
//
// A sealed id gives back what was taken at most once, with the receipt in it ([Sealer.Open]), and never more than is
// still owed because of that take. The salt of an id is a key in a limiter of one token ([Uses]). So the limiter
// remembers a used id for the lifetime of the id. After its lifetime an id gives nothing back, so it need not be
// remembered for longer. The cost of the request beyond the estimate can be charged at any time, once in a lifetime.
package sealed
