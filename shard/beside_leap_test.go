//go:build explore

package shard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// TestALeapBesideALookAtEveryStep (I7, I9): before any operation of a peek or a refund, time leaps. The key is then
// forgotten, or has a record too far ahead of the time that the call has read. The call must return the answer that is
// right after the leap.
func TestALeapBesideALookAtEveryStep(t *testing.T) {
	for name, taken := range map[string]uint64{"forgotten": 0, "taken again": 3} {
		later := start + 2*int64(aPlan(t, 1, 5).skew)
		for verb, look := range map[string]func(tb *Table) Outcome{
			"peek":   func(tb *Table) Outcome { o, _ := tb.Peek(tb.Find(1), start, 0, 0); return o },
			"refund": func(tb *Table) Outcome { return tb.Refund(tb.Find(1), start, 1, 0, Receipt{}) },
		} {
			t.Run(name+", "+verb, func(t *testing.T) {
				injected(t, func() (call, other func(), check func(string)) {
					tb := newTable(t, 1, 1, nil)
					require.Equal(t, Admitted, take(tb, 1, start, 2))
					var o Outcome
					return func() { o = look(tb) },
						func() {
							require.True(t, tb.Sweep(later, nil))
							require.Zero(t, records(tb, 1))
							if taken > 0 {
								require.Equal(t, Admitted, take(tb, 1, later, taken))
							}
						},
						func(what string) {
							owed, back := uint64(0), uint64(0)
							if o.State.IsLive() {
								owed = o.Plan.algorithm.Tokens(o.Plan.algorithm.Debt(o.State.Record(), o.Plan.algorithm.Ticks(o.At)))
							}
							if o.Verdict == Admitted {
								back = 1
							}
							require.Equal(t, later, o.At, what)
							require.Equal(t, taken-min(back, taken), owed, what)
						}
				})
			})
		}
	}
}

// tentativeIn makes a tentative record of a key in a slot of its probe window, as if its call were suspended before the
// commit. The function commit commits the record with a take under the current plan.
func tentativeIn(t *testing.T, tb *Table, key, index uint64) (commit func() bool) {
	p, plan := tb.Find(key), tb.Plan()
	sl := p.slot(index)
	claimed, ok := sl.state.Claim(0, 0)
	require.True(t, ok)
	tb.markPage(sl)
	sl.key.Store(key)
	tentative := sl.state.Publish(claimed)
	tb.cover(p, index)
	return func() bool {
		_, ok := sl.state.Commit(tentative, plan.live, tb.firstTake(plan, start, plan.Quota(0).Demand(1)))
		return ok
	}
}

// TestACommitBesideAChangeOfPlanAtEveryStep (I1): R9. A call that has read the previous plan commits before any
// operation of a replacement. When the replacement returns, the record follows the new plan.
func TestACommitBesideAChangeOfPlanAtEveryStep(t *testing.T) {
	committed := map[bool]int{}
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 4, 16, nil)
		commit, done := tentativeIn(t, tb, 1, 0), false
		return func() { tb.Adopt(aPlan(t, 1, 10), clockAt(start)) },
			func() { done = commit() },
			func(what string) {
				committed[done]++
				s := tb.Find(1).slot(0).state.Load()
				if !done {
					require.Equal(t, atomicbucket.Free, s.Tag(), what)
					return
				}
				require.Equal(t, tb.Plan().live, s.Tag(), what)
				require.EqualValues(t, 1, taken(tb, 1, start), "%s: the token that was taken", what)
			}
	})
	require.Positive(t, committed[true])
	require.Positive(t, committed[false])
}

// TestACommitBesideASweepAtEveryStep (I3): R11. Before any operation of a sweep that lowers probe bounds, a call
// commits a record far from its home. Searches still find the record.
func TestACommitBesideASweepAtEveryStep(t *testing.T) {
	committed := map[bool]int{}
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 16, 16, nil)
		for key := uint64(2); key <= 12; key++ { // used, and then free, so that searches skip them
			require.Equal(t, Admitted, take(tb, key, start, 1))
		}
		commit, done := tentativeIn(t, tb, 1, 11), false
		for key := uint64(2); key <= 12; key++ {
			require.True(t, tb.Reset(tb.Find(key)))
		}
		return func() { require.True(t, tb.Sweep(start, nil)) },
			func() { done = commit() },
			func(what string) {
				committed[done]++
				require.EqualValues(t, map[bool]uint64{true: 1}[done], taken(tb, 1, start), what)
			}
	})
	require.Positive(t, committed[true])
	require.Positive(t, committed[false])
}

