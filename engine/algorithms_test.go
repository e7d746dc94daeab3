package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/internal/testrace"
)

type perMinute struct {
	name   string
	policy func(limit uint64) Policy
}

var algorithms = []perMinute{
	{"token bucket", func(limit uint64) Policy { return TokenBucket(Per(float64(limit), time.Minute), limit) }},
	{"batch refill", func(limit uint64) Policy { return BatchRefill(limit, time.Minute, limit) }},
	{"fixed window", func(limit uint64) Policy { return FixedWindow(limit, time.Minute) }},
	{"aligned window", func(limit uint64) Policy { return FixedWindow(limit, time.Minute).Aligned() }},
	{"sliding window", func(limit uint64) Policy { return SlidingWindow(limit, time.Minute) }},
	{"sliding log", func(limit uint64) Policy { return SlidingLog(limit, time.Minute) }},
	{"concurrency", func(limit uint64) Policy { return Concurrency(limit, time.Minute) }},
}

// tier returns a policy with the given limit, for tiers of one limiter.
func (a perMinute) tier(limit uint64) Policy {
	if a.name == "batch refill" {
		return BatchRefill(10, time.Minute, limit)
	}
	return a.policy(limit)
}

func forEach(t *testing.T, options []Option, f func(t *testing.T, a perMinute, l *Limiter, h *hand)) {
	for _, a := range algorithms {
		t.Run(a.name, func(t *testing.T) {
			l, h := newLimiter(t, a.policy(100), options...)
			f(t, a, l, h)
		})
	}
}

// A fixed window begins with the key's first request and has one end.
func TestFixedWindowBeginsWithTheFirstRequest(t *testing.T) {
	l, h := newLimiter(t, FixedWindow(100, time.Minute))
	for i := range uint64(100) {
		want := Decision{Allowed: true, Limit: 100, Remaining: 99 - i,
			ResetAfter: time.Minute - time.Duration(h.nanos.Load())}
		require.Equal(t, want, l.Take("k", 1))
		h.advance(100 * time.Millisecond)
	}
	d := l.Take("k", 1)
	assert.Equal(t, Decision{Limit: 100, RetryAfter: 50 * time.Second, ResetAfter: 50 * time.Second}, d)
	assert.Equal(t, Decision{Allowed: true, Limit: 100, Remaining: 99, ResetAfter: time.Minute}, l.Take("another", 1),
		"its window begins now")
	h.advance(50*time.Second - 1)
	assert.False(t, l.Allow("k"), "one nanosecond early")
	h.advance(1)
	assert.True(t, l.Peek(l.Key("k"), 100).Allowed)
	h.advance(15 * time.Second)
	assert.Equal(t, Decision{Allowed: true, Limit: 100, Remaining: 97, ResetAfter: time.Minute}, l.Take("k", 3),
		"the next window begins with the first request in it")
	h.advance(time.Minute - 1)
	assert.Equal(t, Decision{Allowed: true, Limit: 100, ResetAfter: 1}, l.Take("k", 97))
}

// Aligned windows begin with the clock's minutes, whenever the first request comes.
func TestAlignedWindowEndsOnTheMinute(t *testing.T) {
	l, h := newLimiter(t, FixedWindow(100, time.Minute).Aligned())
	assert.Equal(t, Decision{Allowed: true, Limit: 100, ResetAfter: 40 * time.Second}, l.Take("k", 100))
	h.advance(40*time.Second - 1)
	assert.Equal(t, Decision{Limit: 100, RetryAfter: 1, ResetAfter: 1}, l.Take("k", 1))
	h.advance(1)
	assert.Equal(t, Decision{Allowed: true, Limit: 100, Remaining: 99, ResetAfter: time.Minute}, l.Take("k", 1))
}

// The estimate is floor(previous x weight) + current.
func TestSlidingWindowEstimate(t *testing.T) {
	l, h := newLimiter(t, SlidingWindow(100, time.Minute))
	require.True(t, l.Take("k", 80).Allowed)
	h.advance(55 * time.Second)
	assert.Equal(t, Decision{Allowed: true, Limit: 100, Remaining: 10, ResetAfter: 45 * time.Second}, l.Take("k", 30))
	assert.Equal(t, Decision{Limit: 100, Remaining: 10, RetryAfter: 1, ResetAfter: 45 * time.Second}, l.Take("k", 11))
	h.advance(1)
	assert.Equal(t, Decision{Allowed: true, Limit: 100, ResetAfter: 45*time.Second - 1}, l.Take("k", 11),
		"floor(59.99) + 41")
	h.advance(45*time.Second - 1)
	assert.EqualValues(t, 59, l.Peek(l.Key("k"), 0).Remaining, "the 41 are the previous count now, and all inside")
	h.advance(30 * time.Second)
	assert.EqualValues(t, 80, l.Peek(l.Key("k"), 0).Remaining, "floor(20.5)")
}

// A token leaves the window of a sliding log exactly one window after it was taken.
func TestSlidingLogIsExact(t *testing.T) {
	l, h := newLimiter(t, SlidingLog(100, time.Minute))
	for range 10 {
		require.True(t, l.Take("k", 10).Allowed)
		h.advance(time.Second)
	}
	assert.Equal(t, Decision{Limit: 100, RetryAfter: 50 * time.Second, ResetAfter: 50 * time.Second}, l.Take("k", 1))
	assert.Equal(t, 52*time.Second, l.Take("k", 25).RetryAfter, "when the third ten have left")
	h.advance(52*time.Second - 1)
	assert.EqualValues(t, 20, l.Peek(l.Key("k"), 0).Remaining)
	h.advance(1)
	assert.Equal(t, Decision{Allowed: true, Limit: 100, Remaining: 5, ResetAfter: time.Second}, l.Take("k", 25))
}

