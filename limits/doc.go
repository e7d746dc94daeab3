// Package limits decides on requests to which several limits apply: per client and per user, per second and per day, in
// this process and in a store. A request takes from all of its limits or from none.
//
// A [Limit] says which requests it applies to, which key a request has, how much a request costs, and which
// [engine.Limiter] or [Source] decides. [New] checks the limits and makes a [Set], which then decides:
//
//	set, err := limits.New([]limits.Limit[*Job]{
//		{Name: "tenant", Limiter: perTenant, Key: tenant},
//		{Name: "all", Limiter: total, Key: limits.Everyone[*Job]},
//	}, limits.Options[*Job]{})
//	...
//	res := set.Decide(ctx, job)
//	if !res.Allowed() {
//		return fmt.Errorf("too many jobs: try again in %v", res.RetryAfter())
//	}
//	defer res.Release()
//
// The type of a request is a type parameter. Package httplimit is the front for HTTP requests, and package rpclimit is
// the front for remote procedure calls. The fronts find keys and write answers. They do not count.
//
// # The order of a decision
//
// A decision has three steps.
//
//  1. Limits in memory take, in the order of [New]. If one refuses, the limits before it give the tokens back by their
//     receipts. Then their records are as if nothing had been taken. So a refusal costs no other limit anything, and no
//     store is called.
//  2. Limits in stores take, with one call for all limits of one store ([Store]). If one refuses, its store has taken
//     nothing from any of its limits, and the limits that took earlier give their tokens back.
//  3. If all admit the request, limits in shadow mode take. They never refuse.
//
// Other requests see the effect of each step immediately. So a request may be refused because another decision has just
// taken tokens, even if that decision gives them back a moment later because another limit refuses. The opposite does
// not happen: a request that should be refused is never admitted because another decision takes tokens and gives them
// back. [engine.TakeAll] says more.
//
// # When a store fails
//
// If a store does not answer, [Limit].OnLoss decides. If the store took the tokens before it failed, they stay taken.
//
// A store can also fail while tokens are given back to it, because another limit has refused the request or because the
// request has ended. These tokens stay taken until they come back with time. Until then the key may have fewer tokens
// than its limit allows, but never more. The error goes to [Options].OnError.
package limits
