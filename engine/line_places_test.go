package engine

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func place(t *testing.T, l *Limiter, k Key, n uint64) *Turn {
	t.Helper()
	turn, _, err := l.Queue(k, n, time.Hour)
	require.NoError(t, err)
	return turn
}

// TestATurnEndsOnce: the first Come or Leave ends a turn, and later calls change nothing.
func TestATurnEndsOnce(t *testing.T) {
	for _, drained := range []uint64{0, 4} {
		lined(t, TokenBucket(PerSecond(1), 4), func(t *testing.T, l *Limiter, k Key) {
			left := func() int64 { return int64(4 - l.Peek(k, 0).Remaining) }
			require.True(t, l.TakeKey(k, drained).Allowed)
			gone := place(t, l, k, 2)
			gone.Leave()
			time.Sleep(2 * time.Second)
			require.EqualValues(t, max(int64(drained)-2, 0), left(), "as if it had not been there")

			turn := place(t, l, k, 2)
			taken := left()
			gone.Leave()
			gone.Come()
			assert.Equal(t, taken, left(), "it has left")
			first, second := turn.Come(), turn.Come()
			turn.Leave()
			second.Release()
			assert.Equal(t, taken, left(), "it has come")
			first.Release()
			assert.Equal(t, taken-2, left())
		})
	}
}

// TestACallerThatLeavesAgain: a second Leave gives back no tokens of another turn that shares a reservation.
func TestACallerThatLeavesAgain(t *testing.T) {
	lined(t, TokenBucket(PerSecond(1), 4), func(t *testing.T, l *Limiter, k Key) {
		l.TakeKey(k, 4)
		first, second := place(t, l, k, 1), place(t, l, k, 2)
		first.Leave()
		first.Leave()
		third := place(t, l, k, 1)
		assert.Equal(t, 3*time.Second, third.Until(nil))
		second.Leave()
		third.Leave()
	})
}

// TestUntilIsFromNowOn: Until returns the time that is left until the turn is due, however often it is called.
func TestUntilIsFromNowOn(t *testing.T) {
	lined(t, TokenBucket(PerSecond(1), 1), func(t *testing.T, l *Limiter, k Key) {
		l.TakeKey(k, 1)
		first, second := place(t, l, k, 1), place(t, l, k, 1)
		time.Sleep(400 * time.Millisecond)
		assert.Equal(t, 600*time.Millisecond, first.Until(func() {}))
		assert.Equal(t, 1600*time.Millisecond, second.Until(func() {}))
		time.Sleep(1200 * time.Millisecond)
		first.Leave()
		assert.LessOrEqual(t, second.Until(func() {}), time.Duration(0))
		second.Leave()
	})
}

func TestUntilIsByTheLimitersClock(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l := pinned(t, &now, TokenBucket(PerSecond(1), 1))
	k := l.Key("k")
	l.TakeKey(k, 1)
	turn := place(t, l, k, 1)
	assert.Equal(t, time.Second, turn.Until(func() {}))
	now = now.Add(time.Second - 1)
	assert.Equal(t, time.Duration(1), turn.Until(func() {}))
	turn.Leave()
}

// TestAWaitOfANanosecond: a request that waits for a nanosecond has a place in the line.
func TestAWaitOfANanosecond(t *testing.T) {
	lined(t, TokenBucket(PerSecond(1), 1), func(t *testing.T, l *Limiter, k Key) {
		l.TakeKey(k, 1)
		time.Sleep(time.Second - 1)
		first, second := place(t, l, k, 1), place(t, l, k, 1)
		assert.Equal(t, time.Duration(1), first.Until(nil))
		first.Leave()
		assert.Equal(t, time.Duration(1), second.Until(nil))
		second.Leave()
	})
}

// wellMade asserts that each turn has its tokens, and that no reservation has given more tokens than it took.
func wellMade(t *testing.T, line []*Turn, took map[*reservation]uint64) {
	t.Helper()
	given := map[*reservation]uint64{}
	for _, turn := range line {
		var sum uint64
		for _, p := range turn.parts {
			require.Positive(t, p.n)
			require.Equal(t, p.n < took[p.reservation], p.shared)
			sum += p.n
			given[p.reservation] += p.n
		}
		require.Equal(t, turn.n, sum)
	}
	for of, n := range given {
		require.LessOrEqual(t, n, of.receipt.Taken())
	}
}

