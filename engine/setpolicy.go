package engine

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// SetPolicy changes the limiter's numbers while it is used, and those of its tiers, of
// which there must be as many as before. The algorithm stays.
//
// Each key keeps the share of its limit that is used up: a half stays a half, to a token. A fraction of a token is
// rounded up as often as it should be, so a hundred changes take nothing from a key that one change would not, and give
// it nothing. What is used up altogether stays that. (With tiers the share is that of tier 0.) A fixed window that has
// begun ends when it would have; if windows become shorter, when one that begins now would end, if that is sooner; an
// aligned one with the clock's. The requests in a sliding log stay what they are; a longer window
// counts those that are still there, which is none of a key that was idle by the
// shorter one and has been forgotten.
//
// Requests that are under way are decided by the old numbers or the new ones; when
// SetPolicy returns, all are by the new ones. It takes some nanoseconds a slot. On an error
// nothing has changed.
func (l *Limiter) SetPolicy(policy Policy, tiers ...Policy) error {
	l.setting.Lock()
	defer l.setting.Unlock()
	before, after := *l.policies.Load(), append([]Policy{policy}, tiers...)
	plan, err := replan(l.table.Plan().Algorithm(), before, after, l.clock.lateness())
	if err != nil {
		return err
	}
	l.table.Adopt(plan, l.clock.surely())
	l.policies.Store(&after)
	return nil
}

// replan makes the plan of new policies for a table that has the algorithm and whose policies were others.
func replan(algorithm atomicbucket.Algorithm, before, after []Policy, lateness time.Duration) (*shard.Plan, error) {
	policy, tiers := after[0], after[1:]
	if policy.algorithm != before[0].algorithm || policy.aligned != before[0].aligned {
		return nil, fmt.Errorf("engine: SetPolicy(%v): the limiter is a %v, and stays of that kind", policy, before[0])
	}
	if len(after) != len(before) {
		return nil, fmt.Errorf("engine: SetPolicy(%v) with %d tiers: want %d, as many as before", policy, len(tiers), len(before)-1)
	}
	return plan(policy, tiers, algorithm, lateness)
}