// Refused requests do not count. If they did, a client that keeps sending would never be admitted.
func TestRefusedRequestsAreNotCounted(t *testing.T) {
	testrace.OneGoroutine(t)
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, h *hand) {
		quiet := l.Key("quiet") // takes as much as the other key, and then waits
		require.True(t, l.Take("k", 100).Allowed)
		require.True(t, l.TakeKey(quiet, 100).Allowed)
		for range 5000 {
			for _, n := range []uint64{1, 100, 7} {
				before := l.Peek(l.Key("k"), n)
				require.Equal(t, l.Peek(quiet, n), before, "what who has not insisted is told")
				d := l.Take("k", n)
				require.Equal(t, before.Allowed, d.Allowed)
				if d.Allowed {
					require.Equal(t, d, l.TakeKey(quiet, n))
				} else {
					require.Equal(t, before, d)
				}
			}
			h.advance(30 * time.Millisecond)
		}
	})
}

// A request is admitted when its RetryAfter is over, and not a nanosecond earlier.
func TestRetryAfterOfEveryAlgorithm(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, h *hand) {
		random := rand.New(rand.NewPCG(8, 8))
		waited := 0
		for range 3000 {
			n := 1 + random.Uint64N(100)
			d := l.Peek(l.Key("k"), n)
			require.Equal(t, d.Allowed, d.RetryAfter == 0)
			if d.Allowed {
				l.Take("k", 1+random.Uint64N(n))
				h.advance(time.Duration(random.Int64N(int64(20 * time.Second))))
				continue
			}
			waited++
			require.Equal(t, d, l.Take("k", n))
			h.advance(d.RetryAfter - 1)
			require.Equal(t, time.Duration(1), l.Take("k", n).RetryAfter, "one nanosecond early")
			h.advance(1)
			require.True(t, l.Take("k", n).Allowed, "after %v, as told", d.RetryAfter)
		}
		require.Greater(t, waited, 500)
	})
}

// A client that polls more often than a token comes back still gets all tokens.
func TestBatchRefillWhileAClientPolls(t *testing.T) {
	l, h := newLimiter(t, BatchRefill(10, time.Second, 100))
	require.True(t, l.Take("k", 100).Allowed)
	h.advance(300 * time.Millisecond)
	assert.Equal(t, Decision{Limit: 100, RetryAfter: 700 * time.Millisecond, ResetAfter: 9700 * time.Millisecond},
		l.Take("k", 1))
	for second := range 20 {
		admitted := 0
		for range 1000 {
			h.advance(time.Millisecond)
			if l.Allow("k") {
				admitted++
			}
		}
		require.Equal(t, 10, admitted, "second %d", second)
	}
	h.advance(time.Hour)
	assert.True(t, l.Take("k", 100).Allowed)
	assert.False(t, l.Allow("k"), "the bucket holds no more")
}

func TestTokenBucketWithCosts(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(2), 10))
	assert.Equal(t, Decision{Allowed: true, Limit: 10, Remaining: 3, ResetAfter: 3500 * time.Millisecond},
		l.Take("k", 7))
	assert.Equal(t, Decision{Limit: 10, Remaining: 3, RetryAfter: time.Second, ResetAfter: 3500 * time.Millisecond},
		l.Take("k", 5))
	assert.True(t, l.Take("k", 3).Allowed, "the refused five have taken nothing")
	h.advance(2500 * time.Millisecond)
	assert.True(t, l.Take("k", 5).Allowed)
	assert.False(t, l.Allow("k"))
}

// A request for more than the limit is never admitted and changes nothing.
func TestFirstRequestAboveTheLimit(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, h *hand) {
		for _, n := range []uint64{101, 1 << 32, 1 << 62, math.MaxUint64 - 50, math.MaxUint64} {
			want := Decision{Limit: 100, Remaining: 100, RetryAfter: Never}
			require.Equal(t, want, l.Take("k", n))
			require.Equal(t, want, l.Peek(l.Key("k"), n))
			require.Equal(t, want, l.TakeAt(l.Key("k"), n, h.now()))
		}
		require.Equal(t, Decision{Allowed: true, Limit: 100, Remaining: 100}, l.Take("k", 0))
		l.Sweep()
		require.Zero(t, l.Stats().Keys)
		require.True(t, l.Take("k", 100).Allowed)
		for _, n := range []uint64{101, math.MaxUint64 - 50} {
			d := l.Take("k", n)
			require.Equal(t, []any{false, uint64(0), Never}, []any{d.Allowed, d.Remaining, d.RetryAfter})
		}
		require.True(t, l.Take("k", 0).Allowed)
	})
}

// TestSweepNeverResetsALiveQuota (I7): a sweep changes no answer, however long a key was not used.
func TestSweepNeverResetsALiveQuota(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, h *hand) {
		random := rand.New(rand.NewPCG(9, 9))
		forgotten := 0
		for range 300 {
			for i := range uint64(10) {
				l.TakeKey(l.KeyUint64(i), 1+random.Uint64N(100))
			}
			h.advance(time.Duration(random.Int64N(int64(50 * time.Second))))
			var before, after [10]Decision
			for i := range uint64(10) {
				before[i] = l.Peek(l.KeyUint64(i), 1+i*10)
			}
			reclaimed := l.Stats().Reclaimed
			l.Sweep()
			forgotten += int(l.Stats().Reclaimed - reclaimed)
			for i := range uint64(10) {
				after[i] = l.Peek(l.KeyUint64(i), 1+i*10)
				if after[i].Remaining == 100 {
					// A key that has its complete limit again may be forgotten, which changes its ResetAfter.
					before[i].ResetAfter, after[i].ResetAfter = 0, 0
				}
			}
			require.Equal(t, before, after)
			h.advance(time.Duration(random.Int64N(int64(50 * time.Second))))
		}
		require.Greater(t, forgotten, 50)
	})
}

