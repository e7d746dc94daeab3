package engine

import (
	"fmt"
	"slices"

	"github.com/weir-go/weir/atomicbucket"
)

// SetPolicy changes the numbers of the limiter and of its tiers while the limiter is in use. The number of tiers and
// the algorithm must stay the same.
//
// For each key, the tokens that it has taken still count: if 400 of 1000 tokens are taken, 600 are left; if the limit
// becomes 500, 100 are left; if it becomes 100, none are left. A raised limit and a faster rate are active at once. A
// change of the limiter's own numbers does not change what keys under its tiers owe, and a change of a tier does not
// change what other keys owe. Each key belongs to the tier of its last take.
//
// Over any time t a key under one tier gets at most L + R * t tokens, where L and R are the highest limit and the
// highest rate that the tier had in that time, however often they changed. (With batch refill the key may get one more
// batch of each policy, because all tokens of a batch come at once. With fixed windows it may get one more limit,
// because all tokens of a window come back at once.) The price is that a key that has taken more than a lowered limit
// waits until the excess has come back, at the new rate. For example, a key that has used up 1000/h waits 99 hours for
// the first token of 10/h with burst 10. ([Limiter.Reset] ends such a wait.)
//
// Windows, requests and quotas from the time before a change are treated as follows:
//
//   - If the length of the windows changes, a fixed window that has begun becomes shorter or longer, too. If a key has
//     taken more tokens in it than the new limit, the window lasts until all of them have come back at the new rate.
//     However, this rule does not extend the window beyond its previous end or the end of a new window, whichever is
//     later. The key may have another tier or quota after the change. So the time in which the tokens come back is
//     computed with the lowest limit of all tiers, or with a limit of 1 if the limiter has made a quota. A raised rate
//     may therefore be active only after the window has ended. An aligned window ends with a window of the clock. If a
//     key begins a window in the window of the clock that is in progress at a change of the length, the key's window
//     lasts until the end of the next window of the clock, because what the key took before the change may be
//     forgotten.
//   - If the window of a sliding window counter becomes longer or shorter, the estimate at the change, rounded up,
//     counts as tokens taken in one window. These tokens stop counting when they have come back at the new rate, but no
//     later than they would have stopped without the change. If the window becomes longer, this latest time is later by
//     the same amount.
//   - A sliding log keeps its requests. If the window becomes longer, all requests that are still in the log count. If
//     the window becomes shorter, the log also keeps requests that have left the window. While these requests fill the
//     log of a key, a refund gives nothing back to the key. If a key is idle under a shorter window, it may be
//     forgotten with all its requests as soon as all their tokens have come back at the rate of that window.
//   - If a key owes tokens under a [Quota] whose rate differs from the limiter's rate, it owes the same number of
//     tokens at the quota's price after the change, so they take the same time to come back.
//
// Debts are rounded up, by less than a nanosecond, or by less than a tick if a tick is longer.
//
// A reservation ([Limiter.Reserve]) stays due at the time that its caller was told. For a key with a reservation, and
// for some hundred keys near it in the table, a faster rate starts only when the last reservation is due. It also
// starts only after the latest time ahead of the clock for which tokens were granted ([Limiter.TakeAt]). Until then
// tokens come back no sooner than at the previous rate, so the bound above also holds for tokens of reservations and
// tokens that were granted ahead of the clock. In a limiter with one rate, the part of a debt that is above the highest
// limit of all policies, tiers and quotas so far takes as long to come back as before, until then.
//
// A record must have room for the tokens that may have been taken under the highest limit since New. If the algorithm
// has windows and the limiter has tiers or quotas, a record must have this room for as long as the longest window since
// New. If a slower rate or shorter windows leave too little room, SetPolicy returns an error. A debt above the limit,
// from reservations or [Limiter.Charge], is cut to what comes back in 39 hours at the new rate, or in 26 days if a
// token takes a whole number of nanoseconds. The rest is forgiven.
//
// What was taken under a [Quota] still counts. If the largest quota that was ever made takes longer to come back than a
// record has room for under the new numbers, the limiter counts in longer ticks, and rounds times to them. If no tick
// is both long enough for that quota and short enough for the rate, SetPolicy returns an error that names both.
//
// With [Shared] the change applies to all processes: each process uses the new numbers from its next decision on, and
// [Limiter.Policy] then returns them. If several changes are made at once, all processes see them in the same order. If
// a process is killed during its change, the change happens completely or not at all: the next sweep of any other
// process completes a change that has begun. While another process is changing the policy, SetPolicy waits. If that
// process is stopped, SetPolicy returns an error after 5s.
//
// Every limiter can change to [Unlimited] and [Blocked], and back to its own kind.
//
// Requests that are under way are decided by the old numbers or by the new ones. Requests that begin after SetPolicy
// has returned are decided by the new numbers. SetPolicy takes some nanoseconds for each slot. If it returns an error,
// nothing has changed.
func (l *Limiter) SetPolicy(policy Policy, tiers ...Policy) error {
	l.requireMade()
	l.setting.Lock()
	defer l.setting.Unlock()
	to := append([]Policy{policy}, tiers...)
	if l.table.IsShared() {
		return l.now().change(to, l.table, l.terms, l.clock)
	}
	after, err := l.now().known(l.table).changed(to)
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

// changed returns the policies that a limiter with the policies ps has after SetPolicy has changed their numbers to
// those in to.
func (ps policies) changed(to []Policy) (policies, error) {
	if !to[0].follows(ps.base) {
		return policies{}, fmt.Errorf("engine: SetPolicy(%v): the limiter is a %v, and stays of that kind", to[0], ps.base)
	}
	if len(to) != len(ps.all) {
		return policies{}, fmt.Errorf("engine: SetPolicy(%v) with %d tiers: want %d, as many as before", to[0], len(to)-1, len(ps.all)-1)
	}
	after := policiesOf(to[0], to[1:])
	after.quotas = ps.quotas
	after.last = slices.Clone(to)
	for i, p := range to {
		if p.isFixed() && (i == 0 || ps.base.isTokenBucket()) {
			after.last[i] = ps.last[i]
		}
		after.room[i] = max(ps.room[i], p.limit)
	}
	after.base = after.last[0]
	after.longest, after.rounded = max(ps.longest, after.base.window), ps.rounded
	if ps.base.algorithm == AlgorithmSlidingWindow && after.base.window != ps.base.window {
		after.rounded = max(ps.rounded, min(slices.Max(ps.room)+1, atomicbucket.MaxCount))
	}
	return after, nil
}
