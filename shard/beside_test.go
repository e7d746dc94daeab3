//go:build explore

package shard

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

func taken(tb *Table, key uint64, now int64) uint64 {
	record, plan, sl := tb.record(tb.Find(key))
	if sl == nil {
		return 0
	}
	return plan.algorithm.Tokens(plan.algorithm.Debt(record, plan.algorithm.Ticks(now)))
}

// TestCallsBesideATakeAtEveryStep (I2): before any operation of a call, another call takes a token from the same key.
// Both take effect once, and a call that started over counts as a retry.
func TestCallsBesideATakeAtEveryStep(t *testing.T) {
	const now = start
	var status atomicbucket.Status
	for name, c := range map[string]struct {
		call    func(tb *Table) Verdict
		want    Verdict
		left    []uint64 // the possible numbers of tokens that are taken at the end
		retries map[string]bool
	}{
		"take": {func(tb *Table) Verdict { return tb.Take(tb.Find(1), now, 1, 0).Verdict }, Admitted, []uint64{3},
			map[string]bool{"fixed": true, "sliding": true, "log": true}},
		"decide": {func(tb *Table) Verdict { return tb.Decide(tb.Find(1), now, 2, 0, &status).Verdict }, Admitted, []uint64{4},
			map[string]bool{"fixed": true, "sliding": true, "log": true}},
		"peek": {func(tb *Table) Verdict { o, _ := tb.Peek(tb.Find(1), now, 1, 0); return o.Verdict }, Refused, []uint64{2},
			map[string]bool{"bucket": true, "batch": true, "fixed": true, "sliding": true, "log": true}},
		"refund": {func(tb *Table) Verdict { return tb.Refund(tb.Find(1), now, 1, 0, Receipt{}).Verdict }, Admitted, []uint64{1},
			map[string]bool{"bucket": true, "batch": true, "fixed": true, "sliding": true, "log": true}},
		"refund by a clock": {func(tb *Table) Verdict {
			return tb.RefundBy(tb.Find(1), func() int64 { return now }, 1, 0, Receipt{}).Verdict
		}, Admitted, []uint64{1}, map[string]bool{"bucket": true, "batch": true, "fixed": true, "sliding": true, "log": true}},
		"reset": {func(tb *Table) Verdict {
			if tb.Reset(tb.Find(1)) {
				return Admitted
			}
			return Refused
		}, Admitted, []uint64{0, 1}, map[string]bool{"bucket": true, "batch": true, "fixed": true, "sliding": true, "log": true}},
		"reserve": {func(tb *Table) Verdict { return tb.Reserve(tb.Find(1), now, 5, 0, time.Minute).Verdict }, Admitted, []uint64{7},
			map[string]bool{"bucket": true, "batch": true}},
		"refused reserve": {func(tb *Table) Verdict { return tb.Reserve(tb.Find(1), now, 5, 0, 0).Verdict }, Refused, []uint64{2},
			map[string]bool{"bucket": true, "batch": true}},
		"refused": {func(tb *Table) Verdict { return tb.Take(tb.Find(1), now, 5, 0).Verdict }, Refused, []uint64{2},
			map[string]bool{"fixed": true, "sliding": true, "log": true}},
	} {
		for kind, algorithm := range algorithmsOfFive(t) {
			if (name == "reserve" || name == "refused reserve") && kind != "bucket" && kind != "batch" {
				continue
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				retried := false
				injected(t, func() (call, other func(), check func(string)) {
					plan, err := NewPlan(algorithm, 0)
					require.NoError(t, err)
					tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan = plan })
					require.Equal(t, Admitted, take(tb, 1, now, 1))
					verdict := Undecided
					return func() { verdict = c.call(tb) },
						func() { require.Equal(t, Admitted, take(tb, 1, now, 1)) },
						func(what string) {
							assert.Equal(t, c.want, verdict, what)
							assert.Contains(t, c.left, taken(tb, 1, now), what)
							retries := tb.Stats().Retries
							assert.LessOrEqual(t, retries, uint64(1), what)
							retried = retried || retries > 0
						}
				})
				assert.Equal(t, c.retries[kind], retried, "a hit of a bucket is tried again in place, and not counted")
			})
		}
	}
}