// TestRequestsAtAWindowEdge (I1, I8): concurrent requests with clocks on both sides of a window edge do not reset each
// other's counters.
func TestRequestsAtAWindowEdge(t *testing.T) {
	edge := time.Unix(1_700_000_040, 0) // a full minute
	for _, a := range algorithms {
		t.Run(a.name, func(t *testing.T) {
			l, h := newLimiter(t, a.policy(100))
			h.advance(40*time.Second - 1)
			var admitted [5]atomic.Int64
			var all sync.WaitGroup
			for g := range 8 {
				all.Go(func() {
					random := rand.New(rand.NewPCG(1, uint64(g)))
					for range 3000 {
						k := random.IntN(len(admitted))
						at := edge.Add(time.Duration(random.IntN(3) - 1))
						if l.TakeAt(l.KeyUint64(uint64(k)), 1, at).Allowed {
							admitted[k].Add(1)
						}
					}
				})
			}
			all.Wait()
			most := map[string]int64{ // how many tokens a key may get within three nanoseconds
				"batch refill": 200, "aligned window": 200, // these two algorithms grant the limit twice at an edge
				"sliding window": 101, // the estimate of the previous window is floor(100 * almost 1) = 99
			}[a.name]
			if most == 0 {
				most = 100
			}
			for k := range admitted {
				require.LessOrEqual(t, admitted[k].Load(), most)
				require.GreaterOrEqual(t, admitted[k].Load(), int64(100))
				require.False(t, l.TakeAt(l.KeyUint64(uint64(k)), 1, edge.Add(-1)).Allowed)
				require.False(t, l.TakeAt(l.KeyUint64(uint64(k)), 2, edge.Add(1)).Allowed)
			}
		})
	}
}

// TestStaleTimes (I8): a time in the past creates no tokens.
func TestStaleTimes(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, h *hand) {
		k, base := l.Key("k"), h.now()
		require.True(t, l.TakeAt(k, 100, base).Allowed)
		for i := range 2000 {
			at := base.Add(time.Duration(i) * time.Microsecond)
			if i%2 == 1 {
				at = at.Add(-time.Duration(i) * time.Second)
			}
			require.False(t, l.TakeAt(k, 1, at).Allowed)
		}
		for _, at := range []time.Time{{}, time.Unix(0, 0), base.Add(-60 * time.Second), base.Add(-20 * time.Second)} {
			require.False(t, l.TakeAt(k, 1, at).Allowed)
		}
		h.advance(-time.Minute)
		require.False(t, l.Allow("k"))
		require.False(t, l.Peek(l.Key("k"), 1).Allowed)
	})
}

// After the clock leaps ahead, the complete limit is available again.
func TestLeapingTimes(t *testing.T) {
	forEach(t, nil, func(t *testing.T, _ perMinute, l *Limiter, h *hand) {
		k := l.Key("k")
		for _, at := range []int64{1_700_000_100, 1_700_100_000, 1_800_000_000, 3_000_000_000, 5_000_000_000} {
			h.advance(time.Unix(at, 0).Sub(h.now()))
			require.True(t, l.TakeAt(k, 100, time.Unix(at, 0)).Allowed)
			require.False(t, l.TakeAt(k, 1, time.Unix(at, 0)).Allowed)
			require.False(t, l.TakeAt(k, 1, time.Unix(1_600_000_000, 0)).Allowed)
			require.False(t, l.Allow("k"))
		}
	})
}

// TestATimeFromTheFutureMovesNothing (I1): a request ahead of the clock gives other keys no tokens.
func TestATimeFromTheFutureMovesNothing(t *testing.T) {
	forEach(t, []Option{MaxKeys(1), Shards(1), Overflow(Refuse)}, func(t *testing.T, a perMinute, l *Limiter, h *hand) {
		h.advance(39*time.Second + 500*time.Millisecond)
		for i := range uint64(31) {
			require.True(t, l.TakeKey(l.KeyUint64(i), 100).Allowed)
		}
		before, watermark := l.Peek(l.Key("new"), 1), l.table.Watermark()
		future := h.now().AddDate(10, 0, 0)
		k := l.Key("k")
		d := l.TakeAt(k, 1, future)
		require.Equal(t, Decision{Limit: 100, RetryAfter: future.Sub(h.now()) - maxLead,
			ResetAfter: future.Sub(h.now()) - maxLead}, d)
		require.Equal(t, watermark, l.table.Watermark())
		require.Equal(t, before, l.Peek(l.Key("new"), 1))
		require.False(t, l.AllowKey(l.KeyUint64(7)))

		near := h.now().Add(maxLead)
		require.True(t, l.TakeAt(l.KeyUint64(31), 100, near).Allowed, "the last slot")
		for i := range uint64(32) {
			require.False(t, l.TakeAt(l.KeyUint64(1000+i), 1, near).Allowed, "no room")
			require.EqualValues(t, 100, l.TakeAt(l.KeyUint64(2000+i), 0, near).Remaining)
		}
		require.LessOrEqual(t, l.table.Watermark(), h.now().UnixNano())
		for i := range uint64(31) {
			require.False(t, l.AllowKey(l.KeyUint64(i)), "nor is its second there already")
		}
		h.advance(time.Hour)
		require.True(t, l.TakeAt(k, 1, h.now().Add(maxLead)).Allowed, "in the place of one that is idle by now")
		require.LessOrEqual(t, l.table.Watermark(), h.now().UnixNano())
	})
}

// TestARateThatRoundsChargesFromTheNextNanosecond: at a rate that rounds, Remaining is exactly the number of tokens
// that can be taken.
func TestARateThatRoundsChargesFromTheNextNanosecond(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(97), 10))
	for _, want := range []uint64{8, 8, 7, 6} {
		require.EqualValues(t, want, l.Take("k", 1).Remaining)
		h.advance(2)
	}
	for i := range uint64(50) {
		k := l.KeyUint64(i)
		require.EqualValues(t, 8, l.TakeKey(k, 1).Remaining)
		require.True(t, l.Peek(k, 8).Allowed)
		d := l.Peek(k, 9)
		require.False(t, d.Allowed)
		require.LessOrEqual(t, d.RetryAfter, 2*time.Nanosecond)
		h.advance(d.RetryAfter)
		require.True(t, l.TakeKey(k, 9).Allowed)
	}
	exact, _ := newLimiter(t, TokenBucket(PerSecond(100), 10))
	for want := uint64(9); want > 0; want-- {
		require.Equal(t, want, exact.Take("k", 1).Remaining)
	}
}

