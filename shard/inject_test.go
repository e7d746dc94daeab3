//go:build explore

package shard

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// injected runs a call once for each of its operations on words, and before that operation what another goroutine does.
func injected(t *testing.T, make func() (call, other func(), check func(what string))) {
	t.Helper()
	defer func() { word.Before = nil }()
	for at, more := 0, true; more; at++ {
		call, other, check := make()
		made := 0
		more = false
		word.Before = func(word.Access) {
			if made++; made == at+1 {
				more, word.Before = true, nil
				other()
			}
		}
		call()
		word.Before = nil
		if more {
			check(fmt.Sprintf("between the operations %d and %d", at, at+1))
		}
	}
}

// aPlan is a token bucket of so many tokens a second and so large a burst.
func aPlan(t *testing.T, rate float64, burst uint64) *Plan {
	return planOf(t, perSecond(t, rate, burst))
}

// TestThePlanMayChangeTwiceAtEveryStep (I1, I7): R9. Before any operation of a call the plan is replaced twice, so that
// it has the tag again that it had at first and other numbers, and a key takes all that there is. The ticks of the
// first and the third plan differ, so that what one of them calls indebted is idle to the other. The key never gets
// more, and is forgotten only if that is counted.
func TestThePlanMayChangeTwiceAtEveryStep(t *testing.T) {
	const now = start + 5*second
	for name, c := range map[string]struct {
		overflow Overflow
		call     func(tb *Table)
		given    uint64 // tokens that the call gives back
	}{
		"sweep":   {Refuse, func(tb *Table) { tb.Sweep(now, nil) }, 0},
		"epoch":   {Refuse, func(tb *Table) { tb.SweepEpoch(now, nil) }, 0},
		"insert":  {Refuse, func(tb *Table) { tb.Take(tb.Find(2), now, 1, 0) }, 0},
		"evict":   {Evict, func(tb *Table) { tb.Take(tb.Find(2), now, 1, 0) }, 0},
		"take":    {Refuse, func(tb *Table) { tb.Take(tb.Find(1), now, 1, 0) }, 0},
		"peek":    {Refuse, func(tb *Table) { tb.Peek(tb.Find(1), now, 1, 0) }, 0},
		"refund":  {Refuse, func(tb *Table) { tb.Refund(tb.Find(1), now, 1, 0, atomicbucket.Receipt{}) }, 1},
		"reserve": {Refuse, func(tb *Table) { tb.Reserve(tb.Find(1), now, 1, 0, 0) }, 0},
	} {
		for _, first := range []float64{0.8e9, 1} {
			t.Run(fmt.Sprintf("%s, %v/s", name, first), func(t *testing.T) {
				injected(t, func() (call, other func(), check func(string)) {
					tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan, cfg.Overflow = aPlan(t, first, 10), c.overflow })
					tb.Take(tb.Find(1), start, 1, 0)
					third := 1 + 0.8e9 - first
					var took uint64
					return func() { c.call(tb) },
						func() {
							tb.Adopt(aPlan(t, 1, 10), now)
							tb.Adopt(aPlan(t, third, 10), now)
							for take(tb, 1, now, 1) == Admitted {
								took++
							}
						},
						func(what string) {
							stats := tb.Stats()
							require.Equal(t, stats.Evictions > 0, stats.Forgiven > 0, what)
							require.LessOrEqual(t, stats.Forgiven, took, what)
							if stats.Evictions > 0 {
								if records(tb, 1) == 0 {
									require.Equal(t, took, stats.Forgiven, "%s: what was forgiven", what)
								}
								return
							}
							for took <= 10+c.given && take(tb, 1, now, 1) == Admitted {
								took++
							}
							require.LessOrEqual(t, took, 10+c.given, "I1: %s", what)
						}
				})
			})
		}
	}
}

// TestTheLimitMayFallAtEveryStep (I1): R9. A take that is admitted has the limit of the plan that its record follows.
func TestTheLimitMayFallAtEveryStep(t *testing.T) {
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan = aPlan(t, 1, 1000) })
		var o Outcome
		return func() { o = tb.Take(tb.Find(1), start, 1000, 0) },
			func() { tb.Adopt(aPlan(t, 1, 1), start) },
			func(what string) {
				if o.Verdict == Admitted {
					require.LessOrEqual(t, uint64(1000), o.Plan.Quota(0).Tokens, "I1: a thousand tokens under a limit of 1, %s", what)
				}
			}
	})
}

// TestTheSkewMayFallAtEveryStep (I8): R7, R9. A record is charged no further ahead of the watermark than the skew of
// the plan that it follows.
func TestTheSkewMayFallAtEveryStep(t *testing.T) {
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan = aPlan(t, 1, 5) })
		now := start + int64(aPlan(t, 1, 5).skew)
		small := aPlan(t, 0.8e9, 5)
		require.Less(t, small.skew, aPlan(t, 1, 5).skew)
		var o Outcome
		return func() { o = tb.Take(tb.Find(1), now, 1, 0) },
			func() { tb.Adopt(small, start) },
			func(what string) {
				require.Equal(t, Admitted, o.Verdict, what)
				require.LessOrEqual(t, uint64(o.At-tb.Watermark()), o.Plan.skew, "I8: %s", what)
			}
	})
}

// TestAnAnswerFollowsOnePlan (I9): R9. What a call answers by, a state and a plan, belong together, although the plan
// is replaced twice before any of its operations.
func TestAnAnswerFollowsOnePlan(t *testing.T) {
	for name, call := range map[string]func(tb *Table) Outcome{
		"peek":    func(tb *Table) Outcome { o, _ := tb.Peek(tb.Find(1), start, 1, 0); return o },
		"take":    func(tb *Table) Outcome { return tb.Take(tb.Find(1), start, 1, 0) },
		"reserve": func(tb *Table) Outcome { return tb.Reserve(tb.Find(1), start, 1, 0, 0) },
		"no room": func(tb *Table) Outcome { return tb.Take(tb.Find(2), start, 1, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			injected(t, func() (func(), func(), func(string)) {
				first, third := aPlan(t, 1, 10), aPlan(t, 0.8e9, 10)
				tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan, cfg.Overflow = first, Refuse })
				before := tb.Take(tb.Find(1), start, 10, 0).State
				var o Outcome
				return func() { o = call(tb) },
					func() {
						tb.Adopt(aPlan(t, 1, 10), start)
						tb.Adopt(third, start)
					},
					func(what string) {
						require.Contains(t, []*Plan{first, third}, o.Plan, what)
						require.Equal(t, o.Plan == first, o.State == before, "I9: %s: %v", what, o.State)
					}
			})
		})
	}
}
