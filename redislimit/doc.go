// Package redislimit holds limits over many machines, with their state in Redis 7 or later, or Valkey: one
// server, Sentinel, or Cluster.
//
//	client, err := redislimit.Open(ctx, "redis://localhost:6379")
//	...
//	policy := engine.TokenBucket(engine.PerSecond(1000), 200)
//	limiter, err := redislimit.New(client, "api", policy, redislimit.Nodes(4))
//	...
//	decision, err := limiter.Take(ctx, clientIP, 1)
//
// A [Limiter] is a backend of package httplimit, too.
//
// # Words
//
// Those of package shard mean the same here. Beside them:
//
//	store       the Redis or Valkey deployment that keeps the state
//	node        a process that shares limits with others through a store
//	client      a node's connection to a store ([Client])
//	question    what is asked about one key: a request, a renewal, a settlement
//	call        one script call, which carries up to 64 questions
//	group       the questions of one request about several limits, which are answered all or nothing
//	queue       the questions of a limiter that wait for a call
//	lease       tokens that a node has in hand of a key: the store has charged them already
//	renewal     a question by which a lease asks for more tokens; it may carry a request
//	settlement  a question by which a lease gives tokens back and has its debt charged, before it is forgotten
//	hold        an estimate that was taken, and is settled when the cost is known ([Limiter.Hold])
//	place       of a request in flight: the store keeps it while its node renews it ([Limiter.Enter])
//	overdraft   tokens that a node may admit before the store has charged them, because it has plenty
//	share       the fraction of a limit that a node admits by itself while the store is lost ([LocalShare])
//	debt        tokens that a node has admitted and the store has not charged yet: on overdraft, or by its share
//	settling later   the hybrid that other limiters use, which the simulator and the overshoot benchmark compare with
//	part        of a store: what can fail by itself, a partition of a cluster or else the whole
//	lost        of a part of a store: no call has been answered for some time ([BreakAfter])
//	settings    what all nodes of a limit must have in common, other than its name and policy
//	probe       a call to a lost store that finds out whether it is back
//
// # Two modes
//
// Strict asks the store for every request, except of a key that it refused lately ([BelieveRefusals]): one script call
// decides for up to 64 keys, those that were asked for while the calls before were under way. It is for every
// algorithm but batch refill. While the store answers nothing is over-admitted; a refused request takes nothing; the
// clock is the server's.
//
// Leased is for token buckets and fixed windows of 100/s and more. A node spends tokens that the store has
// charged already, and asks for more before they run out: a decision is some tens of nanoseconds, and each node asks
// the store some 250 times a second for a saturated key (docs/distributed.md). [Auto] chooses, and [Limiter.Mode]
// says what it chose. Strict and leased nodes of one limit share its state.
//
// # Quotas and charges
//
// [Limiter.Quota] makes a limit that comes with a request a value, and [Limiter.Charge] takes what has
// been spent already, whether it is there or not. What a key owes is the key's, whatever quota it is held against. Both
// are decided by the store: a limiter with quotas is strict. The words are those of package engine.
//
// # Holds and requests in flight
//
// [Limiter.Hold] takes an estimate, and [Hold.Settle] corrects it when the cost is known. [Limiter.HoldUpTo] takes what
// there is, for a request that can do with less. Both modes have holds.
//
// A limiter of [engine.Concurrency] counts what is in flight. [Limiter.Enter] takes places, and [Entry.Release] gives
// them back. The places of a node that dies are free after [PlaceLife]. (In package engine both are a Receipt.)
//
// docs/distributed.md states what both add to the bound.
//
// # The bound
//
// Over any time T all nodes together admit of one key at most
//
//	burst + rate*T + O + N*D
//
// N being the number of nodes, D the largest [Overdraft], and O the tokens that nodes had in hand at its beginning, at
// most half the burst each. No term grows with the load, and none but rate*T with time. In strict mode the last two
// are 0. The limit of a fixed window takes the place of burst + rate*T. See internal/lease for why.
//
// # When the store fails
//
// Nothing waits longer than [Timeout] for it. If all calls have failed for [BreakAfter], it is lost. Then tokens in
// hand are spent. After that the [FailurePolicy] decides without asking the store, which is tried four times a second.
// What shares admitted is charged when the store is back.
//
// # Stability
//
// The API follows semantic versions from v0.1.0 on.
package redislimit
