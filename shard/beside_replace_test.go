//go:build explore

package shard

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/word"
)

// A process has the number 1 or 2, and knows whether the other process is dead. Owners with any other number count as
// dead.
type process struct {
	claimant uint64
	died     *bool // whether process 1 has died
}

func (p process) Claimant() uint64 { return p.claimant }
func (p process) Dead(claimant uint64) bool {
	if claimant == 0 {
		panic("asked whether nobody is dead, which an owner may be unable to tell")
	}
	return claimant > 2 || claimant == 1 && *p.died
}

// numbersOf returns the two numbers of a bucket of one token per second. Both are the burst, so build refuses a mixture
// of the numbers of two plans.
func numbersOf(burst uint64) []uint64 { return []uint64{burst, burst} }

// processes returns one table as two processes see it. The table has one line and buckets of one token per second and
// burst 5, and one token is taken. The function dies makes a call in the first process, which dies before the call's
// operation with the given number. It reports whether the call had that many operations.
func processes(t *testing.T) (cfg Config, memory []byte, one, other *Table, dies func(at int, call func()) bool) {
	cfg = Config{Plan: aPlan(t, 1, 5), Slots: 1, Shards: 1, ProbeWindow: 1, Overflow: Refuse, Start: start}
	bytes, err := cfg.SharedBytes()
	require.NoError(t, err)
	memory = make([]byte, bytes)
	require.NoError(t, cfg.Begin(memory, numbersOf(5)))
	died := false
	build := func(numbers []uint64) (*Plan, error) {
		if len(numbers) != 2 || numbers[0] != numbers[1] {
			return nil, errors.New("of two plans")
		}
		return aPlan(t, 1, numbers[0]), nil
	}
	one, err = Map(cfg, Shared{memory, process{1, &died}, build, nil, nil})
	require.NoError(t, err)
	other, err = Map(cfg, Shared{memory, process{2, &died}, build, nil, nil})
	require.NoError(t, err)
	require.Equal(t, Admitted, take(one, 1, start, 1))
	require.EqualValues(t, 1, other.Plan().planned)
	return cfg, memory, one, other, func(at int, call func()) bool {
		made := 0
		word.Before = func(word.Access) {
			if made++; made == at {
				died = true
				runtime.Goexit()
			}
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			call()
		}()
		<-ended
		word.Before = nil
		return died
	}
}

func burst(plan *Plan) uint64 { return plan.Quota(0).Tokens }

// TestTheOperationsOfAReplacement (R21, R22) checks the order of the reads and writes when a call replaces the plan of
// a shared table, completes a replacement from each stage, or follows one.
func TestTheOperationsOfAReplacement(t *testing.T) {
	announced := func(tb *Table) {
		tb.areas.write(2, numbersOf(6))
		tb.change.Store(2<<changeShift | changing)
	}
	replaced := func(tb *Table) {
		announced(tb)
		tb.planned.Store(2)
	}
	replace := func(now int64, announces bool) func(t *testing.T, tb *Table) {
		return func(t *testing.T, tb *Table) { assert.Equal(t, announces, tb.Replace(numbersOf(6), clockAt(now))) }
	}
	complete := func(_ *testing.T, tb *Table) { tb.Complete(clockAt(start)) }
	for _, c := range []struct {
		name   string
		before func(tb *Table)
		call   func(t *testing.T, tb *Table)
		want   string
	}{
		{"nothing to follow", func(*Table) {}, func(_ *testing.T, tb *Table) { tb.current() }, "p n"},
		{"to follow", replaced, func(_ *testing.T, tb *Table) { tb.current() }, "p n p n a0.0 a0.1 a0.2 a1.0 a1.1 a1.2 n p?"},
		{"nothing to complete", func(*Table) {}, complete, "c n p n"},
		{"to complete what is announced", announced, complete, "c n w w? n? c n m s0 p n p n a0.0 a0.1 a0.2 a1.0 a1.1 a1.2 n p? p n k0 w largest leading promised s0? s1 s2 s3 p n c? c n p n"},
		{"to complete what is announced, later", announced, func(_ *testing.T, tb *Table) { tb.Complete(clockAt(start + 1)) }, "c n w p n a0.0 a0.1 a0.2 swept n w? n? c n m s0 p n p n a0.0 a0.1 a0.2 a1.0 a1.1 a1.2 n p? p n k0 w largest leading promised s0? s1 s2 s3 p n c? c n p n"},
		{"to complete what is present", replaced, complete, "c n m s0 p n p n a0.0 a0.1 a0.2 a1.0 a1.1 a1.2 n p? p n k0 w largest leading promised s0? s1 s2 s3 p n c? c n p n"},
		{"to complete what nobody wrote", func(tb *Table) { tb.change.Store(99) }, complete, "c n c? c n m s0 p n s1 s2 s3 p n c? c n p n"},
		{"to replace", func(*Table) {}, replace(start, true), "w setting setting? c n p n a0.0= a0.1= a0.2= c? setting= c n w w? n? c n m s0 p n p n a0.0 a0.1 a0.2 a1.0 a1.1 a1.2 n p? p n k0 w largest leading promised s0? s1 s2 s3 p n c? c n p n"},
		{"to replace at a later time", func(*Table) {}, replace(start+1, true), "w moving+ c n p n swept w? moving+ w setting setting? c n p n a0.0= a0.1= a0.2= c? setting= c n w w? n? c n m s0 p n p n a0.0 a0.1 a0.2 a1.0 a1.1 a1.2 n p? p n k0 w largest leading promised s0? s1 s2 s3 p n c? c n p n"},
		{"to replace what is announced", announced, replace(start, true), "w setting setting? c n w w? n? c n m s0 p n p n a0.0 a0.1 a0.2 a1.0 a1.1 a1.2 n p? p n k0 w largest leading promised s0? s1 s2 s3 p n c? c n p n a1.0= a1.1= a1.2= c? setting= c n w w? n? c n m s0 p n p n a1.0 a1.1 a1.2 a0.0 a0.1 a0.2 n p? p n k0 w largest leading promised s0? s1 s2 s3 p n c? c n p n"},
		{"to replace beside another", func(tb *Table) { tb.setting.Store(1) }, replace(start+1, false), "w moving+ c n p n swept w? moving+ w setting"},
		{"to replace beside one that died", func(tb *Table) { tb.setting.Store(3) }, replace(start, true), "w setting setting? c n p n a0.0= a0.1= a0.2= c? setting= c n w w? n? c n m s0 p n p n a0.0 a0.1 a0.2 a1.0 a1.1 a1.2 n p? p n k0 w largest leading promised s0? s1 s2 s3 p n c? c n p n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, _, tb, _ := processes(t)
			c.before(tb)
			assert.Equal(t, c.want, operations(tb, func() { c.call(t, tb) }))
		})
	}
}