// TestAHitIsDecidedBesideATakeAtEveryStep: if the record changes during a hit, the hit is retried in place.
func TestAHitIsDecidedBesideATakeAtEveryStep(t *testing.T) {
	for _, n := range []uint64{1, 4} { // admitted; refused after the other
		injected(t, func() (call, other func(), check func(string)) {
			tb := newTable(t, 1, 1, nil)
			require.Equal(t, Admitted, take(tb, 1, start, 1))
			verdict := Undecided
			return func() { _, _, verdict = tb.Hit(tb.Find(1), start, n, 0) },
				func() { require.Equal(t, Admitted, take(tb, 1, start, 1)) },
				func(what string) { assert.NotEqual(t, Undecided, verdict, what) }
		})
	}
}

// TestASweepBesideATakeAtEveryStep (I7): a key comes back before any operation of a sweep. Its take is not forgotten,
// and the sweep counts exactly the records that it freed.
func TestASweepBesideATakeAtEveryStep(t *testing.T) {
	for kind, algorithm := range algorithmsOfFive(t) {
		for name, sweep := range map[string]func(tb *Table, now int64) bool{
			"all":   func(tb *Table, now int64) bool { return tb.Sweep(now, nil) },
			"epoch": func(tb *Table, now int64) bool { return tb.SweepEpoch(now, nil) },
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				injected(t, func() (call, other func(), check func(string)) {
					plan, err := NewPlan(algorithm, 0)
					require.NoError(t, err)
					tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan = plan })
					now := start + int64(algorithm.MaxSkew())/2
					require.Equal(t, Admitted, take(tb, 1, start, 1))
					tb.Sweep(start, nil)
					tb.occupied.Store(1) // as if the table were full
					return func() { require.True(t, sweep(tb, now)) },
						func() { require.Equal(t, Admitted, take(tb, 1, now, 2)) },
						func(what string) {
							assert.EqualValues(t, 2, taken(tb, 1, now), what)
							stats := tb.Stats()
							assert.EqualValues(t, 2, stats.Epoch, what)
							assert.Equal(t, tb.Find(1).slot(0).state.Load().Version()-1, stats.Reclaimed, what)
							assert.Equal(t, uint64(1), stats.Reclaimed+tb.occupied.Load(), what)
						}
				})
			})
		}
	}
}

// TestTwoInsertsOfAKeyAtEveryStep (I1, I2, I3): before any operation of the first take of a key, another call takes
// from the same key. The key then has one record, which includes both takes.
func TestTwoInsertsOfAKeyAtEveryStep(t *testing.T) {
	for kind, algorithm := range algorithmsOfFive(t) {
		t.Run(kind, func(t *testing.T) {
			retries := map[uint64]bool{}
			injected(t, func() (call, other func(), check func(string)) {
				plan, err := NewPlan(algorithm, 0)
				require.NoError(t, err)
				tb := newTable(t, 4, 16, func(cfg *Config) { cfg.Plan = plan })
				first, second := Undecided, Undecided
				return func() { first = take(tb, 1, start, 3) },
					func() { second = take(tb, 1, start, 3) },
					func(what string) {
						assert.ElementsMatch(t, []Verdict{Admitted, Refused}, []Verdict{first, second}, what)
						requireSettled(t, tb, what)
						assert.Equal(t, 1, records(tb, 1), what)
						assert.EqualValues(t, 3, taken(tb, 1, start), what)
						retries[tb.Stats().Retries] = true
					}
			})
			assert.Equal(t, map[uint64]bool{0: true}, retries, "each finds the record of the other")
		})
	}
}