// A limit of 1e6 per second grants 1e6 tokens in the next second, too.
func TestAMillionASecondInEverySecond(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		least  int
	}{
		{TokenBucket(PerSecond(1e6), 1e6), 1_000_000},
		{BatchRefill(1e6, time.Second, 1e6), 1_000_000},
		{FixedWindow(1e6, time.Second), 999_000}, // so large a count leaves no room for nanoseconds
		{FixedWindow(1e6, time.Second).Aligned(), 1_000_000},
		{SlidingWindow(1e6, time.Second), 999_000}, // the tokens of the last millisecond may be missing
	} {
		l, h := newLimiter(t, c.policy)
		for second := range 4 {
			admitted := 0
			for range 1000 {
				if l.Take("k", 1000).Allowed {
					admitted += 1000
				}
				if second == 0 {
					for l.Take("k", 1000).Allowed {
						admitted += 1000
					}
				}
				h.advance(time.Millisecond)
			}
			if second == 0 && c.policy.algorithm == AlgorithmTokenBucket {
				assert.Equal(t, 1_999_000, admitted, "the burst, and what came back")
				continue
			}
			assert.LessOrEqual(t, admitted, 1_000_000, "%v, second %d", c.policy, second+1)
			least := c.least
			if c.policy.algorithm == AlgorithmSlidingWindow && second == 1 {
				least = 900_000 // the first million was not spread evenly
			}
			assert.GreaterOrEqual(t, admitted, least, "%v, second %d", c.policy, second+1)
		}
	}
}

// At 1e7 tokens per hour, the product of nanoseconds and tokens does not fit into an int64, but nothing overflows.
func TestTenMillionAnHour(t *testing.T) {
	for _, p := range []Policy{
		TokenBucket(Per(1e7, time.Hour), 1e7), BatchRefill(1e7, time.Hour, 1e7), FixedWindow(1e7, time.Hour),
		FixedWindow(1e7, time.Hour).Aligned(), SlidingWindow(1e7, time.Hour),
	} {
		l, h := newLimiter(t, p)
		require.Equal(t, []any{true, uint64(0)}, []any{l.Take("k", 1e7).Allowed, l.Peek(l.Key("k"), 0).Remaining}, "%v", p)
		d := l.Take("k", 1e7)
		require.False(t, d.Allowed)
		require.Positive(t, d.RetryAfter)
		require.LessOrEqual(t, d.RetryAfter, 2*time.Hour)
		h.advance(d.RetryAfter - 1)
		require.False(t, l.Take("k", 1e7).Allowed, "%v", p)
		h.advance(1)
		require.True(t, l.Take("k", 1e7).Allowed, "%v", p)
	}
	l, h := newLimiter(t, TokenBucket(Per(1e7, time.Hour), 1e7))
	require.True(t, l.Take("k", 1e7).Allowed)
	h.advance(36 * time.Second)
	assert.EqualValues(t, 100_000, l.Peek(l.Key("k"), 0).Remaining)
}

// 3e8 tokens per second are 300 per microsecond, although no token takes a whole number of nanoseconds.
func TestThreeHundredMillionASecond(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(3e8), 600))
	require.True(t, l.Take("k", 600).Allowed)
	for range 10_000 {
		h.advance(time.Microsecond)
		require.True(t, l.Take("k", 300).Allowed)
		require.False(t, l.Allow("k"))
	}
}

// New returns an error for numbers that the algorithm cannot grant.
func TestNewRefusesNumbersOfEveryAlgorithm(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		want   string
	}{
		{TokenBucket(PerSecond(1e9+1), 5), "token bucket 1.000000001e+09/s burst 5: rate of 1.000000001e+09 tokens every 1s: want at most 1000000000 tokens a second"},
		{BatchRefill(1_000_000_001, time.Second, 5), "batch refill 1000000001/1s burst 5: refill of 1000000001 tokens every 1s: want 1 to 4294967296 tokens, and at most one for each nanosecond"},
		{BatchRefill(0, time.Second, 5), "refill of 0 tokens"},
		{BatchRefill(5, 0, 5), "refill of 5 tokens every 0s"},
		{BatchRefill(5, time.Second, 0), "burst of 0 tokens: want 1 to 4294967296"},
		{FixedWindow(0, time.Minute), "fixed window 0/1m0s: limit of 0 tokens every 1m0s: want 1 to "},
		{FixedWindow(1<<32+1, time.Minute), "limit of 4294967297 tokens every 1m0s: want 1 to 4294967296 tokens"},
		{FixedWindow(5, 999), "want a window of 1µs to 8760h0m0s"},
		{FixedWindow(5, 0).Aligned(), "fixed window 5/0s, aligned: limit of 5 tokens every 0s: want a window of"},
		{FixedWindow(1e9, time.Second), "limit of 1000000000 tokens every 1s: so large a count does not fit into a word beside so short a window; want at most "},
		{SlidingWindow(1<<24, time.Hour), "sliding window 16777216/1h0m0s: limit of 16777216 tokens every 1h0m0s: want 1 to 16777215 tokens"},
		{SlidingWindow(1<<23, time.Second), "does not fit into a word beside so short a window; want at most "},
		{SlidingWindow(5, -1), "want a window of"},
		{FixedWindow(0, time.Minute), "want 1 to 4294967296 tokens"},
		{SlidingLog(4097, time.Minute), "sliding log 4097/1m0s: limit of 4097 tokens every 1m0s: want 1 to 4096 tokens"},
		{SlidingLog(4096, time.Microsecond), "want at most "},
		{TokenBucket(PerSecond(1), 5).Aligned(), "only a fixed window can be aligned"},
		{BatchRefill(1, time.Second, 5).Aligned(), "batch refill 1/1s burst 5, aligned: only a fixed window can be aligned"},
		{SlidingWindow(5, time.Second).Aligned(), "only a fixed window can be aligned"},
		{SlidingLog(5, time.Second).Aligned(), "only a fixed window can be aligned"},
	} {
		l, err := New(c.policy, MaxKeys(10))
		assert.ErrorContains(t, err, "engine: ")
		assert.ErrorContains(t, err, c.want)
		assert.Nil(t, l)

		// SetPolicy refuses the same numbers and changes nothing.
		if c.policy.algorithm != NoAlgorithm && !c.policy.aligned && c.policy.algorithm != AlgorithmSlidingLog {
			var good Policy
			for _, a := range algorithms {
				if p := a.policy(100); p.algorithm == c.policy.algorithm && !p.aligned {
					good = p
				}
			}
			l, _ := newLimiter(t, good)
			require.True(t, l.Take("k", 60).Allowed)
			before := l.Peek(l.Key("k"), 50)
			assert.ErrorContains(t, l.SetPolicy(c.policy), c.want)
			assert.Equal(t, before, l.Peek(l.Key("k"), 50))
		}
	}
}

