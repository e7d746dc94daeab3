package engine

import (
	"fmt"
	"slices"

	"github.com/weir-go/weir/atomicbucket"
)

// SetPolicy changes the numbers of the limiter and of its tiers while the limiter is in use. The number of tiers and
// the algorithm must stay the same.
//
// For each key, the tokens that it has taken still count. For example, a key has taken 400 of 1000 tokens, so 600 are
// left. If the limit becomes 500, 100 are left. If the limit becomes 100, none are left. A raised limit and a faster
// rate are active at once. A change of the limiter's own numbers does not change what keys under its tiers owe, and a
// change of a tier does not change what other keys owe. Each key belongs to the tier of its last take.
//
// Over any time t a key under one tier gets at most L + R * t tokens, where L and R are the highest limit and the
// highest rate that the tier had in that time, however often they changed. (With batch refill the key may get one more
// batch of each policy, because all tokens of a batch come at once. With fixed windows it may get one more limit,
// because all tokens of a window come back at once.) The drawback is that a key that has taken more than a lowered
// limit waits until the excess has come back, at the new rate. For example, a key that has used up 1000/h waits 99
// hours for the first token of 10/h with burst 10. ([Limiter.Reset] ends such a wait.)
//
// Windows, requests and quotas from the time before a change are treated as follows:
//
//   - If the length of the windows changes, a fixed window that has begun becomes shorter or longer, too. If a key has
//     taken more tokens in it than the new limit, the window lasts until all of them have come back at the new rate.
//     However, this rule never extends the window beyond the later of two times: its previous end, and the end of a new
//     window. The key may have another tier or quota after the change. So the time in which the tokens come back is
//     computed with the lowest limit of all tiers, or with a limit of 1 if the limiter has made a quota. A raised rate
//     may therefore be active only after the window has ended. An aligned window ends with a window of the clock. When
//     the length changes, one of the clock's windows is in progress. If a key begins its window in this window, the
//     key's window lasts until the end of the next window of the clock. The reason is that the tokens that the key took
//     before the change may be forgotten.
//   - If the window of a sliding window counter becomes longer or shorter, the estimate at the change, rounded up,
//     counts as tokens taken in one window. These tokens stop counting when they have come back at the new rate, or
//     when they would have stopped counting without the change, whichever is earlier. If the window becomes longer, the
//     second of these times is later by the same amount.
//   - A sliding log keeps its requests. If the window becomes longer, all requests that are still in the log count. If
//     the window becomes shorter, the log also keeps requests that have left the window. While these requests fill the
//     log of a key, a refund gives nothing back to the key. If a key is idle under a shorter window, it may be
//     forgotten with all its requests as soon as all their tokens have come back at the rate of that window.
//   - If a key owes tokens under a [Quota] whose rate differs from the limiter's rate, the key owes the same number of
//     tokens after the change, and still at the quota's price. So these tokens take the same time to come back.
//
// Debts are rounded up, by less than a nanosecond, or by less than a tick if a tick is longer.
//
// A reservation ([Limiter.Reserve]) stays due at the time that its caller was told. For a key with a reservation, and
// for some hundred keys near it in the table, a faster rate starts only when two times are over: the time at which the
// last reservation is due, and the latest time ahead of the clock for which tokens were granted ([Limiter.TakeAt]).
// Until the later of these times, tokens come back no faster than at the previous rate. So the bound above also holds
// for tokens of reservations and tokens that were granted ahead of the clock. If a debt in a limiter with one rate is
// above the highest limit of all policies, tiers and quotas so far, the part above that limit takes as long to come
// back as before, until the later of these times.
//
// A record must have room for the tokens that may have been taken under the highest limit since New. If the algorithm
// has windows and the limiter has tiers or quotas, a record must have this room for as long as the longest window since
// New. If a slower rate or shorter windows leave too little room, SetPolicy returns an error. A debt above the limit,
// from reservations or [Limiter.Charge], is reduced to the number of tokens that come back in 39 hours at the new rate,
// or in 26 days if a token takes a whole number of nanoseconds. The rest is forgiven.
//
// Tokens that were taken under a [Quota] still count. Under the new numbers, the tokens of the largest quota that was
// ever made may take longer to come back than a record has room for. Then the limiter counts in longer ticks, and
// rounds times to these ticks. If no tick is both long enough for that quota and short enough for the rate, SetPolicy
// returns an error that names both.
//
// With [Shared] the change applies to all processes: each process uses the new numbers from its next decision on, and
// [Limiter.Policy] then returns them. If several changes are made at once, all processes see them in the same order. If
// a process is killed during its change, the change is made completely or not at all: if it has begun, the next sweep
// of any other process completes it. While another process is changing the policy, SetPolicy waits. If that process is
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

// changed returns the policies of a limiter after SetPolicy. The limiter had the policies ps, and the parameter to has
// the new numbers.
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