// TestAnInsertBesideATakeOfItsVictimAtEveryStep (I7): before any operation of an insert, another call takes from the
// idle record that the insert will claim. One of the two calls finds no room for a record, or the eviction is
// counted.
func TestAnInsertBesideATakeOfItsVictimAtEveryStep(t *testing.T) {
	for kind, algorithm := range algorithmsOfFive(t) {
		for _, overflow := range []Overflow{Refuse, Evict, Admit} {
			t.Run(kind+", "+overflow.String(), func(t *testing.T) {
				injected(t, func() (call, other func(), check func(string)) {
					plan, err := NewPlan(algorithm, 0)
					require.NoError(t, err)
					tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan, cfg.Overflow = plan, overflow })
					now := start + 20*second
					require.Equal(t, Admitted, take(tb, 1, start, 1))
					first, second := Undecided, Undecided
					return func() { first = take(tb, 2, now, 3) },
						func() { second = take(tb, 1, now, 2) },
						func(what string) {
							requireSettled(t, tb, what)
							stats := tb.Stats()
							var counts [TooMuch]uint64
							counts[first]++
							counts[second]++
							assert.Equal(t, counts[NoRoom], stats.NoRoom, what)
							assert.Equal(t, counts[Unrecorded], stats.Unrecorded, what)
							assert.EqualValues(t, 2, counts[Admitted]+counts[NoRoom]+counts[Unrecorded], what)
							// The tokens of each call are taken, or the call or the eviction is counted.
							assert.EqualValues(t, 5, taken(tb, 1, now)+taken(tb, 2, now)+stats.Forgiven+
								uint64(btoi(first == NoRoom || first == Unrecorded)*3+btoi(second == NoRoom || second == Unrecorded)*2), what)
							if overflow == Evict { // or NoRoom, while the other call has claimed the only slot
								assert.EqualValues(t, 1, stats.Evictions+stats.NoRoom, what)
							}
						}
				})
			})
		}
	}
}

// TestAReservationBesideOthersAtEveryStep (I1): before any operation of a reservation, its record is removed, its plan
// is replaced, or time leaps. The reservation is decided by the state after this change.
func TestAReservationBesideOthersAtEveryStep(t *testing.T) {
	for name, other := range map[string]func(tb *Table){
		"reset":           func(tb *Table) { tb.Reset(tb.Find(1)) },
		"a lower limit":   func(tb *Table) { tb.Adopt(aPlan(t, 1, 3), clockAt(start)) },
		"a lower skew":    func(tb *Table) { tb.Adopt(aPlan(t, 0.8e9, 5), clockAt(start)) },
		"a leap":          func(tb *Table) { take(tb, 2, start+3*int64(tb.Plan().skew), 1) },
		"a smaller leap":  func(tb *Table) { tb.Sweep(start+int64(tb.Plan().skew), nil) },
		"another plan":    func(tb *Table) { tb.Adopt(aPlan(t, 2, 5), clockAt(start)) },
		"a lower limit 4": func(tb *Table) { tb.Adopt(aPlan(t, 1, 4), clockAt(start)) },
	} {
		for _, patience := range []time.Duration{0, time.Hour} {
			t.Run(name, func(t *testing.T) {
				injected(t, func() (call, also func(), check func(string)) {
					tb := newTable(t, 1, 2, nil)
					now := start + int64(tb.Plan().skew)/2
					require.Equal(t, Admitted, take(tb, 1, now, 3))
					var o Outcome
					return func() { o = tb.Reserve(tb.Find(1), now, 4, 0, patience) },
						func() { other(tb) },
						func(what string) {
							if o.Verdict != Admitted {
								assert.Contains(t, []Verdict{Refused, TooMuch}, o.Verdict, what)
								return
							}
							assert.LessOrEqual(t, uint64(4), o.Plan.Quota(0).Tokens, "I1, %s", what)
							// The record follows the plan by which the reservation was decided, so it was read near the
							// watermark.
							assert.Equal(t, o.State.Tag(), o.Plan.Live(), what)
							assert.LessOrEqual(t, o.Overdrawn(0), patience, what)
						}
				})
			})
		}
	}
}

