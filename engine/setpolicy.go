package engine

import "fmt"

// SetPolicy changes the limiter's numbers while it is used, and those of its tiers, of
// which there must be as many as before. The algorithm stays.
//
// Each key keeps the share of its limit that is used up: a half stays a half, to a token. A fraction of a token is
// rounded up as often as it should be, so a hundred changes take nothing from a key that one change would not, and
// give it nothing. But a key that takes between them, at the best moments there are, may get less than a token of the
// new limit by each change above its share; not of a token bucket, where what is rounded is a tick, and always up.
// What is used up altogether stays that. (With tiers the share is that of tier 0.) A fixed window that has begun ends
// when it would have; if windows become shorter, when one that begins now would end, if that is sooner; an aligned
// one with the clock's. The requests in a sliding log stay what they are; a longer window counts those that are still
// there, which is none of a key that was idle by the shorter one and has been forgotten. In a limiter of
// [TokenBuckets] the debts stay what they are, as time. What a bucket owes above its limit, by reservations or
// [Limiter.Charge], becomes as many times the new limit, but no more than comes back in 39 hours at the new rate, or
// 26 days where a token takes a whole number of nanoseconds: a record has room for no more, and the rest is forgiven.
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
	after, err := l.now().changed(append([]Policy{policy}, tiers...))
	if err != nil {
		return err
	}
	plan, err := after.plan(l.table.Plan().Algorithm(), l.terms)
	if err != nil {
		return err
	}
	if l.table.IsShared() {
		return after.replace(l.table, l.clock)
	}
	l.table.Adopt(plan, l.clock.surely())
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
	if to[0].isFixed() {
		return policies{ps.base, to}, nil
	}
	return policies{to[0], to}, nil
}
