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
// and returns a [Decision], which says how many are left, and exactly how long to wait. [Limiter.Wait] waits until it
// has its tokens. These three take a key as text. [Limiter.AllowKey], [Limiter.TakeKey] and [Limiter.WaitKey] take a
// [Key] instead, which is hashed once and used often. All other calls only accept a Key:
//
//   - [Limiter.Peek] returns a decision without taking anything, and [Limiter.Refund] gives tokens back.
//   - [Limiter.Charge] takes tokens for a cost that has already arisen.
//   - [Limiter.TakeReceipt], [Limiter.Hold] and [Limiter.Reserve] return a [Receipt], which can give back what they
//     took.
//   - [Limiter.TakeBatch] takes from many keys, and [TakeAll] from several limiters at once.
//
// [Tiers] puts users of several plans into one limiter. [Limiter.Quota] turns a limit that came with a request into a
// value that a key carries. [Limiter.SetPolicy] changes the numbers of a limiter under traffic.
//
// The algorithms are [TokenBucket], [BatchRefill], [FixedWindow], [SlidingWindow] and [SlidingLog]. A Decision has the
// same meaning in each. [Concurrency] limits how many tokens are in flight, not how many are taken in a time:
// [Limiter.TakeReceipt] takes them, and [Receipt.Release] gives them back.
//
// # What it promises
//
// Exact keys: every key has a bucket of its own, found by 60 bits of a hash with a secret seed. In a table of a million
// keys, the probability that any two share a bucket is 4 in 10 million, and no client can cause it.
//
// Bounded memory: New allocates everything, 27 bytes for each of [MaxKeys] keys, or 54 for token buckets of several
// rates. A SlidingLog also keeps the times of its tokens. Keys whose bucket is full are forgotten, which changes no
// decision. If more buckets than planned are not full, [Overflow] decides what happens, and [Stats] counts how often.
//
// Lock-free: a decision never waits for another goroutine, whatever that goroutine is doing, and never allocates. The
// decisions about a key are linearizable.
//
// Honest time: in any time t of the limiter's clock a key gets at most burst + rate*t, or what its window allows. If
// the clock reads late, the bound in real time is burst + rate * (t + lateness). Only [ClockCoarse] reads late, and
// [ClockFunc] if its function reads late. See [ClockTSC], [ClockPrecise], [ClockCoarse] and [ClockFunc].
//
// A decision has no error. Errors come from calls that set something up, from calls that may wait, and from invalid
// arguments of TakeAll and TakeBatch. They name the value and the range.
//
// # Stability
//
// The API follows semantic versions from v0.1.0 on.
package engine
