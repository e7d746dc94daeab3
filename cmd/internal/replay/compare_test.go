package replay

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limitertest/check"
)

// A contestant is a policy with its promise. It has the expected figures, which are known beforehand.
type contestant struct {
	policy  engine.Policy
	promise check.Promise
	want    figures
}

type figures struct {
	allowed, refused uint64
	keys             int // keys with a refusal
	excess           uint64
}

func contestants(limit uint64, window time.Duration, want [6]figures) []contestant {
	rate := engine.Per(float64(limit), window)
	return []contestant{
		{engine.TokenBucket(rate, limit), check.Bucket, want[0]},
		{engine.BatchRefill(limit, window, 2*limit), check.BatchRefill, want[1]},
		{engine.FixedWindow(limit, window), check.FixedWindow, want[2]},
		{engine.FixedWindow(limit, window).Aligned(), check.AlignedWindow, want[3]},
		{engine.SlidingWindow(limit, window), check.SlidingEstimate, want[4]},
		{engine.SlidingLog(limit, window), check.SlidingExact, want[5]},
	}
}

// TestEveryDecisionOnARealLog: for each algorithm, an exact model of its promise checks each decision. The figures of
// the report must match the decisions, and numbers known beforehand. The log is an excerpt. WEIR_ACCESS_LOG may name
// the complete log, which is then tested, too.
func TestEveryDecisionOnARealLog(t *testing.T) {
	type golden struct {
		limit  uint64
		window time.Duration
		want   [6]figures
	}
	logs := map[string][]golden{"testdata/apache_access_excerpt.log": {
		{10, time.Minute, [6]figures{{446, 54, 5, 9}, {452, 48, 5, 10}, {392, 108, 7, 0}, {392, 108, 7, 0},
			{392, 108, 7, 0}, {392, 108, 7, 0}}},
		{6, 15 * time.Second, [6]figures{{480, 20, 3, 5}, {485, 15, 3, 7}, {460, 40, 7, 3}, {461, 39, 6, 4},
			{456, 44, 6, 2}, {454, 46, 7, 0}}},
		{5, 10 * time.Second, [6]figures{{488, 12, 3, 4}, {495, 5, 2, 6}, {472, 28, 5, 2}, {477, 23, 5, 4},
			{467, 33, 5, 2}, {467, 33, 5, 0}}},
	}}
	if whole := os.Getenv("WEIR_ACCESS_LOG"); whole != "" {
		logs[whole] = []golden{
			{10, time.Minute, [6]figures{{8987, 1013, 54, 9}, {9069, 931, 50, 10}, {8271, 1729, 79, 0},
				{8271, 1729, 79, 0}, {8271, 1729, 79, 0}, {8271, 1729, 79, 0}}},
			{6, 15 * time.Second,
				[6]figures{{9436, 564, 41, 5}, {9531, 469, 33, 9}, {9151, 849, 64, 5}, {9200, 800, 60, 6},
					{9103, 897, 61, 3}, {9079, 921, 67, 0}}},
			{5, 10 * time.Second,
				[6]figures{{9587, 413, 35, 4}, {9663, 337, 20, 10}, {9328, 672, 57, 4}, {9378, 622, 54, 5},
					{9256, 744, 58, 2}, {9243, 757, 61, 0}}},
		}
	}
	for path, goldens := range logs {
		for _, g := range goldens {
			t.Run(fmt.Sprintf("%s at %d in %v", path, g.limit, g.window), func(t *testing.T) {
				file, err := os.Open(path)
				require.NoError(t, err)
				defer file.Close()
				checkDecisions(t, accesslog.NewLog(file), g.limit, g.window,
					contestants(g.limit, g.window, g.want))
			})
		}
	}
}

type known struct {
	checker *check.Checker
	times   map[string][]int64 // times of admitted requests
	stopped map[string]bool    // keys that were refused at least once
	figures
}

func checkDecisions(t *testing.T, log *accesslog.Log, limitTo uint64, window time.Duration, all []contestant) {
	t.Helper()
	r, err := newRun(byAddress(), attempt{room: fullRoom, asLogged: true}, window)
	require.NoError(t, err)
	defer r.close()
	seen := make([]known, len(all))
	for i, c := range all {
		require.NoError(t, r.add(c.policy, newLimiter))
		checker, err := check.New(check.Limit{Tokens: limitTo, Per: window, Burst: c.policy.Limit()}, c.promise)
		require.NoError(t, err)
		seen[i] = known{checker: checker, times: map[string][]int64{}, stopped: map[string]bool{}}
	}
	require.NoError(t, r.read(log, func(e *accesslog.Entry, now time.Time) error {
		before := make([]uint64, len(all))
		for i := range all {
			before[i] = r.trials[i].outcome.Allowed
		}
		require.NoError(t, r.take(e, now))
		host := string(e.Client)
		for i, c := range all {
			k := &seen[i]
			event := check.Event{At: time.Duration(now.UnixNano()), Key: host, N: 1,
				Allowed: r.trials[i].outcome.Allowed > before[i]}
			require.Equal(t, check.Verdict{}, k.checker.Add(event), "%v: %v", c.policy, event)
			if event.Allowed {
				k.allowed++
				k.times[host] = append(k.times[host], now.UnixNano())
			} else {
				k.refused++
				k.stopped[host] = true
			}
		}
		return nil
	}, r.takeAsLogged))
	got := r.compare(&limit.Comparison{Limit: limitTo, Window: window, MaxKeys: maxKeys})
	for i, c := range all {
		k, o := seen[i], got.Outcomes[i]
		for _, times := range k.times {
			k.excess = max(k.excess, worst(times, limitTo, window))
		}
		k.keys = len(k.stopped)
		figures := figures{o.Allowed, o.Refused, len(o.RefusedKeys), o.WorstExcess}
		assert.Equal(t, k.figures, figures, "%v against the checked decisions", c.policy)
		assert.Equal(t, c.want, figures, "%v against known numbers", c.policy)
		assert.Empty(t, o.EvictionNote())
		if c.policy == engine.SlidingLog(limitTo, window) {
			assert.Zero(t, o.WorstExcess, "the log is exact")
		}
	}
}