// TestSetPolicyHandsOutNoFreshBucket (I1): after a change of the limit, taken tokens still count.
func TestSetPolicyHandsOutNoFreshBucket(t *testing.T) {
	for _, a := range algorithms[:5] {
		t.Run(a.name, func(t *testing.T) {
			for _, limit := range []uint64{1, 7, 10, 99, 100, 101, 1000, 1 << 20} {
				l, h := newLimiter(t, a.policy(100))
				h.advance(time.Second)
				taken := map[string]uint64{"one": 1, "half": 50, "all": 100}
				for key, n := range taken {
					require.True(t, l.Take(key, n).Allowed)
				}
				for _, limit := range []uint64{limit, 100, 1, limit} {
					require.NoError(t, l.SetPolicy(a.policy(limit)))
					for key, n := range taken {
						left := limit - min(limit, n)
						d := l.Peek(l.Key(key), 0)
						assert.Equal(t, limit, d.Limit)
						assert.LessOrEqual(t, d.Remaining, left, "%s of %d", key, limit)
						assert.GreaterOrEqual(t, d.Remaining+1, left, "%s of %d: what is rounded is less than a token", key, limit)
					}
					assert.Equal(t, limit, l.Peek(l.Key("new"), 0).Remaining)
				}
				h.advance(101 * time.Minute)
				assert.True(t, l.Take("all", limit).Allowed, "in the end all is there again")
			}
		})
	}
	t.Run("sliding log", func(t *testing.T) {
		l, h := newLimiter(t, SlidingLog(100, time.Minute))
		require.True(t, l.Take("half", 50).Allowed)
		require.True(t, l.Take("all", 100).Allowed)
		require.NoError(t, l.SetPolicy(SlidingLog(60, time.Minute)))
		assert.EqualValues(t, 10, l.Peek(l.Key("half"), 0).Remaining)
		assert.Zero(t, l.Peek(l.Key("all"), 0).Remaining)
		require.NoError(t, l.SetPolicy(SlidingLog(20, time.Minute)))
		assert.Equal(t, Decision{Limit: 20, RetryAfter: time.Minute, ResetAfter: time.Minute}, l.Take("half", 1))
		require.NoError(t, l.SetPolicy(SlidingLog(100, time.Minute)))
		assert.EqualValues(t, 50, l.Peek(l.Key("half"), 0).Remaining)
		assert.False(t, l.Allow("all"))
		assert.ErrorContains(t, l.SetPolicy(SlidingLog(101, time.Minute)),
			"want limits of 1 to 100, the largest at New")
		h.advance(time.Minute)
		assert.True(t, l.Take("all", 100).Allowed)
	})
}

// TestChangesOfPolicyDoNotAddUp: in a hundred changes of the limit, rounding costs less than a token in total.
func TestChangesOfPolicyDoNotAddUp(t *testing.T) {
	courses := map[string]func(i uint64) uint64{
		"to and fro":     func(i uint64) uint64 { return 100 + i%2 },
		"up":             func(i uint64) uint64 { return 100 + i },
		"up and half":    func(i uint64) uint64 { return 100 + i%26*4 },
		"half and up":    func(i uint64) uint64 { return 200 - i%51*2 },
		"down to a few":  func(i uint64) uint64 { return 100 - i%2*37 },
		"three in turns": func(i uint64) uint64 { return []uint64{100, 117, 91}[i%3] },
	}
	for _, a := range algorithms[:5] {
		for name, limit := range courses {
			t.Run(a.name+", "+name, func(t *testing.T) {
				l, h := newLimiter(t, a.policy(limit(0)))
				h.advance(time.Second)
				for n := range uint64(10) {
					require.True(t, l.TakeKey(l.KeyUint64(n), 1+n*10).Allowed)
				}
				for i := range uint64(101) {
					require.NoError(t, l.SetPolicy(a.policy(limit(i))))
				}
				for n := range uint64(10) {
					used := limit(100) - l.Peek(l.KeyUint64(n), 0).Remaining
					require.Contains(t, []uint64{1 + n*10, 2 + n*10}, used)
				}
			})
		}
	}
}

