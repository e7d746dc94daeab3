package suggest

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/trace"
	"github.com/weir-go/weir/engine"
)

// byEngine returns what a limiter of the engine refuses: the number of keys, the number of keys counted once per day,
// and the number of requests.
func byEngine(t *testing.T, p engine.Policy, requests []trace.Request) (keys, keyDays, refused uint64) {
	t.Helper()
	var now atomic.Int64
	now.Store(requests[0].UnixNano)
	limiter, err := engine.New(p, engine.MaxKeys(1000),
		engine.ClockFunc(func() time.Time { return time.Unix(0, now.Load()) }))
	require.NoError(t, err)
	defer limiter.Close()
	seen, days := map[uint32]bool{}, map[[2]int64]bool{}
	for _, q := range requests {
		now.Store(q.UnixNano)
		key := limiter.KeyUint64(uint64(q.Key))
		if !limiter.TakeKey(key, q.Cost).Allowed {
			refused++
			seen[q.Key], days[[2]int64{int64(q.Key), dayOf(&q)}] = true, true
		} else if q.Refund {
			limiter.Refund(key, q.Cost)
		}
	}
	require.Zero(t, limiter.Stats().Evictions)
	return uint64(len(seen)), uint64(len(days)), refused
}

// TestCandidatesRefuseWhatTheEngineDoes: limits that are tried together refuse the same keys as the engine. This is
// tested for all algorithms, with long and short pauses, costs and refunds. Many keys are left out because no limit can
// refuse them.
func TestCandidatesRefuseWhatTheEngineDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var requests []trace.Request
	at := int64(1_700_000_000)
	for range 3000 {
		at += int64(random.IntN(3)) * int64(random.IntN(2+random.IntN(30)))
		if random.IntN(200) == 0 {
			at += int64(random.IntN(60 * 24 * 3600))
		}
		requests = append(requests, trace.Request{UnixNano: at*1e9 + int64(random.IntN(2))*int64(random.IntN(1e9)),
			Cost: uint64(1 + random.IntN(3)), Key: uint32(random.IntN(1 + random.IntN(40))),
			Refund: random.IntN(10) == 0})
		at = max(at, requests[len(requests)-1].UnixNano/1e9+1)
	}
	tried, leftOut := 0, 0
	for _, settings := range []string{
		"rate: 1/s", "rate: 7/m, algorithm: batch-refill", "rate: 9/m, algorithm: fixed-window",
		"rate: 9/m, algorithm: fixed-window, aligned: true", "rate: 9/m, algorithm: sliding-window",
		"rate: 9/m, algorithm: sliding-log",
	} {
		r, err := newRequests(traceOf(t, requests...))
		require.NoError(t, err)
		var all []Point
		for _, period := range []time.Duration{time.Second, time.Minute, time.Hour} {
			all = append(all, points(rule(t, settings), period, amounts(r.maxCost, r.maxTotal))...)
		}
		require.NoError(t, r.try(all))
		for i := range all {
			p := &all[i]
			for key := range r.totals {
				tried++
				if !r.peaks.mayRefuse(boundOf(p.Policy), key) {
					leftOut++
				}
			}
			if random.IntN(4) > 0 {
				continue
			}
			keys, keyDays, refused := byEngine(t, p.Policy, requests)
			assert.Equal(t, keyDays, p.Refused, "%v", p.Policy)
			got, affected, err := r.affected(p, make([]string, len(r.totals)))
			require.NoError(t, err)
			assert.Equal(t, refused, got, "%v", p.Policy)
			assert.Len(t, affected, int(min(keys, maxAffected)))
		}
	}
	assert.Greater(t, leftOut, tried/10, "the test is of nothing")
	assert.Greater(t, tried-leftOut, tried/10)
}

// TestPeaks: a key is left out only if none of its requests can be refused. Its peaks are the highest levels of a
// bucket without a limit.
func TestPeaks(t *testing.T) {
	var requests []trace.Request
	for i := range 40 { // two per second, for 20 seconds
		requests = append(requests, trace.Request{UnixNano: 1_700_000_000e9 + int64(i)*5e8, Cost: 1, Key: 0})
	}
	requests = append(requests, trace.Request{UnixNano: 1_800_000_000e9, Cost: 3, Key: 1})
	r, err := newRequests(traceOf(t, requests...))
	require.NoError(t, err)
	mayRefuse := func(p engine.Policy, key int) bool { return r.peaks.mayRefuse(boundOf(p), key) }
	bucket := func(rate float64, burst uint64) engine.Policy {
		return engine.TokenBucket(engine.PerSecond(rate), burst)
	}
	assert.True(t, mayRefuse(bucket(1, 20), 0), "the 40th is refused")
	assert.False(t, mayRefuse(bucket(1, 42), 0))
	assert.False(t, mayRefuse(bucket(4, 3), 0))
	assert.True(t, mayRefuse(bucket(4, 1), 0), "at the edge it is left to the engine")
	assert.True(t, mayRefuse(bucket(1./86400/400, 40), 0), "slower than all that is known")
	assert.True(t, mayRefuse(engine.SlidingWindow(20, 10*time.Second), 0))
	assert.False(t, mayRefuse(engine.SlidingWindow(80, 10*time.Second), 0))
	assert.True(t, mayRefuse(engine.BatchRefill(60, time.Minute, 20), 0))
	assert.True(t, mayRefuse(engine.FixedWindow(2, time.Hour), 1), "its one request is for more")
	assert.False(t, mayRefuse(engine.FixedWindow(5, time.Hour), 1))
}
