package engine

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// coarseInABubble runs f in a synctest bubble. The function f sets how late the coarse clock is.
func coarseInABubble(t *testing.T, policy Policy, f func(t *testing.T, l *Limiter, late func(time.Duration))) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(policy, ClockCoarse(), MaxKeys(10))
		require.NoError(t, err)
		defer l.Close()
		require.Nil(t, l.clock.counter, "the exact clock is the bubble's")
		time.Sleep(time.Second)
		f(t, l, func(by time.Duration) {
			synctest.Wait() // if the clock is renewed at this instant, that happens before
			l.clock.coarse.Store(l.clock.exact() - int64(by))
		})
	})
}

// TestACoarseClockAdmitsEarlyByItsLateness: in the worst case, a key gets within a time t what it would get within t +
// lateness.
func TestACoarseClockAdmitsEarlyByItsLateness(t *testing.T) {
	const lateness = 10 * time.Millisecond
	take := func(l *Limiter) (n int) {
		for l.Allow("k") {
			n++
		}
		return n
	}
	for _, c := range []struct {
		policy Policy
		passes time.Duration // real time between the two bursts
		want   int
	}{
		{TokenBucket(PerSecond(1000), 10), 0, 20},
		{TokenBucket(PerSecond(100), 1), 0, 2},
		{TokenBucket(PerSecond(1000), 20), 5 * time.Millisecond, 35},
		{BatchRefill(10, 10*time.Millisecond, 10), 0, 20},
		{FixedWindow(10, 50*time.Millisecond), 40 * time.Millisecond, 20},
		{SlidingLog(10, 50*time.Millisecond), 40 * time.Millisecond, 20},
	} {
		coarseInABubble(t, c.policy, func(t *testing.T, l *Limiter, late func(time.Duration)) {
			late(lateness)
			d := l.Take("k", l.Policy(0).Limit())
			require.True(t, d.Allowed)
			time.Sleep(c.passes)
			late(0)
			assert.Equal(t, c.want, int(d.Limit)+take(l), "%v", c.policy)
		})
	}
}

// TestInRealTimeACoarseClockKeepsItsBound (I1): in any real time t, a key gets at most burst + rate * (t + lateness).
func TestInRealTimeACoarseClockKeepsItsBound(t *testing.T) {
	const burst, lateness = 10, 8 * time.Millisecond
	type passed struct {
		at    time.Time
		until uint64 // all tokens that have passed so far, including these
	}
	coarseInABubble(t, TokenBucket(PerSecond(1000), burst), func(t *testing.T, l *Limiter, late func(time.Duration)) {
		random := rand.New(rand.NewPCG(17, 5))
		most := time.Duration(0)
		var all []passed
		for sum := uint64(0); len(all) < 2000; {
			switch random.IntN(8) {
			case 0: // until the bucket is full, even at a late reading
				time.Sleep(2 * (burst*time.Millisecond + lateness))
			case 1:
				time.Sleep(time.Duration(random.Int64N(int64(time.Millisecond))))
			}
			late(time.Duration(random.Int64N(int64(lateness)+1)) * time.Duration(random.IntN(2)))
			n := 1 + random.Uint64N(4)
			if l.Take("k", n).Allowed {
				sum += n
				all = append(all, passed{time.Now(), sum})
			}
		}
		before := uint64(0)
		for i, first := range all {
			for _, last := range all[i:] {
				tokens := time.Duration(last.until - before)
				beyond := (tokens-burst)*time.Millisecond - last.at.Sub(first.at)
				most = max(most, beyond)
			}
			before = first.until
		}
		assert.LessOrEqual(t, most, lateness)
		assert.Greater(t, most, lateness/2, "without the lateness the bound would not hold")
	})
}
