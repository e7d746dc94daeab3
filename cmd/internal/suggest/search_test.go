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

// byEngine counts what a limiter of the engine refuses of requests.
func byEngine(t *testing.T, p engine.Policy, requests []trace.Request) (refused uint64) {
	t.Helper()
	var now atomic.Int64
	now.Store(requests[0].UnixNano)
	limiter, err := engine.New(p, engine.MaxKeys(1000),
		engine.ClockFunc(func() time.Time { return time.Unix(0, now.Load()) }))
	require.NoError(t, err)
	defer limiter.Close()
	for _, q := range requests {
		now.Store(q.UnixNano)
		key := limiter.KeyUint64(uint64(q.Key))
		if !limiter.TakeKey(key, q.Cost).Allowed {
			refused++
		} else if q.Refund {
			limiter.RefundKey(key, q.Cost)
		}
	}
	require.Zero(t, limiter.Stats().Evictions)
	return refused
}

// Candidates that are tried together refuse what a limiter of the engine does: of each algorithm, with pauses of
// seconds and of months, costs and refunds, and with many keys that they cannot refuse anything and that are left out.
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
		r, err := newRequests(traceOf(t, requests...), false)
		require.NoError(t, err)
		scales, _ := ladder(rule(t, settings), r)
		var candidates []*candidate
		var want []uint64
		for _, s := range scales {
			s = s.made()
			for range 4 {
				p, enough := s[random.IntN(len(s))].Policy(), uint64(all)
				refused := byEngine(t, p, requests)
				if random.IntN(2) == 0 {
					enough = uint64(random.IntN(1500))
					refused = min(refused, enough+1) // it stops at one too many
				}
				c, err := newCandidate(p, enough)
				require.NoError(t, err)
				candidates, want = append(candidates, c), append(want, refused)
				for key := range r.totals {
					tried++
					if !r.peaks.mayRefuse(c.bound, key) {
						leftOut++
					}
				}
			}
		}
		require.NoError(t, r.try(candidates))
		for i, c := range candidates {
			assert.Equal(t, want[i], c.refused, "%s: %+v", settings, c.quota)
		}
	}
	assert.Greater(t, leftOut, tried/10, "the test is of nothing")
	assert.Greater(t, tried-leftOut, tried/10)
}

// A key is left out only where no request of it can be refused: its peaks are those of a bucket without a limit.
func TestPeaks(t *testing.T) {
	var requests []trace.Request
	for i := range 40 { // two a second, for 20 seconds
		requests = append(requests, trace.Request{UnixNano: 1_700_000_000e9 + int64(i)*5e8, Cost: 1, Key: 0})
	}
	requests = append(requests, trace.Request{UnixNano: 1_800_000_000e9, Cost: 3, Key: 1})
	r, err := newRequests(traceOf(t, requests...), false)
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

// A limit for an hour from a minute of requests is doubtful, and the suggestion says so.
func TestALogThatIsTooShort(t *testing.T) {
	seconds := make([]int, 99)
	for i := range seconds {
		seconds[i] = i
	}
	c := find(t, "rate: 500/h, algorithm: fixed-window", 0, at(seconds...)...)
	assert.Equal(t, "rate: 99/h", c.Points[c.Best].Settings())
	assert.Contains(t, c.Reason, "; but the log is too short for it: these requests are of 1m39s, and this is a limit for "+
		"1h0m0s")
	c = find(t, "rate: 500/m, algorithm: fixed-window", 0, at(seconds...)...)
	assert.NotContains(t, c.Reason, "too short")
	p := Point{Rate: engine.PerSecond(1), Policy: engine.TokenBucket(engine.PerSecond(1), 100)}
	assert.Empty(t, short(&p, 99*time.Second))
	assert.NotEmpty(t, short(&p, 98*time.Second), "a bucket takes as long to fill")
}
