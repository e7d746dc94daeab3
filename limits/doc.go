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
// The type of a request is a parameter. Package httplimit is the front for HTTP requests, and package rpclimit is the
// front for remote procedure calls. The fronts find keys and write answers. They do not count.
//
// # The order of a decision
//
// A decision has three steps.
//
//  1. Limits in memory take, in the order of [New]. If one refuses, those before it give back by their receipts. That
//     leaves their records as if nothing had been taken, so a refusal costs no other limit anything, and no store is
//     asked.
//  2. Limits in a store take, all limits of one store in one call ([Store]). If one refuses, the store has taken from
//     none of them, and earlier limits give back.
//  3. If all admit the request, limits in shadow mode take. They never refuse.
//
// Other requests see each of these steps at once. So a request may be refused because of tokens that another decision
// has taken, and gives back a moment later because another limit refuses it. No request is admitted because of such
// tokens. [engine.TakeAll] says more.
//
// # When a store fails
//
// A store that does not answer decides nothing; [Limit].OnLoss says what happens then. The store may have taken the
// tokens before it failed, and they stay taken.
//
// A store can also fail while tokens are given back to it, after another limit refused the request, or after the
// request is over. Those tokens stay taken until they come back with time. Until then the key may have fewer tokens
// than its limit says, and never more. The error goes to [Options].OnError.
package limits
