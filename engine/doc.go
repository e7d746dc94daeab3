// Package engine is weir's rate limiter. A [Limiter] applies one [Policy] to any number of keys, to each key
// separately.
//
//	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(100), 200))
//	...
//	if !limiter.Allow(clientIP) {
//		// 429
//	}
//
// [Limiter.Allow] takes one token and is the cheapest call. [Limiter.Take] takes several tokens at once, all or none,
// and returns a [Decision], which says how many tokens are left, and exactly how long to wait. [Limiter.Wait] waits
// until it has taken its tokens. The argument of these three calls is the text of a key. [Limiter.AllowKey],
// [Limiter.TakeKey] and [Limiter.WaitKey] accept a [Key] instead, which is hashed once and used often. All other calls
// accept only a Key:
//
//   - [Limiter.Peek] returns a decision without taking anything, and [Limiter.Refund] gives tokens back.
//   - [Limiter.Charge] takes tokens for a cost that has already arisen.
//   - [Limiter.TakeReceipt], [Limiter.Hold] and [Limiter.Reserve] return a [Receipt], which can give back the tokens
//     that they took.
//   - [Limiter.TakeBatch] takes from many keys at once, and [TakeAll] from several limiters.
//
// With [Tiers], one limiter serves users with several limits, such as free and paying users. If a request comes with
// its own limit, [Limiter.Quota] makes a [Quota] of this limit, and a Key can have a Quota. [Limiter.SetPolicy] changes
// the numbers of a limiter while it is in use.
//
// The algorithms are [TokenBucket], [BatchRefill], [FixedWindow], [SlidingWindow] and [SlidingLog]. A Decision has the
// same meaning for all of them. [Concurrency] limits how many tokens are in flight, not how many are taken in a given
// time: [Limiter.TakeReceipt] takes tokens, and [Receipt.Release] gives them back.
//
// # What it promises
//
// Exact keys: every key has its own bucket, which is found by 60 bits of a hash with a secret seed. In a table of a
// million keys, the probability that any two keys share a bucket is 4 in 10 million, and no client can cause it.
//
// Bounded memory: New allocates all memory. That is 27 bytes for each of the [MaxKeys] keys, or 54 bytes for token
// buckets of several rates. A SlidingLog also keeps the times of its tokens. Keys whose bucket is full are forgotten,
// which changes no decision. If more keys than planned have buckets that are not full, [Overflow] decides what happens,
// and [Stats] counts how often.
//
// Lock-free: a decision never waits for another goroutine, whatever that goroutine is doing. It never allocates. The
// decisions about a key are linearizable.
//
// Honest time: within any time t of the limiter's clock, a key gets at most burst + rate*t, or what its window allows.
// If the clock is late, the bound in real time is burst + rate * (t + lateness). Only [ClockCoarse] may be late, and
// [ClockFunc] if its function returns late times. See [ClockTSC], [ClockPrecise], [ClockCoarse] and [ClockFunc].
//
// Calls that only decide return no error. Errors come from calls that set something up, from calls that may wait, and
// from TakeAll and TakeBatch for invalid arguments. Errors name the value and the range.
//
// # Stability
//
// The API follows semantic versions from v0.1.0 on.
package engine
