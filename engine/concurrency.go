package engine

import "time"

// Concurrency limits how many tokens of each key are in flight. The tokens that [Limiter.TakeReceipt] takes come back
// when the receipt is released ([Receipt.Release]), however long that takes. Use it for slow or heavy work, in addition
// to a rate or instead of it. Examples are connections, downloads, and requests to a server with a fixed number of
// workers.
//
// If a take is never released, because its goroutine is stuck or its program forgot it, the limiter forgets it after
// lifetime at the earliest and twice lifetime at the latest. Time is divided into periods, which begin at the multiples
// of lifetime since 1970. A take is forgotten at the end of the period that follows its own period. [Stats].Forgotten
// counts the tokens of such takes. If a take lasts longer than lifetime, it may be forgotten before it is released, and
// then more than the limit may be in flight. So lifetime must be longer than any take. It may be 365 days if every take
// is certain to be released. A release after the take was forgotten does nothing.
//
// A request with a time ahead of the limiter's clock ([Limiter.TakeAt]) is decided at that time. So it ignores takes
// that will be forgotten by then, up to a second before they are forgotten.
//
// A key with tokens in flight is not idle, and keeps its slot. If there are more such keys than [MaxKeys], [Overflow]
// decides. [Evict] forgets the key with the fewest tokens in flight, and that key may then take its whole limit again.
// [Refuse] refuses requests of new keys, and [Admit] admits them without counting. [Limiter.Reset] also forgets the
// tokens in flight. If tokens were forgotten in one of these ways, their release does nothing.
//
// In a [Decision], Remaining is how many more tokens may be taken. The limiter does not know when a token will be
// released. So RetryAfter is the time after which the request is admitted even if no token is released, and ResetAfter
// is the time until all tokens in flight are forgotten. Do not tell a client to wait for RetryAfter.
//
// Tokens taken by [Limiter.Take], [Limiter.Allow], [Limiter.Charge] and similar calls can only be given back by
// [Limiter.Refund]. Without such a refund they stay in flight until they are forgotten. [Limiter.Reserve] and
// [Limiter.Wait] return [ErrNotTokenBucket], because the time at which tokens come back is not known. [New] returns an
// error for [ChargeRefusals]. [Limiter.SetPolicy] may change the limit: tokens in flight stay in flight, and are
// released as before. It cannot change lifetime. [Tiers] and a [Quota] may have other limits.
//
// In a table that several processes share ([Shared]), some rules are different:
//
//   - Each take in flight has an entry, which names the process that made the take. After a process has ended in any
//     way, its takes are released by the next sweep of another process, or when another process attaches.
//   - A take is forgotten by the first sweep after its lifetime is over. RetryAfter and ResetAfter are always the whole
//     lifetime.
//   - No key with tokens in flight is evicted. If there is no room for a new key, its requests are refused, or, with
//     [Admit], admitted without counting.
//   - If a receipt is refunded in parts, all of its tokens come back with the last part.
//   - All keys together have 65,536 entries, and one more for every 2.4 keys of [MaxKeys]. When all entries are in use,
//     a take is treated as if its key was new and there was no room for the key. A refund without a receipt and a reset
//     scan all entries. An entry takes 24 bytes of the file, whether it is used or not.
//
// The parameter limit is 1 to 65,535, and lifetime is 1µs to 365 days. If lifetime is less than eight seconds, the
// highest limit is lower, and the error of New names it. A key takes 27 bytes ([MaxKeys]), however many tokens are in
// flight.
func Concurrency(limit uint64, lifetime time.Duration) Policy {
	return Policy{algorithm: AlgorithmConcurrency, limit: limit, window: lifetime}
}
