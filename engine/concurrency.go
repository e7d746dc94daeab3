package engine

import "time"

// Concurrency limits how many tokens of each key are in flight. A token is in flight from [Limiter.TakeReceipt] until
// [Receipt.Release], however long that takes. Use this policy for slow or heavy work such as downloads, instead of a
// rate or in addition to one. The limit is 1 to 65,535, and the lifetime is 1µs to 365 days. For a lifetime below
// 7.5 seconds the highest limit is lower, and the error of New names it. A key takes 27 bytes.
//
// A take that is never released is forgotten after one to two lifetimes, and its later release does nothing.
// [Stats].Forgotten counts its tokens. So the lifetime must be longer than any take; otherwise more than the limit may
// be in flight. A request of [Limiter.TakeAt] may be ahead of the limiter's clock. It ignores takes that will be
// forgotten by its time.
//
// A key with tokens in flight keeps its slot. If there are more such keys than [MaxKeys], [Overflow] decides: [Evict]
// forgets the key with the fewest tokens in flight, which may then take its whole limit again. The release of tokens
// that an eviction or a [Limiter.Reset] has forgotten does nothing.
//
// In a [Decision], Remaining is how many more tokens may be taken. RetryAfter is the wait if no token is released, so
// do not send it to clients. ResetAfter is the time until all tokens in flight are forgotten.
//
// Tokens taken without a receipt stay in flight until [Limiter.Refund], or until they are forgotten. [Limiter.Reserve]
// and [Limiter.Wait] return [ErrNotTokenBucket], because the time of a release is not known. [New] returns an error for
// [ChargeRefusals]. [Limiter.SetPolicy] may change the limit but not the lifetime. [Tiers] and a [Quota] may have other
// limits.
//
// With [Shared], some rules are different:
//
//   - Takes of a process that has ended are released by the next sweep of another process, or when a process attaches.
//   - A take is forgotten by the first sweep after its lifetime. RetryAfter and ResetAfter are always the whole
//     lifetime.
//   - No key with tokens in flight is evicted. Without room, requests of a new key are refused, or, with [Admit], not
//     counted.
//   - If a receipt is refunded in parts, all of its tokens come back with the last part.
//   - Each take in flight needs an entry of 24 bytes in the file. The file has 65,536 entries, and one more for every
//     2.4 keys of [MaxKeys]. Without a free entry, there is no room for the take. A refund without a receipt and a
//     reset scan all entries.
func Concurrency(limit uint64, lifetime time.Duration) Policy {
	return Policy{algorithm: AlgorithmConcurrency, limit: limit, window: lifetime}
}
