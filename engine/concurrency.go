package engine

import "time"

// Concurrency limits how many tokens of each key are in flight: what [Limiter.TakeReceipt] takes comes back when its
// receipt is released ([Receipt.Release]), however long that takes. It is the limit for what is slow or heavy, next to
// a rate or instead of one: connections, downloads, requests to a server that has so many workers.
//
// An entry that is never released, because its goroutine is stuck or its program forgot it, is forgotten after lifetime
// at the earliest and twice that at the latest: at the end of the period after its own, where periods begin at the
// multiples of lifetime since 1970. [Stats].Forgotten counts those. One that lives for longer than lifetime may be
// forgotten though it lives, and more than the limit may then be in flight: so lifetime must be more than any entry
// lives, and may be 365 days if every one of them is certain to be released. A release that comes too late does
// nothing.
//
// A request that is made ahead of the limiter's clock ([Limiter.TakeAt]) does not count what is forgotten by its own
// time, up to [MaxLead] early.
//
// A key of which something is in flight is not idle, and keeps its slot. If there are more of those than [MaxKeys],
// [Overflow] decides: [Evict] forgets the key with the fewest in flight, which may then have its limit anew, [Refuse]
// refuses new keys, and [Admit] admits them uncounted. [Limiter.Reset] forgets what is in flight, too. The release of
// an entry that was forgotten in one of these ways does nothing.
//
// In a [Decision] Remaining is how many more tokens may enter. When one of those in flight is released is not known:
// RetryAfter is the time after which the request passes even if none is, and ResetAfter the time until all of them are
// forgotten. So a client should not be told to wait for RetryAfter.
//
// What [Limiter.Take], [Limiter.Allow], [Limiter.Charge] and the like take is given back by [Limiter.Refund] only, and
// forgotten without it. [Limiter.Reserve] and [Limiter.Wait] return [ErrInFlight], since no time is known at which
// tokens come back, and [ChargeRefusals] is an error of [New]. [Limiter.SetPolicy] may change the limit: what is in
// flight stays so, and is released as before. lifetime stays what it was at New. [Tiers] and a [Quota] may have other
// limits.
//
// In a table of several processes ([Shared]) an entry says whose it is. What a process has in flight is free with the
// first sweep of another one, or when another one attaches, after the process has ended in any way. An entry is
// forgotten by the first sweep after its lifetime. No key with something in flight is evicted: new keys without room
// are refused. A receipt that is refunded in parts gives all of it back with the last part. Of all keys together 65,536
// requests may be in flight, and one more for each 2.4 of [MaxKeys]; more are refused as keys without room are. A
// refund without a receipt, and a reset, look at each of these. In such a table RetryAfter and ResetAfter are the whole
// lifetime. Each of those requests takes 24 bytes of the file, also if there are none.
//
// limit is 1 to 65,535, and lifetime 1µs to 365 days. Where lifetime is less than eight seconds the highest limit is
// lower, and the error of New names it. A key takes 27 bytes ([MaxKeys]), however many tokens are in flight.
func Concurrency(limit uint64, lifetime time.Duration) Policy {
	return Policy{algorithm: AlgorithmConcurrency, limit: limit, window: lifetime}
}
