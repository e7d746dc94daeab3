package engine

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func lined(t *testing.T, p Policy, test func(*testing.T, *Limiter, Key)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		limiter, err := New(p, MaxKeys(1), ClockFunc(time.Now))
		require.NoError(t, err)
		defer limiter.Close()
		test(t, limiter, limiter.KeyUint64(0))
		assert.Empty(t, limiter.lines.byKey)
	})
}

// TestATurnThatMovesUpBeforeItIsAwaited: a turn that moves up before its caller waits is due at the new time.
func TestATurnThatMovesUpBeforeItIsAwaited(t *testing.T) {
	lined(t, TokenBucket(PerSecond(1), 1), func(t *testing.T, l *Limiter, k Key) {
		l.TakeKey(k, 1)
		first, _, err := l.Queue(k, 1, time.Minute)
		require.NoError(t, err)
		second, delay, err := l.Queue(k, 1, time.Minute)
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, delay)
		first.Leave()
		assert.Equal(t, time.Second, second.Until(func() {}))
		second.Leave()
	})
}

// TestALineOfSeveralCosts: callers move up by the tokens of the caller that leaves, but not past a reservation outside
// of the line.
func TestALineOfSeveralCosts(t *testing.T) {
	for _, stranger := range []bool{false, true} {
		lined(t, TokenBucket(PerSecond(1), 3), func(t *testing.T, l *Limiter, k Key) {
			l.TakeKey(k, 3)
			queue := func(n uint64) *Turn {
				turn, _, err := l.Queue(k, n, time.Minute)
				require.NoError(t, err)
				return turn
			}
			first, second := queue(3), queue(2)
			after := time.Duration(0)
			if stranger {
				_, err := l.ahead(k, 1, time.Minute)
				require.NoError(t, err)
				after = time.Second
			}
			third := queue(1)
			moved := 0
			assert.Equal(t, 5*time.Second, second.Until(func() { moved++ }))
			assert.Equal(t, 6*time.Second+after, third.Until(func() { moved++ }))
			first.Leave()
			assert.Equal(t, 2*time.Second, second.Until(nil))
			if stranger {
				assert.Equal(t, 7*time.Second, third.Until(nil))
				assert.Equal(t, 1, moved)
			} else {
				assert.Equal(t, 3*time.Second, third.Until(nil))
				assert.Equal(t, 2, moved)
			}
			second.Leave()
			third.Leave()
			first.Leave()
		})
	}
}

// TestAPanicOfMoved: if the callback of one turn panics, the line is correct, and all other callers are informed.
func TestAPanicOfMoved(t *testing.T) {
	for _, n := range []uint64{1, 2} {
		lined(t, TokenBucket(PerSecond(1), 2), func(t *testing.T, l *Limiter, k Key) {
			l.TakeKey(k, 2)
			queue := func(n uint64) *Turn {
				turn, _, err := l.Queue(k, n, time.Minute)
				require.NoError(t, err)
				return turn
			}
			first, second, third := queue(1), queue(n), queue(1)
			second.Until(func() { panic("moved") })
			before := third.Until(func() {})
			assert.PanicsWithValue(t, "moved", first.Leave)
			assert.Equal(t, before-time.Second, third.Until(nil))
			r, err := l.ahead(k, 1, time.Minute)
			require.NoError(t, err)
			assert.Equal(t, before, r.delay, "n %d", n)
			second.Leave()
			third.Leave()
		})
	}
}

// TestGoodputUnderCancellation: callers that leave the line do not delay the callers that stay, whatever they cost.
func TestGoodputUnderCancellation(t *testing.T) {
	for most := range uint64(3) {
		lined(t, TokenBucket(PerSecond(50), 3), func(t *testing.T, l *Limiter, k Key) {
			var served atomic.Uint64
			end := time.Now().Add(6 * time.Second)
			var all sync.WaitGroup
			for i := range uint64(8) {
				all.Go(func() {
					for time.Now().Before(end) {
						ctx, cancel := context.WithCancel(t.Context())
						time.AfterFunc(15*time.Millisecond, cancel) // Wait does not know about this in advance
						if n := 1 + i%(most+1); l.WaitKey(ctx, k, n) == nil {
							served.Add(n)
						}
						cancel()
					}
				})
			}
			all.Wait()
			assert.Greater(t, served.Load(), uint64(270), "of 300, up to %d tokens for each", most+1)
			assert.LessOrEqual(t, served.Load(), uint64(304))
		})
	}
}

