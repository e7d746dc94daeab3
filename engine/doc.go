// Package engine is weir's rate limiter: a [Limiter] applies one [Policy] to each of
// any number of keys.
//
//	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(100), 200))
//	...
//	if !limiter.Allow(clientIP) {
//		// 429
//	}
//
// [Limiter.Allow] is the cheapest question. [Limiter.Take] takes several tokens at once, all or none, and answers
// with a [Decision]: what is left, and exactly how long to wait. [Limiter.Peek] only looks, [Limiter.Refund] gives
// back, [Limiter.Charge] takes what has happened already, [Limiter.Wait] waits. Each has a form that takes a [Key],
// for a key that is hashed once and used often. [All] asks several limiters at once, [Limiter.TakeBatch] one of them
// for many keys, [Tiers] puts users of several plans into one, [Limiter.Quota] makes a limit that came with a request
// into a value that a key carries, and [Limiter.SetPolicy] changes its numbers under traffic.
//
// The algorithms are [TokenBucket], [BatchRefill], [FixedWindow], [SlidingWindow] and
// [SlidingLog]. A Decision has the same meaning in each. [Concurrency] limits what is in flight, not what comes in a
// time: [Limiter.Enter] returns what releases it.
//
// # What it promises
//
// Exact keys: every key has a bucket of its own, found by a 64-bit hash with a secret
// seed. Two of a million keys share one with a probability of 3 in 100 million, and
// no client can arrange it.
//
// Bounded memory: everything is allocated by New, 27 bytes for each of [MaxKeys] (and the
// times, for a SlidingLog). Keys
// whose bucket is full are forgotten, which cannot be noticed. If ever there are more
// that are not, [Overflow] says what happens, and [Stats] says how often.
//
// Lock-free: no decision waits for another goroutine, whatever that one is doing, and
// none allocates. Decisions are linearizable, key by key.
//
// Honest time: a key gets at most burst + rate*t through in any time t of the limiter's clock, or what its window
// allows. A clock that reads late makes that burst + rate * (t + lateness) in real time: none does but [ClockCoarse],
// and [ClockFunc] if its function does. See [ClockTSC], [ClockPrecise], [ClockCoarse] and [ClockFunc].
//
// Errors come from what is set up and from what may wait, never from a decision. They name
// the value and the range.
//
// # Stability
//
// The API follows semantic versions from v0.1.0 on.
package engine