const maxKeys = 10_000

func newLimiter(p engine.Policy, room int, more ...engine.Option) (*engine.Limiter, error) {
	return engine.New(p, append(more, engine.MaxKeys(min(room, maxKeys)))...)
}

func compare(t *testing.T, log string, limitTo uint64, window time.Duration, policies ...engine.Policy) *Comparison {
	t.Helper()
	c := &limit.Comparison{Policies: policies, Limit: limitTo, Window: window, MaxKeys: maxKeys}
	got, err := Compare(c, newLimiter, accesslog.NewLog(strings.NewReader(log)))
	require.NoError(t, err)
	return got
}

func TestTheExcessIsThatOfTheFullestWindow(t *testing.T) {
	// Requests one second apart share no window of one second.
	log := line("a", 0) + line("a", 1) + line("a", 2)
	perSecond := compare(t, log, 1, time.Second, engine.FixedWindow(1, time.Second))
	assert.Zero(t, perSecond.Outcomes[0].WorstExcess)

	// At the boundary between two fixed windows, twice the limit can be admitted.
	log = line("a", 0) + strings.Repeat(line("b", 5), 3) + strings.Repeat(line("a", 9), 3) +
		strings.Repeat(line("a", 10), 5) + line("c", 30) + strings.Repeat(line("a", 99), 9)
	edge := compare(t, log, 4, 10*time.Second,
		engine.FixedWindow(4, 10*time.Second), engine.SlidingLog(4, 10*time.Second))
	assert.Equal(t, uint64(3), edge.Outcomes[0].WorstExcess, "3 at second 9 and 4 at second 10")
	assert.Zero(t, edge.Outcomes[1].WorstExcess)
	assert.Equal(t, []Key{{"a", 18, 6}}, edge.Outcomes[0].RefusedKeys)
	assert.Equal(t, uint64(3), edge.Keys)
}

func TestASpanHoldsOneWindowOnly(t *testing.T) {
	var s span
	begin := time.Unix(1_000_000_000, 0)
	for i := range 10_000 {
		s.add(begin.Add(time.Duration(i/3)*time.Second), time.Minute)
		require.LessOrEqual(t, len(s.runs), 60)
		require.LessOrEqual(t, cap(s.runs), 128)
	}
	assert.Equal(t, uint64(180), s.fullest)
	s.add(begin.Add(24*time.Hour), time.Minute)
	assert.Len(t, s.runs, 1)
	assert.Equal(t, uint64(1), s.current)
}

func TestCompareTellsTheMemoryOfAKey(t *testing.T) {
	c := compare(t, line("a", 0), 10, time.Minute, engine.FixedWindow(10, time.Minute),
		engine.SlidingLog(10, time.Minute))
	assert.InDelta(t, 27, c.Outcomes[0].BytesPerKey, 1)
	assert.InDelta(t, (16+8*10)/0.6, c.Outcomes[1].BytesPerKey, 3)
}

func TestCompareLeavesOutWhatTheEngineDoesNotMake(t *testing.T) {
	tooLarge := engine.SlidingLog(5000, time.Hour)
	c := compare(t, line("a", 0), 5000, time.Hour, tooLarge, engine.FixedWindow(5000, time.Hour))
	require.Len(t, c.Outcomes, 1)
	assert.Equal(t, uint64(1), c.Outcomes[0].Allowed)
	require.Len(t, c.LeftOut, 1)
	assert.Equal(t, "sliding log 5000/1h0m0s: limit of 5000 tokens every 1h0m0s: want 1 to 4096 tokens",
		c.LeftOut[0].String())

	_, err := Compare(&limit.Comparison{Policies: []engine.Policy{tooLarge, {}}}, newLimiter,
		accesslog.NewLog(strings.NewReader(line("a", 0))))
	assert.ErrorContains(t, err, "limit of 5000 tokens", "nothing is left")
}

func TestCompareRefusesAnInputWithoutRequests(t *testing.T) {
	policies := []engine.Policy{engine.FixedWindow(1, time.Second)}
	_, err := Compare(&limit.Comparison{Policies: policies}, newLimiter, accesslog.NewLog(strings.NewReader("")))
	assert.ErrorContains(t, err, "the log is empty")
}

func TestCompareSaysWhenItForgot(t *testing.T) {
	var log strings.Builder
	for i := range 1000 {
		log.WriteString(line(fmt.Sprintf("host%d", i), 0))
	}
	c := &limit.Comparison{Policies: []engine.Policy{engine.FixedWindow(1, time.Minute)}, Limit: 1,
		Window: time.Minute, MaxKeys: 1}
	got, err := Compare(c, func(p engine.Policy, _ int, more ...engine.Option) (*engine.Limiter, error) {
		return engine.New(p, append(more, engine.MaxKeys(1))...)
	}, accesslog.NewLog(strings.NewReader(log.String())))
	require.NoError(t, err)
	assert.Contains(t, got.EvictionNote(), "with a larger --max-keys")
}

// worst returns by how much the requests of a key exceed the limit in the fullest window. It tries only windows that
// begin with a request, because the fullest is among them.
func worst(times []int64, limit uint64, window time.Duration) uint64 {
	most := limit
	for i := range times {
		inside := uint64(0)
		for _, at := range times[i:] {
			if at-times[i] < int64(window) {
				inside++
			}
		}
		most = max(most, inside)
	}
	return most - limit
}
