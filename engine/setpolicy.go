package engine

import (
	"fmt"
	"slices"

	"github.com/weir-go/weir/atomicbucket"
)

// SetPolicy changes the numbers of the limiter and of its tiers while the limiter is in use. The number of tiers and
// the algorithm must stay the same, but every limiter can change to [Unlimited] and [Blocked], and back. A request that
// begins after SetPolicy has returned is decided by the new numbers. SetPolicy takes some nanoseconds for each slot. If
// it returns an error, nothing has changed. docs/algorithms.md says more.
//
// For each key, the tokens that it has taken still count. For example, if a key has taken 400 of 1000 tokens and the
// limit becomes 500, 100 are left; if it becomes 100, none are left. A raised limit and a faster rate are active at
// once. Each key belongs to the tier of its last take, and a change of one tier does not change what keys of other
// tiers owe.
//
// Over any time t a key under one tier gets at most L + R * t tokens, where L and R are the highest limit and rate that
// the tier had in that time. Batch refill may add one batch of each policy, and fixed windows one limit, because these
// tokens come back all at once. The drawback: a key that has taken more than a lowered limit waits until the excess has
// come back at the new rate. For example, a key has used up 1000/h, and its limit becomes 10/h with burst 10. It then
// waits 99 hours for its first token. [Limiter.Reset] ends such a wait.
//
// A change of the length of windows also applies to windows that have begun. A fixed window gets the new length. If it
// has more tokens than the lowest limit of all tiers, it lasts until all of them have come back at the new rate. After
// a [Quota], the lowest limit counts as 1. But the window lasts at most until its previous end or the end of a new
// window, whichever is later. An aligned window ends with a window of the clock. If it begins in the window of the
// clock in which the length changes, it ends with the next one. A sliding window counter counts the estimate at the
// change, rounded up, until it has come back. A sliding log keeps its requests. While requests that have left a shorter
// window fill the log of a key, a refund gives nothing back. docs/decisions/0051 has the exact rules.
//
// Debts under quotas and reservations keep their times. A debt under a [Quota] of another rate keeps its price, so it
// takes the same time to come back. Debts are rounded up, by less than a nanosecond or a tick, the bucket's unit of
// time. A reservation of [Limiter.Reserve] stays due when the delay that Reserve has returned is over. Until then,
// tokens of its key and of some hundred keys near it come back no faster than before. Otherwise the bound above would
// be exceeded. For the same reason, tokens that [Limiter.TakeAt] granted ahead of the clock have this effect until
// their time.
//
// The room of records limits the change. A record must have room for tokens taken under the highest limit since New.
// With windows and tiers or quotas, it must also have room for the longest window since New. If it does not, SetPolicy
// returns an error. A debt above the limit is reduced to what comes back in 39 hours at the new rate, or in 26 days if
// a token takes a whole number of nanoseconds. For tokens of the largest [Quota] that was ever made, the limiter counts
// in longer ticks. If the rate is too fast for longer ticks, SetPolicy returns an error.
//
// With [Shared] the change applies to each process from its next decision on, and all processes see several changes in
// the same order. If a process is killed during its change, the next sweep of any other process completes a change that
// has begun. While another process changes the policy, SetPolicy waits; if that process is stopped, SetPolicy returns
// an error after 5s.
func (l *Limiter) SetPolicy(policy Policy, tiers ...Policy) error {
	l.requireMade()
	l.policyMu.Lock()
	defer l.policyMu.Unlock()
	to := append([]Policy{policy}, tiers...)
	if l.table.IsShared() {
		return l.policies().replace(to, l.table, l.terms, l.clock)
	}
	after, err := l.policies().withLargestDebt(l.table).withPolicies(to)
	if err != nil {
		return err
	}
	plan, err := after.plan(l.table.Plan().Algorithm(), l.terms)
	if err != nil {
		return err
	}
	l.table.Adopt(plan, l.clock.latest)
	return nil
}

// withPolicies returns the policies after a SetPolicy with the given policies.
func (s policySet) withPolicies(to []Policy) (policySet, error) {
	if !to[0].canFollow(s.base) {
		return policySet{}, fmt.Errorf("engine: SetPolicy(%v): the limiter is a %v, and stays of that kind", to[0], s.base)
	}
	if len(to) != len(s.byTier) {
		return policySet{}, fmt.Errorf("engine: SetPolicy(%v) with %d tiers: want %d, as many as before", to[0], len(to)-1, len(s.byTier)-1)
	}
	after := newPolicySet(to[0], to[1:])
	after.quotaDebt = s.quotaDebt
	after.bases = slices.Clone(to)
	for i, p := range to {
		if p.isFixed() && (i == 0 || s.base.isTokenBucket()) {
			after.bases[i] = s.bases[i]
		}
		after.highest[i] = max(s.highest[i], p.limit)
	}
	after.base = after.bases[0]
	after.longestWindow, after.maxEstimate = max(s.longestWindow, after.base.window), s.maxEstimate
	if s.base.algorithm == AlgorithmSlidingWindow && after.base.window != s.base.window {
		after.maxEstimate = max(s.maxEstimate, min(slices.Max(s.highest)+1, atomicbucket.MaxCount))
	}
	return after, nil
}
