package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// logModel is the simplest possible log: a list of the times of all granted tokens.
type logModel struct {
	limit  uint64
	window time.Duration
	times  []time.Time
}

func (m *logModel) used(now time.Time) (used uint64) {
	for _, at := range m.times {
		if now.Sub(at) < m.window {
			used++
		}
	}
	return used
}

func (m *logModel) take(now time.Time, n uint64) bool {
	if m.used(now)+n > m.limit {
		return false
	}
	for range n {
		m.times = append(m.times, now)
	}
	return true
}

func (m *logModel) refund(now time.Time, n uint64) {
	oldest := uint64(len(m.times)) - m.used(now)
	m.times = slices.Delete(m.times, int(oldest), int(oldest+min(n, m.used(now))))
}

// retry finds, by trying, how long it takes until n tokens will be granted.
func (m *logModel) retry(now time.Time, n uint64) time.Duration {
	for _, at := range append([]time.Time{now.Add(-m.window)}, m.times...) {
		if wait := at.Add(m.window).Sub(now); wait >= 0 && m.used(now.Add(wait))+n <= m.limit {
			return wait
		}
	}
	return -1
}

// TestSlidingLogAgainstItsModel (I1, I2, I7): every field of every decision equals the model's, with costs, refunds,
// resets and sweeps.
func TestSlidingLogAgainstItsModel(t *testing.T) {
	for _, limit := range []uint64{1, 2, 3, 7, 100} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			random := rand.New(rand.NewPCG(5, limit))
			now := time.Unix(1_700_000_000, 123)
			const window = 60 * time.Second
			l, err := New(SlidingLog(limit, window), MaxKeys(100), ClockFunc(func() time.Time { return now }),
				SweepInterval(24*time.Hour))
			require.NoError(t, err)
			defer l.Close()
			m := &logModel{limit: limit, window: window}
			check := func(d Decision, n uint64) {
				used := m.used(now)
				require.Equal(t, limit, d.Limit)
				require.Equal(t, limit-used, d.Remaining)
				if used > 0 {
					require.Equal(t, m.times[uint64(len(m.times))-used].Add(window).Sub(now), d.ResetAfter)
				} else {
					require.Zero(t, d.ResetAfter)
				}
				if d.Allowed {
					require.Zero(t, d.RetryAfter)
				} else {
					require.Equal(t, m.retry(now, n), d.RetryAfter)
				}
			}
			for range 5000 {
				n := 1 + random.Uint64N(min(limit, 3))
				switch random.IntN(12) {
				case 0:
					l.Refund(l.Key("k"), n)
					m.refund(now, n)
				case 1:
					if random.IntN(5) == 0 {
						l.Reset(l.Key("k"))
						m.times = nil
					}
				case 2:
					l.Sweep()
				case 3:
					check(l.Peek(l.Key("k"), n), n)
				case 4:
					now = now.Add(time.Duration(random.Int64N(int64(3 * window / 2))))
				case 5:
					if wait := m.retry(now, n); wait > 0 {
						now = now.Add(wait - time.Duration(random.IntN(2)))
					}
				default:
					now = now.Add(time.Duration(random.Int64N(int64(window) / int64(limit))))
					d := l.Take("k", n)
					require.Equal(t, m.take(now, n), d.Allowed)
					check(d, n)
				}
			}
		})
	}
}

// New refuses invalid limits and too large logs, and names the numbers.
func TestSlidingLogRefusesSillyLimits(t *testing.T) {
	for _, policy := range []Policy{
		SlidingLog(0, time.Minute), SlidingLog(4097, time.Minute), SlidingLog(1<<63, time.Minute),
		SlidingLog(10, 0), SlidingLog(10, -time.Second), SlidingLog(10, 366*24*time.Hour),
		SlidingLog(4096, 100*time.Millisecond),
	} {
		_, err := New(policy)
		require.ErrorContains(t, err, policy.String())
		require.ErrorContains(t, err, "want")
	}
	_, err := New(SlidingLog(4096, time.Hour), MaxKeys(1_000_000_000))
	require.ErrorContains(t, err, "bytes")

	l, err := New(SlidingLog(100, time.Minute), MaxKeys(1000))
	require.NoError(t, err)
	defer l.Close()
	stats := l.Stats()
	assert.InEpsilon(t, stats.Slots*(16+8*100), stats.Bytes, 0.01)
}

// A change of a log's numbers under traffic does not change the requests in it.
func TestSlidingLogSetPolicy(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l, err := New(SlidingLog(10, time.Minute), MaxKeys(100), ClockFunc(func() time.Time { return now }))
	require.NoError(t, err)
	defer l.Close()
	require.True(t, l.Take("k", 6).Allowed)
	require.NoError(t, l.SetPolicy(SlidingLog(5, time.Minute)))
	require.Equal(t, Decision{Limit: 5, RetryAfter: time.Minute, ResetAfter: time.Minute}, l.Take("k", 1))
	require.NoError(t, l.SetPolicy(SlidingLog(8, 30*time.Second)))
	require.True(t, l.Take("k", 2).Allowed)
	require.False(t, l.Allow("k"))
	now = now.Add(30 * time.Second)
	require.True(t, l.Take("k", 8).Allowed)
	require.ErrorContains(t, l.SetPolicy(SlidingLog(11, time.Minute)), "11")
	require.ErrorContains(t, l.SetPolicy(SlidingLog(10, 100*time.Hour)), "100h")
}

// A token that is taken and given back repeatedly within a tick leaves no trace in the log.
func TestSlidingLogTakenAndGivenBack(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l, err := New(SlidingLog(4096, 24*time.Hour), MaxKeys(10), ClockFunc(func() time.Time { return now }))
	require.NoError(t, err)
	defer l.Close()
	require.True(t, l.Take("k", 4095).Allowed)
	before := l.Peek(l.Key("k"), 2)
	for range 100_000 {
		require.True(t, l.Allow("k"))
		l.Refund(l.Key("k"), 1)
	}
	require.Equal(t, before, l.Peek(l.Key("k"), 2))
	l.Refund(l.Key("k").Tier(3), 5)
	require.Equal(t, before, l.Peek(l.Key("k"), 2), "a tier that does not exist is given nothing")
}