// TestLinesKeepTheLaw: no more tokens are due than the limit allows, and no turn is due later than Queue reported.
func TestLinesKeepTheLaw(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		rate, burst := 1+random.Uint64N(5), 1+random.Uint64N(5)
		lined(t, TokenBucket(PerSecond(float64(rate)), burst), func(t *testing.T, l *Limiter, k Key) {
			type went struct {
				at time.Time
				n  uint64
			}
			type turn struct {
				*Turn
				told time.Time
			}
			var all []went
			var line []turn
			checked := time.Now() // if a turn has moved to a time in the past, its tokens are used now
			goes := func(at time.Time, n uint64) { all = append(all, went{at, n}) }
			for step := 0; step < 60 || len(line) > 0; step++ {
				for i := 0; i < len(line); i++ {
					one := line[i]
					left := one.Until(nil)
					at := time.Now().Add(left)
					require.False(t, at.After(one.told), "seed %d: a turn comes %v later", seed, at.Sub(one.told))
					line[i].told = at
					if left <= 0 {
						if at.Before(checked) {
							at = checked
						}
						goes(at, one.n)
						one.Come()
						line = append(line[:i], line[i+1:]...)
						i--
					}
				}
				checked = time.Now()
				n := 1 + random.Uint64N(burst)
				switch what := random.IntN(6); {
				case step >= 60 && what < 4:
				case what == 0:
					if l.TakeKey(k, n).Allowed {
						goes(time.Now(), n)
					}
				case what == 1:
					r, err := l.ahead(k, n, 20*time.Second)
					if err == nil && random.IntN(2) == 0 {
						r.Release()
					} else if err == nil {
						goes(time.Now().Add(r.delay), n)
					}
				case what < 4:
					if one, delay, err := l.Queue(k, n, 20*time.Second); err == nil && delay == 0 {
						goes(time.Now(), n)
						one.Come()
					} else if err == nil {
						line = append(line, turn{one, time.Now().Add(delay)})
					}
				case what == 4 && len(line) > 0:
					i := random.IntN(len(line))
					line[i].Leave()
					line = append(line[:i], line[i+1:]...)
				default:
					time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
				}
			}
			for _, from := range all {
				for _, to := range all {
					if to.at.Before(from.at) {
						continue
					}
					sum := uint64(0)
					for _, one := range all {
						if !one.at.Before(from.at) && !one.at.After(to.at) {
							sum += one.n
						}
					}
					most := float64(burst) + float64(rate)*to.at.Sub(from.at).Seconds()
					require.LessOrEqual(t, float64(sum), most+1e-6, "seed %d: from %v to %v", seed, from.at, to.at)
				}
			}
		})
	}
}

// TestALineForOneBatch: callers for one batch leave after it has come, in any order, and no token is lost.
func TestALineForOneBatch(t *testing.T) {
	for seed := range uint64(50) {
		lined(t, BatchRefill(10, 20*time.Second, 10), func(t *testing.T, l *Limiter, k Key) {
			random := rand.New(rand.NewPCG(seed, 0))
			l.Charge(k, 10)
			var line []*Turn
			for taken := uint64(0); taken < 10; {
				n := 1 + random.Uint64N(min(3, 10-taken))
				turn, _, err := l.Queue(k, n, time.Minute)
				require.NoError(t, err)
				line, taken = append(line, turn), taken+n
				time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
			}
			time.Sleep(line[0].Until(nil))
			random.Shuffle(len(line), func(i, j int) { line[i], line[j] = line[j], line[i] })
			for _, turn := range line {
				turn.Leave()
			}
			assert.EqualValues(t, 10, l.Peek(k, 1).Remaining)
		})
	}
}

// TestACallerThatComesOutOfTurn: the callers in front of a caller that comes early lose no tokens.
func TestACallerThatComesOutOfTurn(t *testing.T) {
	lined(t, TokenBucket(PerSecond(1), 3), func(t *testing.T, l *Limiter, k Key) {
		l.TakeKey(k, 3)
		var line []*Turn
		for i, n := range []uint64{3, 2, 1, 1} {
			turn, delay, err := l.Queue(k, n, time.Minute)
			require.NoError(t, err)
			require.Equal(t, []time.Duration{3, 5, 6, 7}[i]*time.Second, delay)
			line = append(line, turn)
		}
		time.Sleep(6 * time.Second)
		receipt := line[2].Come()
		receipt.Refund(1)
		assert.Zero(t, l.Peek(k, 0).Remaining, "it has others' tokens, and gives none back")
		assert.Equal(t, -2*time.Second, line[0].Until(nil), "a second later than it was")
		assert.Equal(t, time.Duration(0), line[1].Until(nil))
		line[0].Leave()
		assert.LessOrEqual(t, line[3].Until(nil), time.Duration(0), "three tokens are there for it")
		line[1].Come()
		line[3].Come()
		assert.EqualValues(t, 2, l.Peek(k, 0).Remaining, "of 6, 4 have gone")
	})
}

// TestTheReceiptOfATurn: the receipt of a turn gives back the tokens for which the caller waited.
func TestTheReceiptOfATurn(t *testing.T) {
	lined(t, TokenBucket(PerSecond(1), 3), func(t *testing.T, l *Limiter, k Key) {
		l.TakeKey(k, 3)
		turn, _, err := l.Queue(k, 2, time.Minute)
		require.NoError(t, err)
		time.Sleep(turn.Until(nil))
		receipt := turn.Come()
		assert.Zero(t, l.Peek(k, 0).Remaining)
		receipt.Refund(2)
		assert.EqualValues(t, 2, l.Peek(k, 0).Remaining)
		turn.Leave()
		assert.EqualValues(t, 2, l.Peek(k, 0).Remaining)
	})
}
