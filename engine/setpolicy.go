package engine

import (
	"fmt"
	"slices"

	"github.com/weir-go/weir/atomicbucket"
)

// SetPolicy changes the limiter's numbers while it is used, and those of its tiers, of
// which there must be as many as before. The algorithm stays.
//
// Each key keeps what it has taken, in tokens: of 1000 tokens of which 400 are taken 600 are left, of 500 then 100, and
// of 100 none. A raised limit and a faster rate are active at once. A change of the limiter's own numbers leaves keys
// under its tiers what they owe, and one of a tier leaves all others: each key goes by the tier of its last take. Over
// any time t a key under one tier gets at most the highest limit + the highest rate * t of those that the tier had in
// it, however often they changed. (A batch comes at once: of batches it is at most one of each policy more.) The price:
// a key that has taken more than a lowered limit waits until what is above that has come back, at the new rate. One
// that has used up 1000/h waits 99 hours for the first token of 10/h with burst 10 ([Limiter.Reset] lets it pass).
//
// A fixed window that has begun ends when it would have; if windows become shorter, when one that begins now would
// end, if that is sooner; an aligned one with the clock's. A counter of windows that become longer or shorter counts
// its estimate, rounded up, as taken in the present one. The requests in a sliding log stay what they are; a longer
// window counts those that are still there, which is none of a key that was idle by the shorter one and has been
// forgotten. What a key owes under a [Quota] of another rate than the limiter's stays as many tokens at the price of
// that, which is as much time. What is rounded is less than a nanosecond, or a tick where that is longer, and rounded
// up.
//
// A caller that has reserved ([Limiter.Reserve]) goes at the time that it was told. A faster rate waits for the last
// reservation of a key, or of one of some hundred near it. It also waits for the latest time that was granted ahead of
// the clock ([Limiter.TakeAt]). Until then tokens come back no sooner than at the previous rate, so the bound above
// holds for those times, too. What a key owes above all limits that it had stays the same in time until then, in a
// limiter of one rate.
//
// A record has room for what may have been taken under the highest limit that there was since New. Where a slower rate
// or shorter windows leave no room for that, it is an error. What a key owes above its limit, by reservations or
// [Limiter.Charge], is no more than comes back in 39 hours at the new rate, or 26 days where a token takes a whole
// number of nanoseconds: the rest is forgiven.
//
// What was taken under a [Quota] is kept. Where the largest quota that was ever made takes longer to come back than a
// record of the new numbers has room for, the limiter counts in longer ticks, to which times are rounded. If no tick is
// long enough for that quota, and short enough for the rate, the change is an error that names both.
//
// With [Shared] the change is that of all processes: each follows it with its next decision, and has the new numbers
// from then on ([Limiter.Policy]). Of several that are made at once all processes see the same order. A process that is
// killed meanwhile has changed all or nothing: what it had begun the next sweep of any other completes. While another
// process is about to change the policy SetPolicy waits, up to 5s if that one is stopped, and then returns an error.
//
// To [Unlimited] and [Blocked] every limiter can change, and back to its own kind.
//
// Requests that are under way are decided by the old numbers or the new ones; when
// SetPolicy returns, all are by the new ones. It takes some nanoseconds a slot. On an error
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
		if ps.base.algorithm == AlgorithmSlidingWindow && ps.base.window != to[0].window {
			// An estimate is rounded up.
			after.room[i] = max(after.room[i], min(ps.all[i].limit+1, atomicbucket.MaxCount))
		}
	}
	after.base = after.last[0]
	return after, nil
}