// TestAReservationBesideARefundAtEveryStep (R25): a refund gives tokens back before any operation of a reservation.
// Either the reservation need not wait, or it has recorded the end of its wait and the refund gives nothing back.
func TestAReservationBesideARefundAtEveryStep(t *testing.T) {
	promised := map[bool]bool{}
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 1, 1, nil)
		p := tb.Find(1)
		require.Equal(t, Admitted, take(tb, 1, start, 3))
		var o Outcome
		return func() { o = tb.Reserve(p, start, 5, 0, time.Minute) },
			func() { require.Equal(t, Admitted, tb.Refund(p, start, 3, 0, Receipt{}).Verdict) },
			func(what string) {
				require.Equal(t, Admitted, o.Verdict, what)
				made := tb.neighbourhood(p).promised.Load() > 0
				assert.Contains(t, []time.Duration{0, time.Duration(btoi(made)) * 3 * time.Second}, o.Overdrawn(0), what)
				promised[made] = true
			}
	})
	assert.Len(t, promised, 2)
}

// TestARecordIsCommittedBesideAnotherAtEveryStep (I2, I3): a call settles one of two tentative records of a key, while
// another call commits a take in either of them. The take is charged, and one record remains.
func TestARecordIsCommittedBesideAnotherAtEveryStep(t *testing.T) {
	for name, mine := range map[string]uint64{"the higher one": 0, "its own": 1} {
		t.Run(name, func(t *testing.T) {
			injected(t, func() (call, other func(), check func(string)) {
				tb := newTable(t, 1, 2, nil)
				p := tb.Find(1)
				sl := p.slot(1 - mine)
				claimed, _ := sl.state.Claim(0, 0)
				sl.key.Store(1)
				first := sl.state.Publish(claimed)
				tb.cover(p, 1-mine)
				own, _ := p.slot(mine).state.Claim(0, 0)
				payload := tb.firstTake(tb.Plan(), start, tb.Plan().Quota(0).Demand(2))
				charged := uint64(0)
				return func() {
						if o := tb.publish(p, p.slot(mine), own, &request{now: start, clock: start, n: 1}); o.Verdict == Admitted {
							charged++
						}
					}, func() {
						if mine == 1 && !sl.state.Abort(first) {
							return
						}
						higher := p.slot(1)
						if s := higher.state.Load(); s.Tag() == atomicbucket.Tentative {
							if _, ok := higher.state.Commit(s, atomicbucket.Live, payload); ok {
								charged += 2
							}
						}
					}, func(what string) {
						if s := sl.state.Load(); s.Tag() == atomicbucket.Tentative {
							sl.state.Abort(s) // as the call that inserted it would
						}
						assert.Equal(t, charged, taken(tb, 1, start), what)
						assert.LessOrEqual(t, records(tb, 1), 1, what)
						requireSettled(t, tb, what)
					}
			})
		})
	}
}

// TestAChangeOfPlanBesideATakeAtEveryStep (R9): a call that has read the previous plan takes a token before any
// operation of a change of plan. After the change the record follows the new plan and includes the take.
func TestAChangeOfPlanBesideATakeAtEveryStep(t *testing.T) {
	charged := map[uint64]bool{}
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 1, 1, nil)
		require.Equal(t, Admitted, take(tb, 1, start, 1))
		before, record := tb.Plan(), tb.Find(1).home
		tokens := uint64(1)
		return func() { tb.Adopt(aPlan(t, 1, 5), clockAt(start)) },
			func() {
				s := record.state.Load()
				payload, _ := before.bucket.Take(s.Record(), before.bucket.Ticks(start), before.quotas[0].Demand(2))
				if s.Tag() == before.live {
					_, ok := record.state.Move(s, payload)
					require.True(t, ok)
					tokens += 2
				}
			},
			func(what string) {
				assert.Equal(t, tb.Plan().Live(), record.state.Load().Tag(), what)
				assert.Equal(t, tokens, taken(tb, 1, start), what)
				charged[tokens] = true
			}
	})
	assert.Equal(t, map[uint64]bool{1: true, 3: true}, charged)
}

