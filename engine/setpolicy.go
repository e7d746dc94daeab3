package engine

import "fmt"

// SetPolicy changes the limiter's numbers while it is used, and those of its tiers, of
// which there must be as many as before. The algorithm stays.
//
// Each key keeps the share of its limit that is used up: who has had half has had half
// afterwards, rounded up, so that no change ever hands out a fresh bucket. (With tiers
// the share is that of tier 0.) A fixed window that has begun ends when it would have, or
// when one that begins now would end, whichever is sooner.
//
// Requests that are under way are decided by the old numbers or the new ones; when
// SetPolicy returns, all are by the new ones. It takes some nanoseconds a slot. On an error
// nothing has changed.
func (l *Limiter) SetPolicy(policy Policy, tiers ...Policy) error {
	l.setting.Lock()
	defer l.setting.Unlock()
	if policy.algorithm != l.policy.algorithm || policy.aligned != l.policy.aligned {
		return fmt.Errorf("engine: SetPolicy(%v): the limiter is a %v, and stays of that kind", policy, l.policy)
	}
	if len(tiers) != l.tiers {
		return fmt.Errorf("engine: SetPolicy(%v) with %d tiers: want %d, as many as before", policy, len(tiers), l.tiers)
	}
	plan, err := plan(policy, tiers, l.clock.lateness())
	if err != nil {
		return err
	}
	l.table.Adopt(plan, l.clock.surely())
	l.policy = policy
	return nil
}
