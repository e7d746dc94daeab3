// Package engine is weir's rate limiter: a [Limiter] applies one [Policy] to each of
// any number of keys.
//
//	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(100), 200))
//	...
//	if !limiter.Allow(clientIP) {
//		// 429
//	}
//
// [Limiter.Allow] takes one token and is the cheapest call. [Limiter.Take] takes several tokens at once, all or none,
// and returns a [Decision]: what is left, and exactly how long to wait. [Limiter.Wait] waits for its tokens. These
// three take the text of a key. [Limiter.AllowKey], [Limiter.TakeKey] and [Limiter.WaitKey] take a [Key] instead, which
// is hashed once and used often. All other calls take a Key only:
//
//   - [Limiter.Peek] only looks, and [Limiter.Refund] gives back.
//   - [Limiter.Charge] takes what has happened already.
//   - [Limiter.TakeReceipt], [Limiter.Hold] and [Limiter.Reserve] return a [Receipt], which gives back what they took.
//   - [Limiter.TakeBatch] takes from many keys, and [TakeAll] from several limiters at once.
//
// [Tiers] puts users of several plans into one limiter. [Limiter.Quota] makes a limit that came with a request into a
// value that a key carries. [Limiter.SetPolicy] changes the numbers of a limiter under traffic.
//
// The algorithms are [TokenBucket], [BatchRefill], [FixedWindow], [SlidingWindow] and [SlidingLog]. A Decision has the
// same meaning in each. [Concurrency] limits what is in flight, not what comes in a time: [Limiter.TakeReceipt] takes
// it, and [Receipt.Release] gives it back.
//
// # What it promises
//
// Exact keys: every key has a bucket of its own, found by 60 bits of a hash with a secret seed. Two of a million keys
// share one with a probability of 4 in 10 million, and no client can arrange it.
//
// Bounded memory: everything is allocated by New, 27 bytes for each of [MaxKeys], or 54 for token buckets of several
// rates. A SlidingLog also keeps the times of its tokens. Keys whose bucket is full are forgotten, which changes no
// decision. If more keys than planned are not full, [Overflow] says what happens, and [Stats] says how often.
//
// Lock-free: no decision waits for another goroutine, whatever that one is doing, and none allocates. Decisions are
// linearizable, key by key.
//
// Honest time: in any time t of the limiter's clock a key gets at most burst + rate*t, or what its window allows. If
// the clock reads late, the bound in real time is burst + rate * (t + lateness). Only [ClockCoarse] reads late, and
// [ClockFunc] if its function does. See [ClockTSC], [ClockPrecise], [ClockCoarse] and [ClockFunc].
//
// A decision has no error. Errors come from what is set up, from what may wait, and from arguments of TakeAll and
// TakeBatch that do not fit. They name the value and the range.
//
// # Stability
//
// The API follows semantic versions from v0.1.0 on.
package engine