// TestTwoCallsFollowAtEveryStep (R21): two calls of a process follow a replacement at the same time. Both get a plan
// with the same unit, so a quota made for one call is valid for the other.
func TestTwoCallsFollowAtEveryStep(t *testing.T) {
	injected(t, func() (call, other func(), check func(string)) {
		_, _, one, tb, _ := processes(t)
		require.True(t, one.Replace(numbersOf(6), clockAt(start)))
		var first, second *Plan
		return func() { first = tb.current() }, func() { second = tb.current() }, func(what string) {
			assert.Same(t, first, second, what)
			assert.Same(t, first, tb.Known(), what)
			assert.EqualValues(t, 6, burst(first), what)
		}
	})
}

// TestAPlanIsFollowedBesideReplacementsAtEveryStep (R21): while a call follows a replacement, two more replacements
// rewrite the area that the call reads. The plan that the call builds still has the numbers that belong to its plan
// number.
func TestAPlanIsFollowedBesideReplacementsAtEveryStep(t *testing.T) {
	followed := map[uint64]bool{}
	injected(t, func() (call, other func(), check func(string)) {
		_, _, one, tb, _ := processes(t)
		require.True(t, one.Replace(numbersOf(6), clockAt(start)))
		var plan *Plan
		return func() { plan = tb.current() },
			func() {
				require.True(t, one.Replace(numbersOf(7), clockAt(start)))
				require.True(t, one.Replace(numbersOf(8), clockAt(start)))
			},
			func(what string) {
				assert.Equal(t, 4+plan.planned, burst(plan), what)
				followed[plan.planned] = true
				assert.EqualValues(t, 8, burst(tb.Plan()), what)
			}
	})
	assert.Equal(t, map[uint64]bool{2: true, 4: true}, followed)
}

// TestNumbersAreReadBesideReplacementsAtEveryStep (R21): two replacements run while a call reads the numbers of the
// current plan. The call returns the numbers of the plan that is current at its end.
func TestNumbersAreReadBesideReplacementsAtEveryStep(t *testing.T) {
	injected(t, func() (call, other func(), check func(string)) {
		cfg, memory, one, _, _ := processes(t)
		var numbers []uint64
		return func() {
				var err error
				numbers, err = cfg.Numbers(memory)
				require.NoError(t, err)
			}, func() {
				require.True(t, one.Replace(numbersOf(6), clockAt(start)))
				require.True(t, one.Replace(numbersOf(7), clockAt(start)))
			}, func(what string) {
				assert.Equal(t, numbersOf(7), numbers, what)
			}
	})
}