// TestTheEndsOfACallAtEveryStep (R15): other calls make a call start over at any two operations. Each call still
// reports how many tenures it has ended by force itself.
func TestTheEndsOfACallAtEveryStep(t *testing.T) {
	defer func() { word.Before = nil }()
	for name, call := range map[string]func(tb *Table, p Place) Outcome{
		"take":    func(tb *Table, p Place) Outcome { return tb.Take(p, start, 3, 0) },
		"reserve": func(tb *Table, p Place) Outcome { return tb.Reserve(p, start, 3, 0, 0) },
	} {
		rounds := map[uint32]bool{}
		for first := 1; first < 50; first++ {
			for second := first; second < first+50; second++ {
				tb := newTable(t, 1, 1, nil)
				p := tb.Find(1)
				require.Equal(t, Admitted, take(tb, 2, start, 1))
				made, inside, others := 0, false, uint32(0)
				word.Before = func(word.Access) {
					if inside {
						return
					}
					inside = true
					made++
					if made == first {
						others = tb.Take(p, start, 5, 0).ended
					}
					if made == second {
						tb.Sweep(start+int64(20*time.Second), nil)
					}
					inside = false
				}
				o := call(tb, p)
				word.Before = nil
				what := fmt.Sprintf("%s: the other takes before operation %d, the sweep is before %d", name, first, second)
				if o.Verdict == Admitted {
					require.Equal(t, tb.Ends(p).countBegun(), others+o.ended, what)
					rounds[o.ended] = true
				}
			}
		}
		assert.Equal(t, map[uint32]bool{0: true, 1: true}, rounds, name)
	}
}

// TestAnInsertBesideAChangeOfPlanAtEveryStep (R9): if the plan changes after an insert has published its record, the
// record is aborted. The insert starts over, and this counts as a retry.
func TestAnInsertBesideAChangeOfPlanAtEveryStep(t *testing.T) {
	retries := map[uint64]bool{}
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 4, 16, nil)
		return func() { require.Equal(t, Admitted, take(tb, 1, start, 3)) },
			func() { tb.Adopt(aPlan(t, 1, 5), clockAt(start)) },
			func(what string) {
				requireSettled(t, tb, what)
				assert.Equal(t, 1, records(tb, 1), what)
				assert.EqualValues(t, 3, taken(tb, 1, start), what)
				retries[tb.Stats().Retries] = true
			}
	})
	assert.Equal(t, map[uint64]bool{0: true, 1: true}, retries)
}

// TestAnInsertThatIsAbortedTakesNoOtherTake (I2): a replacement of the plan makes a first take start over. The take
// then publishes a new record, and another call takes from this record. Each admitted take is charged once.
func TestAnInsertThatIsAbortedTakesNoOtherTake(t *testing.T) {
	defer func() { word.Before = nil }()
	for name, c := range map[string]struct {
		fall  func(tb *Table)
		n     uint64
		ahead bool // the calls are ahead of the watermark, by the skew of the first plan
	}{
		"nothing": {func(*Table) {}, 2, false},
		"limit":   {func(tb *Table) { tb.Adopt(aPlan(t, 1, 4), clockAt(start)) }, 5, false},
		"skew":    {func(tb *Table) { tb.Adopt(aPlan(t, 0.8e9, 5), clockAt(start)) }, 2, true},
	} {
		for first := 1; first < 40; first++ {
			for second := first; second < first+40; second++ {
				tb := newTable(t, 1, 2, nil)
				made, inside, admitted, now := 0, false, uint64(0), start
				if c.ahead {
					now += int64(tb.Plan().skew)
				}
				word.Before = func(word.Access) {
					if inside {
						return
					}
					inside = true
					made++
					if made == first {
						c.fall(tb)
					}
					if made == second && take(tb, 1, now, 1) == Admitted {
						admitted++
					}
					inside = false
				}
				if take(tb, 1, now, c.n) == Admitted {
					admitted += c.n
				}
				word.Before = nil
				what := fmt.Sprintf("%s falls before operation %d, the other takes before %d", name, first, second)
				requireSettled(t, tb, what)
				require.LessOrEqual(t, records(tb, 1), 1, what)
				require.Equal(t, admitted, taken(tb, 1, now), what)
			}
		}
	}
}

