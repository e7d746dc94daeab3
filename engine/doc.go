// Package engine is weir's rate limiter. A [Limiter] applies one [Policy] to each of any number of keys.
//
//	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(100), 200))
//	...
//	if !limiter.Allow(clientIP) {
//		// 429
//	}
//
// [Limiter.Allow] takes one token and is the cheapest call. [Limiter.Take] takes several tokens, all or none, and
// returns a [Decision]: how many tokens are left, and exactly how long to wait. [Limiter.Wait] waits until it has taken
// its tokens. These calls accept the text of a key. All other calls accept a [Key], which is hashed once and used
// often:
//
//   - [Limiter.AllowKey], [Limiter.TakeKey] and [Limiter.WaitKey] do the same for a Key.
//   - [Limiter.Peek] decides without taking anything, and [Limiter.Refund] gives tokens back.
//   - [Limiter.Charge] takes tokens for a cost that has already arisen.
//   - [Limiter.TakeReceipt], [Limiter.Hold] and [Limiter.Reserve] return a [Receipt], which can give their tokens back.
//   - [Limiter.TakeBatch] takes from many keys at once, and [TakeAll] from several limiters.
//
// With [Tiers], one limiter serves users with several limits, such as free and paying users. If each request brings its
// own limit, [Limiter.Quota] makes a [Quota] for its key. [Limiter.SetPolicy] changes the numbers of a limiter in use.
//
// The algorithms are [TokenBucket], [BatchRefill], [FixedWindow], [SlidingWindow] and [SlidingLog]. A Decision has the
// same meaning for all of them. [Concurrency] limits how many tokens are in flight.
//
// # What it promises
//
// Exact keys: every key has its own bucket, found by 60 bits of a hash with a secret seed. In a table of a million
// keys, any two keys share a bucket with a probability of 4 in 10 million, and no client can cause it.
//
// Bounded memory: New allocates all memory, 27 bytes for each of the [MaxKeys] keys, or 54 for token buckets of several
// rates. A SlidingLog also stores times. A key whose bucket is full is forgotten, which changes no decision. If there
// is no room for a key, [Overflow] decides what happens, and [Stats] counts it.
//
// Lock-free: a decision never waits for another goroutine, whatever that goroutine does, and never allocates. The
// decisions about a key are linearizable.
//
// Honest time: within any time t of the limiter's clock, a key gets at most burst + rate*t, or what its window allows.
// If the clock is late, the bound in real time is burst + rate * (t + lateness). Only [ClockCoarse] may be late, and
// [ClockFunc] if its function is.
//
// Calls that only decide return no error. Errors of all other calls name the value and the range.
//
// # Stability
//
// The API follows semantic versions from v0.1.0 on.
package engine
