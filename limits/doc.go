// Package limits decides on requests to which several limits apply: per client and per user, per second and per day, in
// this process and in a store. A request takes from all of its limits or from none.
//
// A [Limit] says to which requests it applies, which key and cost a request has, and which [engine.Limiter] or [Source]
// decides. [New] checks the limits and makes a [Set], which then decides:
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
// Packages httplimit and rpclimit are fronts for HTTP requests and remote procedure calls.
//
// # The order of a decision
//
//  1. Limits in memory take, in the order of [New]. If a limit refuses, the limits before it give their tokens back, as
//     if nothing had been taken. So a refusal costs no other limit anything, and no store is called.
//  2. Limits in stores take, with one call for all limits of one store ([Store]). If a limit refuses, its store has
//     taken nothing, and the limits that took earlier give their tokens back.
//  3. If all limits admit the request, limits in shadow mode take. They never refuse.
//
// Requests that are decided at the same time see the effect of each step immediately. So a request may be refused
// because of tokens that another decision gives back a moment later. But a request that should be refused is never
// admitted because of this, as with [engine.TakeAll].
//
// # When a store fails
//
// If a store does not answer, [Limit].OnLoss decides. Tokens that the store took before it failed, or that could not be
// given back to it, stay taken until they come back with time. Until then the key may have fewer tokens than its limit
// allows, but never more. The error goes to [Options].OnError.
package limits