// TestALineHasNoGaps: while callers come and leave, each caller waits only for the tokens in front of it and its own.
func TestALineHasNoGaps(t *testing.T) {
	for seed := range uint64(32) {
		random := rand.New(rand.NewPCG(seed, 2))
		const burst = 4
		token := []float64{1e9, 1e9 / 3, 7, 3600e9 / 7}[seed%4]
		policy := TokenBucket([]Rate{PerSecond(1), PerSecond(3), Per(1, 7), Per(7, time.Hour)}[seed%4], burst)
		lined(t, policy, func(t *testing.T, l *Limiter, k Key) {
			l.TakeKey(k, burst)
			tolerance := []float64{0, 50, 0, 50}[seed%4]
			begin, gone := time.Now(), uint64(0) // when the bucket was empty, and tokens taken since then
			after := func(n uint64) time.Time { return begin.Add(time.Duration(float64(n) * token)) }
			var line []*Turn
			took, told := map[*reservation]uint64{}, map[*Turn]int{}
			for step := 0; step < 40 || len(line) > 0; step++ {
				if step < 40 && random.IntN(2) == 0 {
					n := uint64(1)
					if seed%8 >= 4 {
						n += random.Uint64N(burst)
					}
					turn, delay, err := l.Queue(k, n, Never)
					require.NoError(t, err)
					if delay == 0 { // this caller proceeds at once, so it is not in the line
						turn.Leave()
						continue
					}
					line, took[turn.parts[0].reservation] = append(line, turn), n
					turn.Until(func() { told[turn]++ })
				} else if len(line) > 0 {
					i := random.IntN(len(line))
					if random.IntN(4) == 0 {
						time.Sleep(line[i].Until(nil))
						line[i].Come()
						gone += line[i].n
						line = slices.Delete(line, i, i+1)
					} else {
						for _, turn := range line[i+1:] {
							told[turn]--
						}
						line[i].Leave()
						line = slices.Delete(line, i, i+1)
					}
				}
				wellMade(t, line, took)
				ahead := gone
				for _, turn := range line {
					ahead += turn.n
					wait := max(time.Until(after(ahead)), 0)
					require.InDelta(t, wait, max(turn.Until(func() { told[turn]++ }), 0), tolerance, "seed %d, step %d", seed, step)
					require.Zero(t, told[turn], "seed %d, step %d", seed, step)
				}
				begin = begin.Add(max(time.Since(after(ahead+burst)), 0)) // a full bucket gets no more tokens
			}
		})
	}
}

// TestALineOfBatches: callers for one batch have the same wait, and are not informed when one of them leaves.
func TestALineOfBatches(t *testing.T) {
	for _, n := range []uint64{2, 3} {
		lined(t, BatchRefill(10, 20*time.Second, 10), func(t *testing.T, l *Limiter, k Key) {
			l.TakeKey(k, 10)
			line := []*Turn{place(t, l, k, 2), place(t, l, k, n), place(t, l, k, 2)}
			took, told := map[*reservation]uint64{}, 0
			for _, turn := range line {
				took[turn.parts[0].reservation] = turn.n
				assert.Equal(t, 20*time.Second, turn.Until(func() { told++ }))
			}
			line[0].Leave()
			assert.Zero(t, told)
			wellMade(t, line[1:], took)
			last := place(t, l, k, 8-n)
			assert.Equal(t, 20*time.Second, last.Until(nil))
			next := place(t, l, k, 1)
			assert.Equal(t, 40*time.Second, next.Until(nil))
			for _, turn := range append(line[1:], last, next) {
				turn.Leave()
			}
		})
	}
}

// TestTheReceiptOfATurnThatMovesUp: the receipt of a turn that moved up never gives back a token of another turn.
func TestTheReceiptOfATurnThatMovesUp(t *testing.T) {
	for _, c := range []struct{ leaves, first, second, taken, rest uint64 }{
		{1, 1, 2, 1, 0}, {2, 1, 1, 0, 0}, {1, 2, 1, 0, 0}, {1, 1, 1, 1, 1}, {3, 1, 2, 0, 0},
	} {
		lined(t, TokenBucket(PerSecond(1), 3), func(t *testing.T, l *Limiter, k Key) {
			l.TakeKey(k, 3)
			leaves, first, second := place(t, l, k, c.leaves), place(t, l, k, c.first), place(t, l, k, c.second)
			leaves.Leave()
			time.Sleep(second.Until(nil))
			a, b := first.Come(), second.Come()
			assert.Equal(t, c.taken, a.Taken(), "%v", c)
			assert.Equal(t, c.rest, b.Taken(), "%v", c)
		})
	}
}

