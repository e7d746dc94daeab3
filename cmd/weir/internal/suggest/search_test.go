package suggest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/weir/internal/replay"
	"github.com/weir-go/weir/engine"
)

// What a step refuses of the requests at risk is what it refuses of all, in whatever order the steps are tried: for
// each algorithm, with pauses, costs and refunds.
func TestRequestsThatAreNotAtRiskChangeNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tr := &replay.Trace{Keys: 20}
	at := int64(1_700_000_000)
	for range 3000 {
		at += int64(random.IntN(3)) * int64(random.IntN(2+random.IntN(30)))
		tr.Requests = append(tr.Requests, replay.Traced{UnixNano: at * 1e9, Cost: uint64(1 + random.IntN(3)),
			Key: uint32(random.IntN(1 + random.IntN(20))), Refund: random.IntN(10) == 0})
	}
	left := 0
	for _, settings := range []string{
		"rate: 1/s", "rate: 1/m, algorithm: batch-refill", "rate: 9/m, algorithm: fixed-window",
		"rate: 9/m, algorithm: fixed-window, aligned: true", "rate: 9/m, algorithm: sliding-window",
		"rate: 9/m, algorithm: sliding-log",
	} {
		r, err := newRequests(tr)
		require.NoError(t, err)
		scales, _ := ladder(rule(t, settings), r)
		for _, s := range scales {
			q := &search{requests: r, scale: s}
			for range 4 {
				i := random.IntN(len(s))
				if !s[i].made() {
					continue
				}
				want, err := r.refused(s[i].Policy(), r.all, r.keys, all)
				require.NoError(t, err)
				enough := uint64(random.IntN(1500))
				few, err := q.try(i, enough) // it may narrow the search
				require.NoError(t, err)
				assert.Equal(t, min(want, enough+1), few.Refused, "%v: it stops at one too many", few.Policy)
				got, err := q.try(i, all)
				require.NoError(t, err)
				require.Equal(t, want, got.Refused, "%v", got.Policy)
				risky, _ := r.atRisk(r.all, got.Policy, s[i].most)
				left += len(r.all) - len(risky)
			}
		}
	}
	assert.NotZero(t, left, "the test is of nothing")
}

// A client that comes a second time much later is not at risk, and one that comes too often is.
func TestWhatIsAtRisk(t *testing.T) {
	r, err := newRequests(trace(0, 0, 100, 200, 200, 200, 201, 300))
	require.NoError(t, err)
	risky, keys := r.atRisk(r.all, engine.TokenBucket(engine.PerSecond(1), 4), 4)
	assert.Equal(t, r.all[3:7], risky)
	assert.Equal(t, 1, keys)
	risky, keys = r.atRisk(r.all, engine.TokenBucket(engine.PerSecond(1), 5), 5)
	assert.Empty(t, risky)
	assert.Zero(t, keys)
}

// A limit for an hour from a minute of requests is doubtful, and the suggestion says so.
func TestALogThatIsTooShort(t *testing.T) {
	seconds := make([]int, 99)
	for i := range seconds {
		seconds[i] = i
	}
	c := find(t, "rate: 500/h, algorithm: fixed-window", trace(seconds...), 0)
	assert.Equal(t, "rate: 99/h", c.Points[c.Best].Settings())
	assert.Contains(t, c.Reason, "; but the log is too short for it: these requests are of 1m39s, and this is a limit for "+
		"1h0m0s")
	c = find(t, "rate: 500/m, algorithm: fixed-window", trace(seconds...), 0)
	assert.NotContains(t, c.Reason, "too short")
	p := Point{Rate: engine.PerSecond(1), Policy: engine.TokenBucket(engine.PerSecond(1), 100)}
	assert.Empty(t, short(&p, 99*time.Second))
	assert.NotEmpty(t, short(&p, 98*time.Second), "a bucket takes as long to fill")
}
