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
// Over any time t a key under one tier gets at most the highest limit + the highest rate * t that the tier had in that
// time, however often they changed. (With batch refill it may get one more batch of each policy, because a batch comes
// all at once. With fixed windows it may get one more limit, because a window ends all at once.) The price: a key that
// has taken more than a lowered limit waits until the excess has come back, at the new rate. A key that has used up
// 1000/h waits 99 hours for the first token of 10/h with burst 10. ([Limiter.Reset] lets it pass.)
//
// The algorithms treat what has already begun as follows:
//
//   - A fixed window that has begun becomes shorter or longer with the length of the windows. If a key has taken more
//     in it than the limit is then, the window lasts until the excess has come back at the new rate. A window never
//     ends later than before, or than a new window if that is later. A key may have another tier or quota after the
//     change. So in a limiter with tiers the lowest limit of all tiers counts, and in a limiter that has made a quota a
//     limit of 1: a raised rate may then be active only when the window has ended. An aligned window ends with a window
//     of the clock. When the length changes, the window of the clock in progress and the next one count as one window
//     of each key that begins a window then: what the key took before the change may be forgotten.
//   - If the window of a sliding window counter becomes longer or shorter, its estimate, rounded up, counts as taken
//     in one window. It is gone when it would have been, or when it comes back at the new rate, if that is sooner.
//   - The requests in a sliding log are kept. A longer window counts the requests that are still in the log. While it
//     must keep requests that have left a shorter window, it gives nothing back to a key whose log they fill. A key
//     that was idle under the shorter window may have been forgotten, with all its requests, when all of them have come
//     back at that rate.
//   - What a key owes under a [Quota] whose rate differs from the limiter's stays the same number of tokens at the
//     quota's price, so it takes the same time to come back.
//
// Debts are rounded up, by less than a nanosecond, or by less than a tick if a tick is longer.
//
// A caller that has reserved ([Limiter.Reserve]) goes at the time that it was told. For a key with a reservation, and
// for some hundred keys near it in the table, a faster rate starts only after the last reservation. It also starts only
// after the latest time that was granted ahead of the clock ([Limiter.TakeAt]). Until then tokens come back no sooner
// than at the previous rate, so the bound above holds for those times, too. In a limiter of one rate, the part of a
// debt above all limits, quotas and tiers that the limiter ever had stays the same in time until then.
//
// A record must have room for what may have been taken under the highest limit since New, with tiers or quotas of
// windows for as long as the longest window since New. If a slower rate or shorter windows leave no room for that,
// SetPolicy returns an error. A debt above the limit, from reservations or [Limiter.Charge], is cut to what comes back
// in 39 hours at the new rate, or in 26 days if a token takes a whole number of nanoseconds. The rest is forgiven.
//
// What was taken under a [Quota] still counts. If the largest quota that was ever made takes longer to come back than a
// record has room for under the new numbers, the limiter counts in longer ticks, to which times are rounded. If no tick
// is both long enough for that quota and short enough for the rate, SetPolicy returns an error that names both.
//
// With [Shared] the change applies to all processes: each follows with its next decision, and has the new numbers from
// then on ([Limiter.Policy]). If several changes are made at once, all processes see them in the same order. If a
// process is killed during its change, the change happens completely or not at all: the next sweep of any other process
// completes a change that has begun. While another process is changing the policy, SetPolicy waits. If that process is
// stopped, SetPolicy returns an error after 5s.
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

// changed returns the policies that a limiter has after a change to others.
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
