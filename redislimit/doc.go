// Package redislimit holds limits over many machines, with their state in Redis 7 or later, or Valkey: one
// server, Sentinel, or Cluster.
//
//	client, err := redislimit.Open(ctx, "redis://localhost:6379")
//	...
//	limiter, err := redislimit.New(client, "api", engine.TokenBucket(engine.PerSecond(1000), 200), redislimit.Nodes(4))
//	...
//	decision, err := limiter.Take(ctx, clientIP, 1)
//
// A [Limiter] is a backend of package httplimit, too.
//
// # Two modes
//
// Strict asks the store for every request: one script call decides for up to 64 keys, those that were asked
// for while the calls before were under way. All four algorithms; nothing is over-admitted; a refused request takes
// nothing; the clock is the server's.
//
// Leased is for token buckets and fixed windows of 100/s and more. A node spends tokens that the store has
// charged already, and asks for more before they run out: a decision is some tens of nanoseconds, and the
// store is asked for a saturated key some 250 times a second by each node (docs/distributed.md). [Auto] chooses, and [Limiter.Mode] says
// what it chose.
//
// # The bound
//
// Over any time T all nodes together admit of one key at most
//
//	burst + rate*T + O + N*D
//
// N being the [Nodes], D the [Overdraft], and O the tokens that nodes had in hand at its beginning, at most half
// the burst each. No term grows with the load, and none but rate*T with time. In strict mode the last two are 0. The
// limit of a fixed window takes the place of burst + rate*T. See internal/lease for why.
//
// # When the store fails
//
// Nothing waits longer than [Timeout] for it. When nothing but failures came for [BreakAfter] it is lost: tokens in hand are
// spent, then the [FailurePolicy] decides, at once, and the store is tried four times a second.
//
// # Stability
//
// The API follows semantic versions from v0.1.0 on.
package redislimit
