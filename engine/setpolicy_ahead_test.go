package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAFasterRateGivesNothingBackOfWhatWasTakenAhead (I1): tokens taken for a time ahead of the clock have not come
// back by that time, however the rate changes.
func TestAFasterRateGivesNothingBackOfWhatWasTakenAhead(t *testing.T) {
	slow, fast := TokenBucket(PerSecond(1), 100), TokenBucket(PerSecond(100), 100)
	l, h := newLimiter(t, slow)
	k, ahead := l.Key("k"), time.Unix(1_700_000_001, 0)
	require.True(t, l.TakeAt(k, 100, ahead).Allowed)
	require.NoError(t, l.SetPolicy(fast))
	assert.False(t, l.TakeAt(k, 1, ahead).Allowed)
	h.advance(time.Second)
	assert.False(t, l.AllowKey(k))
	h.advance(10 * time.Millisecond)
	assert.True(t, l.AllowKey(k), "from then on at the new rate")

	// This debt was not taken ahead of the clock, so it comes back at the new rate.
	l, h = newLimiter(t, TokenBucket(PerSecond(10), 100))
	require.True(t, l.Take("k", 5).Allowed)
	require.True(t, l.TakeAt(l.Key("another"), 1, ahead).Allowed)
	require.NoError(t, l.SetPolicy(fast))
	h.advance(500 * time.Millisecond)
	assert.Zero(t, l.Peek(l.Key("k"), 1).ResetAfter)
}

// TestASetterThatIsSuspended (I1): tokens taken under the old policy while SetPolicy is suspended still count under the
// new policy.
func TestASetterThatIsSuspended(t *testing.T) {
	for name, rates := range map[string][2]Rate{
		"to a faster rate": {PerSecond(1), PerSecond(100)},
		"to a slower rate": {PerSecond(100), PerSecond(1)},
	} {
		t.Run(name, func(t *testing.T) {
			h, suspended := new(hand), func() {}
			l, err := New(TokenBucket(rates[0], 100), MaxKeys(1000), ClockFunc(func() time.Time {
				now := h.now()
				suspended()
				return now
			}))
			require.NoError(t, err)
			defer l.Close()
			suspended = func() {
				suspended = func() {}
				h.advance(5 * time.Second)
				require.True(t, l.Take("k", 100).Allowed)
			}
			require.NoError(t, l.SetPolicy(TokenBucket(rates[1], 100)))
			assert.False(t, l.Allow("k"))
			h.advance(9 * time.Millisecond)
			assert.False(t, l.Allow("k"))
		})
	}
}

// TestAFasterRateBehindAHigherLimit (I1): tokens come back at the old rate until a waiting reservation is due.
func TestAFasterRateBehindAHigherLimit(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 10))
	require.True(t, l.Take("k", 10).Allowed)
	r, err := l.ahead(l.Key("k"), 10, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, r.delay)
	require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(1), 100)))
	require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(100), 100)))
	h.advance(10 * time.Second)
	assert.LessOrEqual(t, l.Peek(l.Key("k"), 0).Remaining, uint64(90), "ten go now")
}

// TestASlowerRateWhileSomeWait (I1): tokens taken under a high limit still count when that limit returns with a slower
// rate.
func TestASlowerRateWhileSomeWait(t *testing.T) {
	for name, waits := range map[string]string{"of the key": "k", "of another near by": "n"} {
		l, _ := newLimiter(t, TokenBucket(PerSecond(1), 1000), MaxKeys(10), Shards(1))
		require.True(t, l.Take("k", 1000).Allowed)
		require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(1), 10)))
		l.Take(waits, 10)
		_, err := l.ahead(l.Key(waits), 1, time.Hour)
		require.NoError(t, err)
		require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(0.01), 1000)))
		assert.Zero(t, l.Peek(l.Key("k"), 0).Remaining, name)
	}
}

// TestAnyCourseOfChangesAndWaits (I1): tokens taken at once, ahead of the clock or after a wait fit the highest burst
// and rate.
func TestAnyCourseOfChangesAndWaits(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 31))
		rates, bursts := []uint64{1, 10, 100, 1000}, []uint64{1, 7, 100, 1000}
		rate, burst := rates[random.IntN(4)], bursts[random.IntN(4)]
		highestRate, highestBurst := rate, burst
		l, h := newLimiter(t, TokenBucket(PerSecond(float64(rate)), burst), MaxKeys(10), Shards(1))
		k, near := l.Key("k"), l.Key("near")
		type going struct {
			at     time.Duration
			tokens uint64
		}
		var all []going
		now := time.Duration(0)
		for range 150 {
			n, lead := 1+random.Uint64N(burst), time.Duration(random.Int64N(int64(maxLead)))>>random.IntN(8)
			at := time.Unix(1_700_000_000, 0).Add(now + lead)
			switch random.IntN(8) {
			case 0, 1:
				rate, burst = rates[random.IntN(4)], bursts[random.IntN(4)]
				highestRate, highestBurst = max(rate, highestRate), max(burst, highestBurst)
				require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(float64(rate)), burst)))
			case 2:
				step := time.Duration(random.Int64N(int64(time.Second) >> random.IntN(12)))
				now += step
				h.advance(step)
			case 3:
				if l.TakeAt(k, n, at).Allowed {
					all = append(all, going{now + lead, n})
				}
			case 4:
				if r, err := l.ahead(k, n, time.Minute>>random.IntN(12)); err == nil {
					all = append(all, going{now + r.delay, n})
				}
			case 5:
				_, _ = l.ahead(near, n, time.Minute>>random.IntN(12))
			default:
				if l.TakeKey(k, n).Allowed {
					all = append(all, going{now, n})
				}
			}
		}
		for _, first := range all {
			for _, last := range all {
				sum, most := uint64(0), float64(highestBurst)+float64(highestRate)*(last.at-first.at).Seconds()
				for _, g := range all {
					if g.at >= first.at && g.at <= last.at {
						sum += g.tokens
					}
				}
				if last.at >= first.at {
					require.LessOrEqual(t, float64(sum), most+0.001, "%d: from %v to %v", seed, first.at, last.at)
				}
			}
		}
	}
}