// TestALineAfterAReset: a caller that comes after a reset does not change the waits of the callers in front of it.
func TestALineAfterAReset(t *testing.T) {
	for _, n := range []uint64{1, 2} {
		for _, comes := range []bool{false, true} {
			lined(t, TokenBucket(PerSecond(1), 9), func(t *testing.T, l *Limiter, k Key) {
				l.TakeKey(k, 9)
				old := []*Turn{place(t, l, k, 9), place(t, l, k, n)}
				l.Reset(k)
				l.TakeKey(k, 9)
				young := place(t, l, k, 1)
				require.Equal(t, time.Second, young.Until(nil))
				waits := []time.Duration{9 * time.Second, time.Duration(9+n) * time.Second}
				if comes {
					time.Sleep(time.Second)
					receipt := young.Come()
					assert.EqualValues(t, 1, receipt.Taken())
					assert.Equal(t, waits[0]-time.Second, old[0].Until(nil))
					assert.Equal(t, waits[1]-time.Second, old[1].Until(nil))
					old[1].Leave()
				} else {
					old[1].Leave()
					assert.Equal(t, time.Second, young.Until(nil))
					assert.Equal(t, waits[0], old[0].Until(nil))
					second := place(t, l, k, 1)
					assert.Equal(t, 2*time.Second, second.Until(nil), "young has its token")
					second.Leave()
					young.Leave()
				}
				old[0].Leave()
			})
		}
	}
}

// TestALineUnderTwoRates: no turn moves past a reservation outside of the line, even if the turns have different rates.
func TestALineUnderTwoRates(t *testing.T) {
	slow, fast := TokenBucket(PerSecond(1), 4), TokenBucket(PerSecond(5), 4)
	for _, c := range []struct {
		before, after         Policy
		stranger              uint64
		waits, leaves, passes []int // tenths of a second: at first, after the first has left, after the last has come
	}{
		{slow, fast, 0, []int{20, 30, 32, 38}, []int{10, 28, 34}, []int{26, 36, 38}},
		{fast, slow, 0, []int{4, 6, 16, 46}, []int{2, 12, 42}, []int{34, 36, 46}},
		{slow, fast, 1, []int{20, 30, 34, 40}, []int{10, 34, 40}, []int{20, 30, 40}},
		{fast, slow, 1, []int{4, 6, 26, 56}, []int{2, 26, 56}, []int{4, 6, 56}},
	} {
		for _, comes := range []bool{false, true} {
			lined(t, c.before, func(t *testing.T, l *Limiter, k Key) {
				waits := func(tenths []int, turns ...*Turn) {
					t.Helper()
					for i, turn := range turns {
						assert.Equal(t, time.Duration(tenths[i])*time.Second/10, turn.Until(nil), "%v", c)
					}
				}
				l.TakeKey(k, 4)
				line := []*Turn{place(t, l, k, 2), place(t, l, k, 1)}
				require.NoError(t, l.SetPolicy(c.after))
				if c.stranger > 0 {
					_, _, err := l.Reserve(k, c.stranger, time.Minute)
					require.NoError(t, err)
				}
				line = append(line, place(t, l, k, 1), place(t, l, k, 3))
				waits(c.waits, line...)
				if comes {
					line[3].Come()
					waits(c.passes, line[:3]...)
				} else {
					line[0].Leave()
					waits(c.leaves, line[1:]...)
				}
				for _, turn := range line {
					turn.Leave()
				}
			})
		}
	}
}

// TestALineOfOneCostMovesUpPastOthers: if all turns have one cost, each moves to the place in front, even past a
// reservation outside of the line.
func TestALineOfOneCostMovesUpPastOthers(t *testing.T) {
	lined(t, TokenBucket(PerSecond(1), 4), func(t *testing.T, l *Limiter, k Key) {
		l.TakeKey(k, 4)
		first, second := place(t, l, k, 1), place(t, l, k, 1)
		_, _, err := l.Reserve(k, 2, time.Minute)
		require.NoError(t, err)
		third := place(t, l, k, 1)
		require.Equal(t, 5*time.Second, third.Until(nil))
		first.Leave()
		assert.Equal(t, time.Second, second.Until(nil))
		assert.Equal(t, 2*time.Second, third.Until(nil))
		fourth := place(t, l, k, 1)
		assert.Equal(t, 5*time.Second, fourth.Until(nil), "what the last place had comes back")
		for _, turn := range []*Turn{second, third, fourth} {
			turn.Leave()
		}
	})
}

// endless is a context that never ends. It is not a type of package context, so each context derived from it needs a
// goroutine.
type endless struct{ context.Context }

func (endless) Done() <-chan struct{} { return make(chan struct{}) }

// TestAWaitLeavesNothingBehind: after a wait in line, none of its goroutines remains, even if its context never ends.
func TestAWaitLeavesNothingBehind(t *testing.T) {
	lined(t, TokenBucket(PerSecond(1), 1), func(t *testing.T, l *Limiter, k Key) {
		l.TakeKey(k, 1)
		first := place(t, l, k, 1)
		time.AfterFunc(time.Millisecond, first.Leave)
		assert.NoError(t, l.WaitKey(endless{t.Context()}, k, 1))
		synctest.Wait()
	})
}
