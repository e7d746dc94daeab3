//go:build explore

package shard

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAQuotaBesideAReplacementAtEveryStep (R28): another process makes the table remember a large quota before any
// operation of a replacement that does not allow for it. From then on, that replacement cannot take place.
func TestAQuotaBesideAReplacementAtEveryStep(t *testing.T) {
	outcomes := map[[2]bool]bool{}
	injected(t, func() (call, also func(), check func(string)) {
		_, _, one, other, _ := processes(t)
		var replaced, remembered bool
		var plan *Plan
		return func() { replaced = one.ReplaceKnowing(0, numbersOf(6), clockAt(start)) },
			func() { remembered, plan = other.Remember(100, clockAt(start)), other.Plan() },
			func(what string) {
				outcomes[[2]bool{replaced, remembered}] = true
				if remembered {
					assert.EqualValues(t, 100, one.Largest(), what)
					assert.Equal(t, plan.planned, one.planned.Load(), "broken: R28: %s the plan of a quota is replaced", what)
				} else {
					assert.True(t, replaced, what)
				}
				assert.Zero(t, one.setting.Load(), what)
				assert.False(t, one.ReplaceKnowing(99, numbersOf(7), clockAt(start)) && remembered, what)
				assert.True(t, one.ReplaceKnowing(100, numbersOf(7), clockAt(start)), what)
			}
	})
	assert.Equal(t, map[[2]bool]bool{{true, true}: true, {true, false}: true, {false, true}: true}, outcomes)
}

// TestAReplacementBesideAQuotaAtEveryStep (R28): another process replaces the plan by one that does not allow for a
// large quota, before any operation of a call that makes the table remember it.
func TestAReplacementBesideAQuotaAtEveryStep(t *testing.T) {
	injected(t, func() (call, also func(), check func(string)) {
		_, _, one, other, _ := processes(t)
		var replaced, remembered bool
		return func() { remembered = other.Remember(100, clockAt(start)) },
			func() { replaced = one.ReplaceKnowing(0, numbersOf(6), clockAt(start)) },
			func(what string) {
				assert.True(t, remembered, what)
				assert.EqualValues(t, 1+btoi(replaced), other.Plan().planned, what)
				assert.False(t, one.ReplaceKnowing(99, numbersOf(7), clockAt(start)), "broken: R28: %s", what)
				assert.True(t, other.Remember(50, clockAt(start)), what)
				assert.EqualValues(t, 100, one.Largest(), what)
			}
	})
}

// TestAQuotaBehindADeathAtEveryStepOfAReplacement (R28): a process dies during a replacement that does not allow for a
// large quota. Once another process has made the table remember the quota, no call can complete this replacement.
func TestAQuotaBehindADeathAtEveryStepOfAReplacement(t *testing.T) {
	for at := 1; ; at++ {
		what := fmt.Sprintf("before operation %d", at)
		_, _, one, other, dies := processes(t)
		if !dies(at, func() { one.ReplaceKnowing(0, numbersOf(6), clockAt(start)) }) {
			break
		}
		assert.True(t, other.Remember(100, clockAt(start)), what)
		plan := other.Known()
		other.Complete(clockAt(start))
		assert.Same(t, plan, other.Plan(), "broken: R28: %s the plan of a quota is replaced", what)
	}
}
