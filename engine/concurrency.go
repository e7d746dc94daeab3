package engine

import "time"

// Concurrency limits how many tokens of each key are in flight: what [Limiter.TakeReceipt] takes comes back when its
// receipt is released ([Receipt.Release]), however long that takes. It is the limit for what is slow or heavy, next to
// a rate or instead of one: connections, downloads, requests to a server that has so many workers.
//
// A take that is never released, because its goroutine is stuck or its program forgot it, is forgotten after lifetime
// at the earliest and twice that at the latest. It is forgotten at the end of the period after its own, where periods
// begin at the multiples of lifetime since 1970. [Stats].Forgotten counts the tokens. A take that lasts longer than
// lifetime may be forgotten while it lasts, and more than the limit may then be in flight. So lifetime must be more
// than any take lasts. It may be 365 days if every take is certain to be released. A release that comes too late does
// nothing.
//
// A request with a time ahead of the limiter's clock ([Limiter.TakeAt]) is decided by that time. So it does not count
// takes that are forgotten by then, up to a second early.
//
// A key of which something is in flight is not idle, and keeps its slot. If there are more such keys than [MaxKeys],
// [Overflow] decides. [Evict] forgets the key with the fewest in flight, which may then have its limit again. [Refuse]
// refuses new keys, and [Admit] admits them uncounted. [Limiter.Reset] forgets what is in flight, too. The release of
// what was forgotten in one of these ways does nothing.
//
// In a [Decision] Remaining is how many more tokens may be taken. The time at which a token is released is not known.
// So RetryAfter is the time after which the request passes even if none is released, and ResetAfter the time until all
// are forgotten. Do not tell a client to wait for RetryAfter.
//
// What [Limiter.Take], [Limiter.Allow], [Limiter.Charge] and the like take is given back by [Limiter.Refund] only, and
// forgotten without it. [Limiter.Reserve] and [Limiter.Wait] return [ErrNotTokenBucket], since the time at which tokens
// come back is not known. [New] returns an error for [ChargeRefusals]. [Limiter.SetPolicy] may change the limit: what
// is in flight stays in flight, and is released as before. It cannot change lifetime. [Tiers] and a [Quota] may have
// other limits.
//
// In a table of several processes ([Shared]) these rules differ:
//
//   - Each take in flight has an entry, which says whose it is. After a process has ended in any way, its takes are
//     released by the first sweep of another process, or when another one attaches.
//   - A take is forgotten by the first sweep after its lifetime. RetryAfter and ResetAfter are the whole lifetime.
//   - No key with something in flight is evicted. New keys without room are refused, or admitted uncounted by [Admit].
//   - A receipt that is refunded in parts gives all of it back with the last part.
//   - All keys together have 65,536 entries, and one more for each 2.4 of [MaxKeys]. A take beyond that is treated as a
//     key without room. A refund without a receipt, and a reset, look at every entry. An entry takes 24 bytes of the
//     file, whether it is used or not.
//
// limit is 1 to 65,535, and lifetime 1µs to 365 days. Where lifetime is less than eight seconds the highest limit is
// lower, and the error of New names it. A key takes 27 bytes ([MaxKeys]), however many tokens are in flight.
func Concurrency(limit uint64, lifetime time.Duration) Policy {
	return Policy{algorithm: AlgorithmConcurrency, limit: limit, window: lifetime}
}
