package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

var counters = []struct {
	limit  int
	window time.Duration
}{
	{1, time.Second}, {2, time.Microsecond}, {10, 10 * time.Second}, {100, time.Minute}, {1000, time.Hour}, {7, 365 * day},
}

// The sliding window counter wrongly admits most in the following case. A client uses the complete limit in the last
// nanosecond of a window, and again by the end of the next window.
func TestCounterAdmitsTwiceTheLimit(t *testing.T) {
	for _, c := range counters {
		t.Run(fmt.Sprintf("%d in %v", c.limit, c.window), func(t *testing.T) {
			k := newTaken(t, engine.SlidingWindow(uint64(c.limit), c.window))
			at := func(window int, offset time.Duration) time.Duration {
				// A window of 365 days does not begin at start. The variable next is the time from start to the next
				// window.
				next := c.window - time.Duration(start.UnixNano()%int64(c.window))
				return next + time.Duration(window)*c.window + offset
			}
			require.Equal(t, c.limit, k.ask(at(0, c.window-1), c.limit+1))
			require.Equal(t, c.limit, k.ask(at(1, c.window-2), c.limit+1))
			assert.Equal(t, 2*c.limit, k.most(c.window), "a nanosecond less than a window")
		})
	}
}

// At the time x after the beginning of the next window, the counter has admitted ceil(limit * x / window) more
// requests, like a token bucket.
func TestCounterFillsUpLikeATokenBucket(t *testing.T) {
	const limit, window = 10, 10 * time.Second
	for _, x := range []time.Duration{0, 1, time.Second - 1, time.Second, time.Second + 1, 2 * time.Second,
		4999 * time.Millisecond, 9 * time.Second, 9*time.Second + 1, window - 1} {
		k := newTaken(t, engine.SlidingWindow(limit, window))
		require.Equal(t, limit, k.ask(window-1, limit+1))
		assert.Equal(t, int((limit*x+window-1)/window), k.ask(window+x, limit+1), "after %v", x)
	}
}

// The counter wrongly refuses most after requests for the complete limit in the first nanosecond of a window. When the
// next window begins, an exact log counts none of them.
func TestCounterRefusesAnEmptyWindow(t *testing.T) {
	for _, c := range counters[:5] {
		t.Run(fmt.Sprintf("%d in %v", c.limit, c.window), func(t *testing.T) {
			k := newTaken(t, engine.SlidingWindow(uint64(c.limit), c.window))
			require.Equal(t, c.limit, k.ask(0, c.limit+1))
			require.Zero(t, k.ask(c.window, 1), "all of it has just left")

			// One token is available a nanosecond later. The complete limit is available after more than
			// (limit-1)/limit of the window.
			limit := time.Duration(c.limit)
			assert.Equal(t, time.Duration(1), k.l.Peek(k.l.Key("key"), 1).RetryAfter)
			d := k.l.Peek(k.l.Key("key"), uint64(c.limit))
			assert.Equal(t, c.window-(c.window-1)/limit, d.RetryAfter)
			assert.Zero(t, k.ask(c.window+d.RetryAfter-1, c.limit)-(c.limit-1), "a nanosecond sooner one is missing")
		})
	}
}

// The engine's sliding log and the exact log decide every request in the same way.
func TestYardstickAgreesWithTheEnginesLog(t *testing.T) {
	traffic := map[string][]request{"excerpt": excerpt(t)}
	for _, load := range loads {
		traffic[fmt.Sprint("poisson ", load)] = poisson(20_000, 10, time.Minute, load, 7)
	}
	for name, requests := range traffic {
		t.Run(name, func(t *testing.T) {
			l, clock, err := limiter(engine.SlidingLog(10, time.Minute), 1000)
			require.NoError(t, err)
			defer l.Close()
			logs := map[int]*exactLog{}
			for i, r := range requests {
				if logs[r.client] == nil {
					logs[r.client] = &exactLog{window: int64(time.Minute)}
				}
				log := logs[r.client]
				clock.set(time.Duration(r.at))
				admits := log.count(r.at) < 10
				require.Equal(t, admits, l.AllowKey(l.KeyUint64(uint64(r.client))), "request %d", i)
				if admits {
					log.add(r.at)
				}
			}
			require.Zero(t, l.Stats().Evictions)
		})
	}
}

func excerpt(t *testing.T) []request {
	requests, err := readLog(filepath.Join("..", "..", "cmd", "internal", "replay", "testdata",
		"apache_access_excerpt.log"))
	require.NoError(t, err)
	return requests
}

// The document repeats the numbers that this test expects for the excerpt.
func TestCounterOnTheExcerpt(t *testing.T) {
	got, err := measure(5, 10*time.Second, excerpt(t))
	require.NoError(t, err)
	assert.Equal(t, tally{
		requests: 500, clients: 109, admitted: 467, exact: 467, differ: 20,
		wronglyAdmitted: 10, wronglyRefused: 11, most: 7, pressed: 156,
	}, got)
}

func TestReadLog(t *testing.T) {
	requests := excerpt(t)
	require.Len(t, requests, 500)
	assert.EqualValues(t, 10*time.Hour+5*time.Minute, requests[0].at)
	assert.True(t, slices.IsSortedFunc(requests, func(a, b request) int { return cmp.Compare(a.at, b.at) }))
	assert.Contains(t, requests, request{0, int64(10*time.Hour + 5*time.Minute + 3*time.Second)}, "the first line")

	_, err := readLog("no such file")
	require.Error(t, err)
	path := filepath.Join(t.TempDir(), "log")
	for _, text := range []string{"nonsense\n", "a - - [yesterday] \"GET / HTTP/1.1\"\n",
		"a - - [17/May/2015:10:05:03 +0000\n"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := readLog(path)
		require.ErrorContains(t, err, "is not a line")
	}
}

// percent writes three digits.
func TestPercent(t *testing.T) {
	for want, share := range map[string][2]int{
		"0": {0, 7}, "100 %": {7, 7}, "50.0 %": {1, 2}, "1.50 %": {3, 200}, "0.123 %": {123, 100_000},
		"0.003 %": {3, 100_000},
	} {
		assert.Equal(t, want, percent(share[0], share[1]))
	}
}