// After a change of the length, taken tokens still count.
func TestSetPolicyOfAnotherWindow(t *testing.T) {
	l, h := newLimiter(t, FixedWindow(100, time.Minute))
	require.True(t, l.Take("k", 5).Allowed)
	h.advance(10 * time.Second)
	require.NoError(t, l.SetPolicy(FixedWindow(10, time.Hour)))
	assert.Equal(t, Decision{Limit: 10, Remaining: 5, RetryAfter: time.Hour - 10*time.Second, ResetAfter: time.Hour - 10*time.Second},
		l.Take("k", 6))
	require.NoError(t, l.SetPolicy(FixedWindow(10, 20*time.Second)))
	assert.Equal(t, 20*time.Second, l.Take("k", 6).RetryAfter)

	// After the change, the window lasts to the end of the first complete window of 7s.
	l, h = newLimiter(t, FixedWindow(5, 10*time.Second).Aligned())
	h.advance(10*time.Second - 1)
	require.True(t, l.TakeAt(l.Key("k"), 5, time.Unix(1_700_000_010, 0)).Allowed)
	require.NoError(t, l.SetPolicy(FixedWindow(5, 7*time.Second).Aligned()))
	assert.Equal(t, 5*time.Second+7*time.Second+1, l.Take("k", 1).RetryAfter)

	l, h = newLimiter(t, SlidingWindow(100, time.Minute))
	require.True(t, l.Take("k", 50).Allowed)
	h.advance(55 * time.Second)
	require.NoError(t, l.SetPolicy(SlidingWindow(1000, 10*time.Minute)))
	assert.EqualValues(t, 1000-38, l.Peek(l.Key("k"), 0).Remaining, "50 * 3/4, rounded up")
	h.advance(30 * time.Second)
	require.NoError(t, l.SetPolicy(SlidingWindow(1000, 10*time.Second)))
	assert.EqualValues(t, 1000-38, l.Peek(l.Key("k"), 0).Remaining)
	h.advance(11 * time.Second)
	require.NoError(t, l.SetPolicy(SlidingWindow(1000, time.Minute)))
	assert.EqualValues(t, 1000-16, l.Peek(l.Key("k"), 0).Remaining, "38 * 4/10, rounded up")

	l, _ = newLimiter(t, BatchRefill(100, time.Minute, 100))
	require.True(t, l.Take("k", 5).Allowed)
	require.NoError(t, l.SetPolicy(BatchRefill(1, time.Second, 10)))
	assert.Equal(t, Decision{Limit: 10, Remaining: 5, RetryAfter: time.Second, ResetAfter: 5 * time.Second},
		l.Take("k", 6))
}

func TestSetPolicyOfAnotherKind(t *testing.T) {
	for _, a := range algorithms {
		l, _ := newLimiter(t, a.policy(100))
		require.True(t, l.Take("k", 100).Allowed)
		for _, b := range algorithms {
			if err := l.SetPolicy(b.policy(50)); a.name == b.name {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "and stays of that kind")
			}
		}
		require.ErrorContains(t, l.SetPolicy(Policy{}), "engine: SetPolicy(no policy)")
		require.ErrorContains(t, l.SetPolicy(a.policy(50), a.policy(60)), "with 1 tiers: want 0, as many as before")
		require.False(t, l.Allow("k"))
	}
}

// TestSetPolicyUnderTraffic (I1): while the limit goes up and down under concurrent takes, no key gets more than the
// highest limit.
func TestSetPolicyUnderTraffic(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 6
	}
	for _, a := range algorithms {
		t.Run(a.name, func(t *testing.T) {
			for round := range rounds {
				underTraffic(t, a, uint64(round))
			}
		})
	}
}

func underTraffic(t *testing.T, a perMinute, seed uint64) {
	const keys, goroutines = 6, 4
	limits := []uint64{1000, 600, 210, 7, 1000, 350}
	l, _ := newLimiter(t, a.policy(limits[0]), MaxKeys(20), Shards(1))
	granted := make([]map[uint64]uint64, goroutines*keys)
	var all, busy sync.WaitGroup
	var stop atomic.Bool
	busy.Add(goroutines)
	for g := range goroutines {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(g)))
			for k := range keys {
				granted[g*keys+k] = map[uint64]uint64{}
			}
			for i := 0; !stop.Load() || i < 200; i++ {
				k, n := random.IntN(keys), 1+random.Uint64N(3)
				if d := l.TakeKey(l.KeyUint64(uint64(k)), n); d.Allowed {
					granted[g*keys+k][d.Limit] += n
				}
				if i == 20 {
					busy.Done()
				}
				if i%8 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	busy.Wait()
	const changes = 30
	for i := range changes {
		assert.NoError(t, l.SetPolicy(a.policy(limits[i%len(limits)])))
		if i%7 == 0 {
			l.Sweep()
		}
	}
	stop.Store(true)
	all.Wait()
	for k := range keys {
		tokens := uint64(0)
		for g := range goroutines {
			for limit, n := range granted[g*keys+k] {
				require.Contains(t, limits, limit)
				tokens += n
			}
		}
		require.LessOrEqual(t, tokens, limits[0], "key %d, round %d", k, seed)
	}
}

// Each tier has its own limit, and keys under a tier that does not exist are refused.
func TestTiers(t *testing.T) {
	for _, a := range algorithms {
		t.Run(a.name, func(t *testing.T) {
			l, h := newLimiter(t, a.tier(10), Tiers(a.tier(100), a.tier(1000)))
			for tier, limit := range []uint64{10, 100, 1000} {
				k := l.Key(fmt.Sprintf("user of tier %d", tier)).Tier(tier)
				require.Equal(t, Decision{Limit: limit, Remaining: limit, RetryAfter: Never}, l.TakeKey(k, limit+1))
				require.True(t, l.AllowKey(k))
				d := l.TakeKey(k, limit-1)
				require.Equal(t, []any{true, limit, uint64(0)}, []any{d.Allowed, d.Limit, d.Remaining})
				require.False(t, l.AllowKey(k))
				require.False(t, l.TakeAt(k, 1, h.now()).Allowed)
				require.Equal(t, l.Peek(k, 1), l.TakeKey(k, 1))
			}
			k := l.Key("climber")
			require.True(t, l.TakeKey(k, 10).Allowed)
			require.False(t, l.AllowKey(k))
			require.EqualValues(t, 90, l.Peek(k.Tier(1), 0).Remaining)
			require.True(t, l.TakeKey(k.Tier(1), 90).Allowed)
			require.False(t, l.AllowKey(k.Tier(1)))
			require.False(t, l.AllowKey(k), "and back")
			require.Zero(t, l.Peek(k, 0).Remaining)

			for _, tier := range []int{3, 15, 16, -1, math.MaxInt, math.MinInt} {
				stranger := l.Key("stranger").Tier(tier)
				require.Equal(t, Decision{RetryAfter: Never}, l.TakeKey(stranger, 1))
				require.Equal(t, Decision{RetryAfter: Never}, l.Peek(stranger, 1))
				require.Equal(t, Decision{RetryAfter: Never}, l.TakeAt(stranger, math.MaxUint64, h.now()))
				require.False(t, l.AllowKey(stranger))
				l.Refund(stranger, 5)
			}
			require.True(t, l.Take("stranger", 10).Allowed, "it has taken nothing")
			l.Refund(l.Key("stranger").Tier(9), 5)
			require.Zero(t, l.Peek(l.Key("stranger"), 0).Remaining, "to a tier that has nothing nothing is given back")
		})
	}
}

