// Package redislimit enforces limits over many machines. The state of the limits is in Redis 7 or later, or in Valkey:
// one server, Sentinel, or Cluster.
//
//	client, err := redislimit.Open(ctx, "redis://localhost:6379")
//	...
//	policy := engine.TokenBucket(engine.PerSecond(1000), 200)
//	limiter, err := redislimit.New(client, "api", policy, redislimit.Nodes(4))
//	...
//	decision, err := limiter.Take(ctx, clientIP, 1)
//
// docs/distributed.md has the details: modes, holds, bounds, failures, sizing.
//
// # Words
//
//	store       the Redis or Valkey deployment that keeps the state
//	node        a process that shares limits with others through a store
//	client      a node's connection to a store ([Client])
//	question    a message to the store about one key: a request, a renewal or a settlement
//	call        one script call, which carries up to 64 questions
//	group       the questions of one request with several limits; the store decides them all or nothing
//	queue       the questions of a limiter that wait for a call
//	lease       tokens of a key that a node may spend, because the store has charged them already
//	in hand     said of the tokens of a lease
//	renewal     a question by which a lease asks for more tokens; it may carry a request
//	settlement  the last question of a lease: it gives tokens back and has its debt charged
//	hold        an estimate that was taken, and is settled when the cost is known ([Limiter.Hold])
//	place       what a request in flight takes; the store keeps it while its node renews it ([Limiter.Enter])
//	overdraft   tokens that a node may admit before the store has charged them
//	share       the fraction of a limit that a node admits while the store is lost ([LocalShare])
//	debt        tokens that were admitted, on overdraft or by a share, but are not charged yet
//	settling later   a strategy of other limiters, in packages sim and overshoot: a node counts, and reports later
//	part        what can fail independently in a store: a partition of a cluster, or a store that is not a cluster
//	lost        said of a part of a store that has not answered a call for some time ([BreakAfter])
//	settings    what all nodes of a limit must have in common, other than its name and policy
//	probe       a call to a lost store that finds out whether it is back
//
// # Two modes
//
// Strict mode asks the store about every request, except for a key that the store refused a moment ago
// ([TrustRefusals]). While the store answers, the limit is exact. Every algorithm except batch refill has this mode.
//
// Leased mode is for token buckets and fixed windows of 100/s and more. A node spends tokens that the store has charged
// already, and asks for more before they run out. A decision takes tens of nanoseconds.
//
// [Auto] chooses the mode. Strict and leased nodes of one limit share its state. All times are those of the server's
// clock.
//
// # The bound
//
// Over any time T, all nodes together admit at most this many tokens of one key:
//
//	burst + rate*T + O + N*D
//
// N is the number of nodes, and D is the largest [Overdraft]. O is the number of tokens that all nodes had in hand when
// T began; each node has at most half the burst in hand. In strict mode O and N*D are 0. For a fixed window, the limit
// of each window replaces burst + rate*T. Holds and requests in flight add to the bound.
//
// # When the store fails
//
// No call waits longer than [Timeout] for the store. If all calls have failed for [BreakAfter], the store counts as
// lost. The node then spends the tokens that it has in hand, and after that the [FailurePolicy] decides. When the store
// is back, it is charged with the tokens that shares admitted.
//
// # Stability
//
// The API follows semantic versions from v0.1.0 on.
package redislimit
