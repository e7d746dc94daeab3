// Package sealed makes ids of what a front has taken for a request whose cost another call reports: a reservation of
// Kuadrant's service, a hold of the door for clients of Redis. An id is the receipt itself, sealed with a key, so that
// no registry of holds can grow or leak, and a hold that is never settled costs its estimate and nothing else.
//
// # What an id is good for
//
// A sealed id gives back what was taken once at most, by the receipt in it ([Sealer.Open]): never more than is owed
// because of that take. Its salt is a key of a limiter of one token ([Uses]), which so knows for the lifetime of the id
// that it has been used. After its lifetime an id gives nothing back, so nobody needs to remember it for longer. What
// the request cost beyond the estimate is charged at any time, once in a lifetime.
package sealed