// Tiers of a token bucket may differ in rate and burst. A debt comes back at the rate of the tier under which the key
// last took.
func TestTiersOfATokenBucket(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 5), Tiers(TokenBucket(PerSecond(100), 200)))
	free := l.Key("k")
	paid := free.Tier(1)
	require.True(t, l.TakeKey(free, 1).Allowed)
	assert.EqualValues(t, 199, l.Peek(paid, 0).Remaining)
	assert.True(t, l.TakeKey(paid, 199).Allowed)
	assert.Equal(t, Decision{Limit: 200, RetryAfter: 10 * time.Millisecond, ResetAfter: 2 * time.Second},
		l.TakeKey(paid, 1))
	assert.Equal(t, Decision{Limit: 5, RetryAfter: 1960 * time.Millisecond, ResetAfter: 2 * time.Second}, l.TakeKey(free, 1))
	h.advance(1960 * time.Millisecond)
	assert.Equal(t, Decision{Allowed: true, Limit: 5, ResetAfter: 5 * time.Second}, l.TakeKey(free, 1))
	assert.EqualValues(t, 195, l.Peek(paid, 0).Remaining)
	h.advance(time.Second)
	assert.EqualValues(t, 196, l.Peek(paid, 0).Remaining, "at the rate of the tier that took last")
}

func TestTiersRefuse(t *testing.T) {
	for _, a := range algorithms {
		for _, b := range algorithms {
			l, err := New(a.tier(10), MaxKeys(10), Tiers(a.tier(20), b.tier(30)))
			if a.name == b.name {
				require.NoError(t, err)
				require.NoError(t, l.Close())
				continue
			}
			require.ErrorContains(t, err,
				"engine: tier 2, "+b.tier(30).String()+": want "+a.tier(10).String()+" with another limit")
		}
		_, err := New(a.tier(10), MaxKeys(10), Tiers(a.tier(0)))
		require.ErrorContains(t, err, "engine: tier 1, ")
		require.ErrorContains(t, err, " 0 tokens")
	}
	_, err := New(FixedWindow(10, time.Minute), MaxKeys(10), Tiers(FixedWindow(10, time.Hour)))
	require.ErrorContains(t, err, "want fixed window 10/1m0s with another limit")
	_, err = New(BatchRefill(10, time.Minute, 5), MaxKeys(10), Tiers(BatchRefill(11, time.Minute, 5)))
	require.ErrorContains(t, err, "with another limit")
	many := make([]Policy, 16)
	for i := range many {
		many[i] = TokenBucket(PerSecond(1), 5)
	}
	_, err = New(many[0], MaxKeys(10), Tiers(many...))
	require.ErrorContains(t, err, "engine: Tiers: 16 tiers: want at most 14")
	l, _ := newLimiter(t, many[0], Tiers(many[:14]...))
	require.True(t, l.AllowKey(l.Key("k").Tier(14)))
	require.Equal(t, Never, l.TakeKey(l.Key("k").Tier(99), 1).RetryAfter)
	_, err = New(TokenBucket(PerSecond(1), 5), MaxKeys(10), Tiers(TokenBucket(PerSecond(999_983), 5)))
	require.ErrorContains(t, err,
		"engine: tier 1, token bucket 999983/s burst 5: rate of 999983 tokens every 1s: it would be slower by more than a millionth")
}

// A refund gives back only tokens that were taken, so a key never has more tokens than the limit.
func TestRefund(t *testing.T) {
	forEach(t, nil, func(t *testing.T, a perMinute, l *Limiter, h *hand) {
		l.Refund(l.Key("nobody"), 5)
		require.EqualValues(t, 100, l.Peek(l.Key("nobody"), 0).Remaining)
		require.True(t, l.Take("k", 60).Allowed)
		l.Refund(l.Key("k"), 25)
		l.Refund(l.Key("k"), 0)
		require.EqualValues(t, 65, l.Peek(l.Key("k"), 0).Remaining)
		for _, n := range []uint64{36, 100, 101, 1 << 40, math.MaxUint64} {
			l.Refund(l.Key("k"), n)
			require.EqualValues(t, 100, l.Peek(l.Key("k"), 0).Remaining, "not more than fits")
			require.False(t, l.Take("k", 101).Allowed)
			require.True(t, l.Take("k", 100).Allowed)
			require.False(t, l.Allow("k"))
		}
		l.Refund(l.Key("k"), 100)
		require.True(t, l.Take("k", 100).Allowed)

		h.advance(3 * time.Minute)
		l.Refund(l.Key("k"), 50)
		require.EqualValues(t, 100, l.Peek(l.Key("k"), 0).Remaining)
		require.True(t, l.Take("k", 100).Allowed)
		require.False(t, l.Allow("k"))
	})
}

// With windows, it matters which requests a refund gives back.
func TestRefundOfWindows(t *testing.T) {
	l, h := newLimiter(t, FixedWindow(10, time.Minute))
	require.True(t, l.Take("k", 10).Allowed)
	h.advance(10 * time.Second)
	l.Refund(l.Key("k"), 10)
	assert.Equal(t, Decision{Allowed: true, Limit: 10, Remaining: 10}, l.Peek(l.Key("k"), 1),
		"nothing was taken in it, so there is no window")

	l, h = newLimiter(t, SlidingWindow(100, time.Minute))
	require.True(t, l.Take("k", 80).Allowed)
	h.advance(55 * time.Second)
	require.True(t, l.Take("k", 30).Allowed)
	l.Refund(l.Key("k"), 10)
	assert.EqualValues(t, 100-60-20, l.Peek(l.Key("k"), 0).Remaining, "of the present window first")
	l.Refund(l.Key("k"), 60)
	assert.EqualValues(t, 100-30, l.Peek(l.Key("k"), 0).Remaining, "20, and 40 of the 80 before")

	l, h = newLimiter(t, SlidingLog(10, time.Minute))
	require.True(t, l.Take("k", 4).Allowed)
	h.advance(10 * time.Second)
	require.True(t, l.Take("k", 4).Allowed)
	l.Refund(l.Key("k"), 5)
	assert.Equal(t, Decision{Allowed: true, Limit: 10, Remaining: 7, ResetAfter: time.Minute}, l.Peek(l.Key("k"), 1),
		"the oldest five")
}