// TestThePlanMayFallTwiceAtEveryStep: a smaller skew makes an insert start over, and a smaller limit then makes the
// insert give up. No tentative record remains.
func TestThePlanMayFallTwiceAtEveryStep(t *testing.T) {
	defer func() { word.Before = nil }()
	for first := 1; first < 40; first++ {
		for second := first; second < first+40; second++ {
			tb := newTable(t, 1, 2, nil)
			made, inside := 0, false
			word.Before = func(word.Access) {
				if inside {
					return
				}
				inside = true
				made++
				if made == first {
					tb.Adopt(aPlan(t, 0.8e9, 5), clockAt(start))
				}
				if made == second {
					tb.Adopt(aPlan(t, 0.8e9, 1), clockAt(start))
				}
				inside = false
			}
			verdict := take(tb, 1, start+int64(tb.Plan().skew), 2)
			word.Before = nil
			what := fmt.Sprintf("the skew falls before operation %d, the limit before %d", first, second)
			requireSettled(t, tb, what)
			require.Contains(t, []Verdict{Admitted, TooMuch}, verdict, what)
		}
	}
}

// TestTwoSweepsAtEveryStep: of two concurrent sweeps, the one at the later time determines the recorded time of the
// last sweep.
func TestTwoSweepsAtEveryStep(t *testing.T) {
	for _, other := range []int64{5, 15} {
		injected(t, func() (call, also func(), check func(string)) {
			tb := newTable(t, 1, 1, nil)
			return func() { require.True(t, tb.Sweep(start+10*second, nil)) },
				func() { // the sweep at the earlier time has already read the watermark
					tb.raise(start + other*second)
					require.True(t, tb.pass(start+other*second, start+other*second, nil))
				},
				func(what string) {
					assert.EqualValues(t, start+max(other, 10)*second, tb.swept.Load(), what)
					assert.Zero(t, tb.advancing.Load(), what)
				}
		})
	}
}

// TestProbeBoundsFallBesideOthersAtEveryStep (R11): a sweep clears the old bounds in a word. Before any operation of
// the sweep, a call extends a bound in the same word. The old bounds are cleared, and the extension stays.
func TestProbeBoundsFallBesideOthersAtEveryStep(t *testing.T) {
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 8*lineSlots, 4*lineSlots, nil)
		p, far := tb.Find(0), tb.Find(1<<63)
		require.NotEqual(t, tb.line(p), tb.line(far))
		tb.cover(p, 4*lineSlots-1)
		require.True(t, tb.beginLowering())
		require.False(t, tb.isBeyond(p, 4*lineSlots-1))
		return func() { tb.endLowering(true) },
			func() { tb.cover(far, 2*lineSlots) },
			func(what string) {
				assert.True(t, tb.isBeyond(p, 4*lineSlots-1), what)
				assert.False(t, tb.isBeyond(far, 2*lineSlots), what)
			}
	})
}

// TestTwoPagesAreMarkedAtEveryStep (R12): if two inserts claim slots of different new pages at the same time, both
// pages are marked.
func TestTwoPagesAreMarkedAtEveryStep(t *testing.T) {
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 4*pageSlots, 4, nil)
		return func() { require.Equal(t, Admitted, take(tb, 1, start, 1)) },
			func() { require.Equal(t, Admitted, take(tb, 1<<63, start, 1)) },
			func(what string) {
				assert.EqualValues(t, 2, tb.memory.count.Load(), what)
				pages := 0
				for range tb.memory.markedPages() {
					pages++
				}
				assert.Equal(t, 2, pages, what)
			}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