// TestAStrangersBucketRefusesNobodyAtEveryStep (I9): R2. Before any operation of a call, its key gets the slot of
// another, drained key. The call is not refused because of the other key's record.
func TestAStrangersBucketRefusesNobodyAtEveryStep(t *testing.T) {
	for kind, algorithm := range algorithmsOfFive(t) {
		for verb, call := range map[string]func(tb *Table) Verdict{
			"take": func(tb *Table) Verdict { return tb.Take(tb.Find(1), start, 1, 0).Verdict },
			"told": func(tb *Table) Verdict {
				return tb.Decide(tb.Find(1), start, 1, 0, new(atomicbucket.Status)).Verdict
			},
			"under a quota": func(tb *Table) Verdict {
				return tb.TakeAt(tb.Find(1), start, start, 1, tb.Plan().NewQuota(tb.Plan().Quota(0)), nil).Verdict
			},
			"charge": func(tb *Table) Verdict {
				o, _ := tb.Charge(tb.Find(1), start, start, 1, TierQuota(0), nil)
				return o.Verdict
			},
			"hit": func(tb *Table) Verdict { _, _, v := tb.Hit(tb.Find(1), start, 1, 0); return v },
			"hit under a quota": func(tb *Table) Verdict {
				_, _, v := tb.HitQuota(tb.Find(1), start, 1, tb.Plan().NewQuota(tb.Plan().Quota(0)))
				return v
			},
		} {
			t.Run(kind+", "+verb, func(t *testing.T) {
				injected(t, func() (made, other func(), check func(string)) {
					plan, err := NewPlan(algorithm, 0)
					require.NoError(t, err)
					tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan = plan })
					plan.SetCharges(1, Nothing)
					require.Equal(t, Admitted, take(tb, 2, start, 5))
					verdict := Undecided
					return func() { verdict = call(tb) },
						func() {
							tb.Reset(tb.Find(2))
							take(tb, 1, start, 1) // if the call has not claimed the slot
						},
						func(what string) { require.False(t, verdict.Refuses(), what) }
				})
			})
		}
	}
}

// TestTwoProbeBoundsAreExtendedAtEveryStep: R11. Of two concurrent extensions of bounds in one word, none is lost. If
// both extend the same bound, the larger one counts.
func TestTwoProbeBoundsAreExtendedAtEveryStep(t *testing.T) {
	tb := newTable(t, 64, 16, nil)
	var places []Place
	for key := uint64(1); len(places) < 2; key++ {
		p := tb.Find(key * 0x9e37_79b9_7f4a_7c15)
		if len(places) == 0 || tb.line(p)/2 != tb.line(places[0])/2 {
			places = append(places, p)
		}
	}
	for _, other := range places {
		injected(t, func() (call, beside func(), check func(string)) {
			tb.words[0].Store(0)
			return func() { tb.extend(places[0], 3) },
				func() { tb.extend(other, 5) },
				func(what string) {
					require.False(t, tb.isBeyond(places[0], 3*tb.stride-1), what)
					require.False(t, tb.isBeyond(other, 5*tb.stride-1), what)
					require.True(t, tb.isBeyond(other, 5*tb.stride), what)
				}
		})
	}
}

// TestAnInsertBesideASweepAtEveryStep (I7): R7. The watermark moves before any operation of the first take of a key. If
// the take's record is not committed yet, it starts full at the new watermark.
func TestAnInsertBesideASweepAtEveryStep(t *testing.T) {
	later := start + int64(aPlan(t, 1, 5).skew)/2
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 1, 1, nil)
		var o Outcome
		before := 0
		return func() { o = tb.Take(tb.Find(1), start, 1, 0) },
			func() {
				before = records(tb, 1)
				tb.Sweep(later, nil)
			},
			func(what string) {
				require.Equal(t, Admitted, o.Verdict, what)
				if before == 0 {
					require.Equal(t, later, o.At, what)
					require.EqualValues(t, 1, taken(tb, 1, later), what)
				}
			}
	})
}

// TestAnInsertBesideARefundToItsVictimAtEveryStep (I7): an insert finds a full probe window and would evict a record.
// Before any operation of the insert, this record becomes idle. The insert reclaims the record, and no eviction is
// counted.
func TestAnInsertBesideARefundToItsVictimAtEveryStep(t *testing.T) {
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 1, 1, nil)
		require.Equal(t, Admitted, take(tb, 2, start, 1))
		back := Undecided
		return func() { require.Equal(t, Admitted, take(tb, 1, start, 1)) },
			func() { back = tb.Refund(tb.Find(2), start, 1, 0, Receipt{}).Verdict },
			func(what string) {
				require.Equal(t, back != Admitted, tb.Stats().Evictions == 1, what)
			}
	})
}

// TestTwoRaisesAtEveryStep: if two calls raise a word at the same time, the later time stays.
func TestTwoRaisesAtEveryStep(t *testing.T) {
	for _, other := range []int64{3, 7} {
		injected(t, func() (call, beside func(), check func(string)) {
			var w word.Word
			return func() { raiseWord(&w, 5) },
				func() { raiseWord(&w, other) },
				func(what string) { require.EqualValues(t, max(5, other), w.Load(), what) }
		})
	}
}

// TestAnInsertBesideALeapAtEveryStep (I7): before any operation of an insert, time leaps, and another key, whose slot
// the insert wants, takes all its tokens. The insert must not forget the other key's record, although the record looks
// idle by the insert's own clock.
func TestAnInsertBesideALeapAtEveryStep(t *testing.T) {
	const later = start + 1<<53
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Overflow = Refuse })
		return func() { take(tb, 2, start, 1) },
			func() { tb.Take(tb.Find(1), later, 5, 0) },
			func(what string) {
				requireSettled(t, tb, what)
				if tb.Find(1).home.key.Load() == 1 {
					require.EqualValues(t, 5, taken(tb, 1, later), what)
				} else {
					require.EqualValues(t, 1, tb.Stats().NoRoom, what)
				}
			}
	})
}