type refusals struct {
	lock sync.Mutex
	all  []refusal
}

type refusal struct {
	k Key
	n uint64
}

func (r *refusals) add(k Key, n uint64) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.all = append(r.all, refusal{k, n})
}

func TestObserveEveryRefusal(t *testing.T) {
	for _, a := range algorithms {
		seen := &refusals{}
		l, h := newLimiter(t, a.policy(10), Observe(seen.add, 1), MaxKeys(1), Shards(1), Overflow(Refuse))
		k, m := l.Key("k"), l.Key("m").Tier(3)
		require.True(t, l.TakeKey(k, 10).Allowed)
		require.True(t, l.TakeKey(k, 0).Allowed)
		require.False(t, l.Peek(k, 1).Allowed)
		require.Empty(t, seen.all, "%s: who passes or asks is not seen", a.name)
		l.AllowKey(k)
		l.Allow("k")
		l.Take("k", 2)
		l.TakeKey(k, 11)
		l.TakeAt(k, 3, h.now())
		l.TakeAt(k, 4, h.now().Add(maxLead+1))
		l.HoldUpTo(k, 5, 9)
		l.HoldUpTo(k, 6, 0)
		l.AllowKey(m)
		l.TakeKey(m, 7)
		require.Equal(t, []refusal{{k, 1}, {k, 1}, {k, 2}, {k, 11}, {k, 3}, {k, 4}, {k, 5}, {k, 6}, {m, 1}, {m, 7}}, seen.all, a.name)
		seen.all = nil
		for i := range uint64(40) { // refusals because there is no room are also observed
			l.AllowKey(l.KeyUint64(i))
		}
		require.NotZero(t, l.Stats().NoRoom)
		require.Len(t, seen.all, int(l.Stats().NoRoom), a.name)
	}
}

func TestObserveASample(t *testing.T) {
	forEach(t, nil, func(t *testing.T, a perMinute, _ *Limiter, _ *hand) {
		seen := &refusals{}
		l, _ := newLimiter(t, a.policy(10), Observe(seen.add, 10))
		require.True(t, l.Take("k", 10).Allowed)
		for range 10_000 {
			l.Take("k", 1)
			l.Allow("k")
		}
		// One of ten refusals is observed on average. Of 20,000, that is 2,000 with a standard deviation of 42.
		assert.InDelta(t, 2000, len(seen.all), 500)
	})
	for _, every := range []int{0, -1, 1<<30 + 1} {
		_, err := New(TokenBucket(PerSecond(1), 5), Observe(new(refusals).add, every))
		assert.ErrorContains(t, err, fmt.Sprintf("engine: Observe of one in %d: want 1 to %d", every, 1<<30))
	}
	_, err := New(TokenBucket(PerSecond(1), 5), Observe(nil, 1))
	assert.ErrorContains(t, err, "engine: Observe(nil): want a function")
}

func TestObserverMayCallTheLimiter(t *testing.T) {
	var l *Limiter
	l, _ = newLimiter(t, FixedWindow(2, time.Minute), Observe(func(k Key, _ uint64) { l.Reset(k) }, 1))
	for i := range 12 {
		assert.Equal(t, i%3 != 2, l.Allow("k"))
	}
}

func TestNoAlgorithmAllocates(t *testing.T) {
	for _, a := range algorithms {
		var seen atomic.Int64
		l, h := newLimiter(t, a.tier(100), Tiers(a.tier(50), a.tier(70)), Observe(func(Key, uint64) { seen.Add(1) }, 1))
		free, paid := l.Key("k"), l.Key("p").Tier(2)
		n := uint64(0)
		for name, f := range map[string]func(){
			"Allow":        func() { l.Allow("some key of ordinary length") },
			"AllowKey":     func() { l.AllowKey(free) },
			"AllowKey, 2":  func() { l.AllowKey(paid) },
			"Take":         func() { l.Take("k", 2) },
			"TakeKey":      func() { l.TakeKey(paid, 2) },
			"TakeAt":       func() { l.TakeAt(paid, 2, h.now()) },
			"too much":     func() { l.TakeKey(paid, 71) },
			"unknown tier": func() { l.TakeKey(free.Tier(7), 1) },
			"Peek":         func() { l.Peek(paid, 3) },
			"Refund":       func() { l.Refund(paid, 1) },
			"Reset":        func() { l.Reset(paid) },
			"a new key":    func() { n++; l.AllowKey(l.KeyUint64(n).Tier(int(n % 3))) },
			"later":        func() { h.advance(time.Second); l.AllowKey(paid) },
			"Sweep":        func() { l.Sweep() },
		} {
			assert.Zero(t, testalloc.PerCall(f), "%s: %s", a.name, name)
		}
		assert.NotZero(t, seen.Load())
	}
}

// Every algorithm has a name and a case in each switch.
func TestEveryAlgorithmHasItsCases(t *testing.T) {
	tested := map[Algorithm]bool{}
	for _, a := range algorithms {
		tested[a.policy(1).Algorithm()] = true
	}
	for _, a := range Algorithms() {
		require.True(t, tested[a], "the list of policies has none of %v", a)
		require.NotEmpty(t, a.String())
	}
	require.Equal(t, "Algorithm(200)", Algorithm(200).String())
	require.Len(t, Algorithms(), len(algorithmNames)-1)
	next := Policy{algorithm: Algorithm(len(algorithmNames)), limit: 1, window: time.Minute}
	require.Panics(t, func() { _ = next.String() })
	require.Panics(t, func() { next.Rate() })
	require.Panics(t, func() { next.Window() })
	require.Panics(t, func() { _, _ = next.build(1) })
}
