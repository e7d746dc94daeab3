//go:build explore

package shard

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/interleave"
)

// injected calls [interleave.Inject], which makes another call before each operation of a call.
func injected(t *testing.T, make func() (call, other func(), check func(what string))) {
	t.Helper()
	interleave.Inject(make)
}

// requireSettled requires that no slot is claimed or tentative. When no call is under way, such a slot would be lost.
func requireSettled(t *testing.T, tb *Table, what string) {
	for i := range tb.shards[0].slots {
		tag := tb.shards[0].slots[i].state.Load().Tag()
		require.NotContains(t, []atomicbucket.Tag{atomicbucket.Claimed, atomicbucket.Tentative}, tag, what)
	}
}

func aPlan(t *testing.T, rate float64, burst uint64) *Plan {
	return planOf(t, perSecond(t, rate, burst))
}

// TestThePlanMayChangeTwiceAtEveryStep (I1, I7): R9. Before any operation of a call, the plan is replaced twice, and a
// key takes all its tokens. The third plan has the tag of the first plan but other ticks. So a record that owes by one
// of these two plans is idle by the other. The key never gets more than its limit, and is forgotten only if the table
// counts this.
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
		"refund":  {Refuse, func(tb *Table) { tb.Refund(tb.Find(1), now, 1, 0, Receipt{}) }, 1},
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
							tb.Adopt(aPlan(t, 1, 10), clockAt(now))
							tb.Adopt(aPlan(t, third, 10), clockAt(now))
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

// TestTheLimitMayFallAtEveryStep (I1): R9. An admitted take is within the limit of the plan that its record follows.
func TestTheLimitMayFallAtEveryStep(t *testing.T) {
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan = aPlan(t, 1, 1000) })
		var o Outcome
		return func() { o = tb.Take(tb.Find(1), start, 1000, 0) },
			func() { tb.Adopt(aPlan(t, 1, 1), clockAt(start)) },
			func(what string) {
				requireSettled(t, tb, what)
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
			func() { tb.Adopt(small, clockAt(start)) },
			func(what string) {
				requireSettled(t, tb, what)
				require.Equal(t, Admitted, o.Verdict, what)
				require.LessOrEqual(t, uint64(o.At-tb.Watermark()), o.Plan.skew, "I8: %s", what)
			}
	})
}

// TestAnAnswerFollowsOnePlan (I9): R9. The state and the plan of a call's answer belong together, although the plan is
// replaced twice before any operation of the call.
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
						tb.Adopt(aPlan(t, 1, 10), clockAt(start))
						tb.Adopt(third, clockAt(start))
					},
					func(what string) {
						require.Contains(t, []*Plan{first, third}, o.Plan, what)
						require.Equal(t, o.Plan == first, o.State == before, "I9: %s: %v", what, o.State)
					}
			})
		})
	}
}

// TestAQuotaFollowsItsUnit (I1): R13. A plan with ticks of another length becomes current before any operation of a
// call under a quota. If the call is admitted, its cost was counted in the quota's unit.
func TestAQuotaFollowsItsUnit(t *testing.T) {
	for name, before := range map[string]int{"with a record": 1, "without": 0} {
		t.Run(name, func(t *testing.T) {
			admitted := map[bool]int{}
			injected(t, func() (call, other func(), check func(string)) {
				first := aPlan(t, 1, 10)
				tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan = first })
				quota := first.NewQuota(first.Quota(0))
				for range before {
					tb.Take(tb.Find(1), start, 1, 0)
				}
				var o Outcome
				return func() { o = tb.TakeAt(tb.Find(1), start, start, 5, quota, nil) },
					func() { tb.Adopt(aPlan(t, 0.8e9, 10), clockAt(start)) },
					func(what string) {
						admitted[o.Verdict == Admitted]++
						if o.Verdict == Admitted {
							require.Same(t, first, o.Plan, "I1: %s", what)
						} else {
							require.Equal(t, TooMuch, o.Verdict, what)
						}
					}
			})
			require.Positive(t, admitted[false])
		})
	}
}

// TestTheWatermarkMovesByTheSmallerSkew (I7, I9): R7. At every step of a leap, the plan is replaced by a plan with a
// smaller or a larger skew. The leap is a whole circle of the plan with the smaller skew. If it were one step, a
// key that was drained before the leap would look drained after it.
func TestTheWatermarkMovesByTheSmallerSkew(t *testing.T) {
	const burst, rate = 5, 1e-7
	small, large := func() *Plan { return aPlan(t, 0.8e9, burst) }, func() *Plan { return aPlan(t, rate, burst) }
	require.Greater(t, large().skew, circleSkews*small().skew)
	leap := int64(circleSkews * small().skew)
	t.Run("a replacement beside a sweep", func(t *testing.T) {
		before := 0
		injected(t, func() (call, other func(), check func(string)) {
			tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan = large() })
			var o Outcome
			return func() { tb.Sweep(start+leap, nil) },
				func() {
					tb.Adopt(small(), clockAt(start))
					o = tb.Take(tb.Find(1), start, burst, 0)
				},
				func(what string) {
					require.Equal(t, Admitted, o.Verdict, what)
					if o.At < start+leap {
						before++
						_, status := tb.Peek(tb.Find(1), start+leap, burst, 0)
						require.Equal(t, atomicbucket.Status{Remaining: burst}, status, "I9: %s", what)
					}
				}
		})
		require.Greater(t, before, 5)
	})
	t.Run("a sweep beside a replacement", func(t *testing.T) {
		injected(t, func() (call, other func(), check func(string)) {
			tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan = small() })
			require.Equal(t, Admitted, tb.Take(tb.Find(1), start, burst, 0).Verdict)
			return func() { tb.Adopt(large(), clockAt(start)) },
				func() { tb.Sweep(start+leap, nil) },
				func(what string) { // the key may owe what it owed at the start, at the rate of the other plan
					_, status := tb.Peek(tb.Find(1), start+leap, burst, 0)
					require.LessOrEqual(t, int64(status.ResetAfter), int64(burst/rate*second)-leap+second, "I9: %s", what)
				}
		})
	})
	t.Run("a take and a sweep beside a replacement", func(t *testing.T) {
		// turns is the end of a leap by whole turns of the small plan's circle. The leap is one turn of the large
		// plan's circle, or a little more.
		turns := start + int64(ceilDiv(large().skew, small().skew)*circleSkews*small().skew)
		injected(t, func() (call, other func(), check func(string)) {
			tb := newTable(t, 1, 2, func(cfg *Config) { cfg.Plan = large() })
			require.Equal(t, Admitted, tb.Take(tb.Find(1), start, burst, 0).Verdict)
			return func() { tb.Adopt(small(), clockAt(start)) },
				func() {
					o := tb.Take(tb.Find(2), start, burst, 0)
					require.Equal(t, Admitted, o.Verdict)
					tb.Sweep(start+leap, nil)
					if o.Plan.skew == small().skew {
						_, status := tb.Peek(tb.Find(2), start+leap, burst, 0)
						require.Equal(t, atomicbucket.Status{Remaining: burst}, status, "I9")
					}
					tb.Sweep(turns, nil)
				},
				func(what string) {
					for key := range uint64(2) {
						_, status := tb.Peek(tb.Find(1+key), turns, burst, 0)
						require.Equal(t, atomicbucket.Status{Remaining: burst}, status, "I9: key %d, %s", 1+key, what)
					}
				}
		})
	})
}