// TestAReplacementBesideAnotherAtEveryStep (R22): of two concurrent replacements, each is either complete or reports
// that it was not made.
func TestAReplacementBesideAnotherAtEveryStep(t *testing.T) {
	replaced := map[[2]bool]bool{}
	injected(t, func() (call, also func(), check func(string)) {
		cfg, memory, one, other, _ := processes(t)
		var made [2]bool
		return func() { made[0] = one.Replace(numbersOf(6), clockAt(start+second)) },
			func() { made[1] = other.Replace(numbersOf(7), clockAt(start+second)) },
			func(what string) {
				replaced[made] = true
				assert.EqualValues(t, 1+btoi(made[0])+btoi(made[1]), one.planned.Load(), what)
				assert.True(t, one.IsSettled(), what)
				assert.Zero(t, one.setting.Load(), what)
				assert.GreaterOrEqual(t, one.Watermark(), start+second, what)
				numbers, err := cfg.Numbers(memory)
				require.NoError(t, err)
				for _, tb := range []*Table{one, other} {
					plan := tb.Plan()
					assert.Equal(t, numbers, numbersOf(burst(plan)), what)
					assert.True(t, burst(plan) == 6 && made[0] || burst(plan) == 7 && made[1], what)
					assert.Equal(t, plan.live, tb.Find(1).home.state.Load().Tag(), what)
				}
			}
	})
	assert.Equal(t, map[[2]bool]bool{{true, true}: true, {true, false}: true}, replaced)
}

// TestAReplacementBesideOneThatBeginsAtEveryStep (R22): of two processes that begin a replacement at the same time,
// exactly one may write the numbers.
func TestAReplacementBesideOneThatBeginsAtEveryStep(t *testing.T) {
	replaced := map[bool]bool{}
	injected(t, func() (call, other func(), check func(string)) {
		_, _, one, _, _ := processes(t)
		var made, entered, announced bool
		return func() { made = one.Replace(numbersOf(6), clockAt(start)) },
			func() {
				announced = one.change.Load() != 1<<changeShift
				entered = one.setting.CompareAndSwap(0, 2)
			},
			func(what string) {
				replaced[made] = true
				assert.Equal(t, !entered || announced, made, what)
				assert.Equal(t, made, one.areas[0][0].Load() > 0, what)
				assert.EqualValues(t, 2*btoi(entered), one.setting.Load(), what)
			}
	})
	assert.Len(t, replaced, 2)
}

// TestAProcessDiesAtEveryStepOfAReplacement (R22): if a process dies after it has announced a replacement, another
// process completes it. If the process dies earlier, the replacement has no effect, and the other process can replace
// the plan itself.
func TestAProcessDiesAtEveryStepOfAReplacement(t *testing.T) {
	left := map[bool]bool{}
	for at := 1; ; at++ {
		what := fmt.Sprintf("before operation %d", at)
		_, _, one, other, dies := processes(t)
		if !dies(at, func() { one.Replace(numbersOf(6), clockAt(start)) }) {
			break
		}
		announced := other.change.Load() != 1<<changeShift
		other.Complete(clockAt(start))
		assert.True(t, other.IsSettled(), what)
		assert.EqualValues(t, 5+btoi(announced), burst(other.Plan()), what)
		assert.Equal(t, other.Plan().live, other.Find(1).home.state.Load().Tag(), what)
		assert.True(t, other.Replace(numbersOf(7), clockAt(start)), what)
		assert.EqualValues(t, 7, burst(other.Plan()), what)
		assert.Zero(t, other.setting.Load(), what)
		left[announced] = true
	}
	assert.Len(t, left, 2)
}

// TestTheWatermarkBesideADeathAtEveryStepOfAReplacement (R7, R22): a process dies in some step of a replacement while a
// call of another process is about to move the watermark. The call may move the watermark only by the skew of a plan
// that all records follow.
func TestTheWatermarkBesideADeathAtEveryStepOfAReplacement(t *testing.T) {
	for at, more := 1, true; more; at++ {
		injected(t, func() (call, other func(), check func(string)) {
			_, _, one, tb, dies := processes(t)
			var plan *Plan
			return func() { plan = tb.completeReplacement(clockAt(start)) },
				func() { more = dies(at, func() { one.Replace(numbersOf(6), clockAt(start)) }) },
				func(what string) {
					what += fmt.Sprintf(", death before operation %d", at)
					assert.NotEqual(t, plan.planned<<changeShift|changing, tb.change.Load(), what)
				}
		})
	}
}

// TestAStepTowardsAPlanThatIsPresentByThen (R7, R22): a call moves the watermark for a replacement. Before any
// operation of this call, another process completes the replacement. After that, the call does not move the watermark.
func TestAStepTowardsAPlanThatIsPresentByThen(t *testing.T) {
	injected(t, func() (call, other func(), check func(string)) {
		_, _, one, tb, _ := processes(t)
		one.areas.write(2, numbersOf(6))
		one.change.Store(2<<changeShift | changing)
		var moved bool
		return func() { moved = tb.approach(uint64(start+second), 1) },
			func() { one.Complete(clockAt(start)) },
			func(what string) {
				assert.False(t, moved, "broken: R22: %s", what)
				assert.Equal(t, start+1, tb.Watermark(), what)
			}
	})
}
