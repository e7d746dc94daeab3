package suggest

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/config"
	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/cmd/internal/replay"
	"github.com/weir-go/weir/cmd/internal/trace"
	"github.com/weir-go/weir/engine"
)

// traceOf returns the trace of requests.
func traceOf(t *testing.T, requests ...trace.Request) *trace.Trace {
	t.Helper()
	all := &trace.Trace{}
	t.Cleanup(func() { require.NoError(t, all.Close()) })
	for _, r := range requests {
		require.NoError(t, all.Add(r))
	}
	return all
}

// at returns requests of one key at those seconds.
func at(seconds ...int) (all []trace.Request) {
	for _, s := range seconds {
		all = append(all, trace.Request{UnixNano: int64(1_700_000_000+s) * 1e9, Cost: 1})
	}
	return all
}

// rule returns the rule of those settings.
func rule(t *testing.T, settings string) *config.Rule {
	t.Helper()
	f, err := config.Parse("weir.yaml", []byte("rules: [{name: a, "+settings+"}]"))
	require.NoError(t, err)
	return &f.Rules[0]
}

func find(t *testing.T, settings string, percent float64, requests ...trace.Request) *Curve {
	t.Helper()
	c, err := Find(rule(t, settings), traceOf(t, requests...), Goal{Percent: percent}, nil)
	require.NoError(t, err)
	return c
}

func points(c *Curve) (all []string) {
	for i := range c.Points {
		p := &c.Points[i]
		text := fmt.Sprintf("%v/%s refuses %d", p.Rate, p.Across(), p.Refused)
		if p.HasLower() {
			text += fmt.Sprintf(", %v refuses %d", p.Lower, p.LowerRefused)
		}
		all = append(all, text)
	}
	return all
}

// Two requests at once and then one a minute: with one token at a time half of the first pair is
// refused at any rate, with two tokens the third request needs one back within a minute.
func TestASuggestionWorkedOutByHand(t *testing.T) {
	minutely := at(0, 0, 60, 120, 180)
	assert.Equal(t, []string{
		"60/h/2 refuses 0, 59/h refuses 1",
		"40/h/3 refuses 0, 39/h refuses 1",
		"20/h/4 refuses 0, 19/h refuses 1",
		"1/d/5 refuses 0",
	}, points(find(t, "rate: 1/s", 0, minutely...)))
	one := find(t, "rate: 1/s", 20, minutely...)
	assert.Equal(t, "60/h/1 refuses 1, 59/h refuses 3", points(one)[0], "one of five may be refused")

	windows := find(t, "rate: 9/m, algorithm: sliding-log", 0, minutely...)
	assert.Equal(t, []string{
		"2/s/1s refuses 0, 1/s refuses 1",
		"2/10s/10s refuses 0, 1/10s refuses 1",
		"2/m/1m0s refuses 0, 1/m refuses 1",
	}, points(windows))
	assert.Equal(t, 2, windows.Best)
	assert.Equal(t, "rate: 2/m", windows.Points[2].Settings())

	batches := find(t, "rate: 9/m, algorithm: batch-refill", 0, minutely...)
	assert.Equal(t, "1/m/2 refuses 0", points(batches)[0])
}

func TestWhereThereIsNothingToSuggest(t *testing.T) {
	c := find(t, "rate: 1/s", 1)
	assert.Equal(t, "the rule counts no request of this log", c.Reason)
	assert.Equal(t, -1, c.Best)
	var out strings.Builder
	require.NoError(t, c.WriteTable(&out, "a"))
	assert.Equal(t, "\na: at most 1 % of 0 requests of 0 keys refused\nno suggestion: the rule counts no request of "+
		"this log\n", out.String())

	for _, percent := range []float64{-1, 100, 1e9} {
		_, err := Find(rule(t, "rate: 1/s"), traceOf(t, at(0)...), Goal{Percent: percent}, nil)
		assert.ErrorContains(t, err, "want 0 up to, not including, 100")
	}
	c = find(t, "rate: 1/s", 0, at(7)...)
	assert.Equal(t, []string{"1/d/1 refuses 0"}, points(c))
	assert.Equal(t, "the lowest rate that was found; but the log is too short for it: these requests are of 1s, and this "+
		"is a limit for 24h0m0s", c.Reason)
}

// A burst that is enough for the whole log says nothing about a rate, so it is not recommended where
// there is anything else.
func TestABurstThatIsEnoughIsNotRecommended(t *testing.T) {
	c := find(t, "rate: 1/s", 0, at(0, 0, 0, 0, 100, 100, 100, 100)...)
	last := len(c.Points) - 1
	require.Positive(t, last)
	require.Zero(t, c.Points[last].Lower)
	assert.Less(t, c.Best, last)
	assert.NotZero(t, c.Points[c.Best].Lower)
	assert.Contains(t, c.Reason, "is enough by itself")
}

func TestCostsAndTiersAndRefunds(t *testing.T) {
	requests := at(0, 0, 0, 0)
	for i := range requests {
		requests[i].Cost = 3
	}
	requests[3].Tier = 1
	c := find(t, "rate: 1/s, burst: 3, cost: 3", 0, requests...)
	assert.Equal(t, uint64(3), c.Requests, "tier 1 has a limit of its own")
	assert.Equal(t, []string{"1/d/9 refuses 0"}, points(c))
	for i := range requests {
		requests[i].Refund = true
	}
	assert.Equal(t, uint64(3), find(t, "rate: 1/s", 0, requests...).Points[0].Burst)
}

func TestALimitThatTheEngineDoesNotMake(t *testing.T) {
	c := find(t, "rate: 1/d, algorithm: sliding-log", 50, at(make([]int, 5000)...)...)
	assert.Equal(t, []string{"2500/d/24h0m0s refuses 2500, 2499/d refuses 2501"}, points(c))
	c = find(t, "rate: 1/d, algorithm: sliding-log", 1, at(make([]int, 5000)...)...)
	assert.Equal(t, "no limit of this kind refuses at most 1 % of the requests", c.Reason, "it ends at 4,096")
}

func TestScales(t *testing.T) {
	for i := 1; i < len(rates); i++ {
		assert.Greater(t, rates[i].PerSecond(), rates[i-1].PerSecond(), "%v after %v", rates[i], rates[i-1])
		if rates[i-1].PerSecond() > engine.PerHour(1).PerSecond() {
			assert.LessOrEqual(t, rates[i].PerSecond(), 1.25*rates[i-1].PerSecond(), "%v after %v", rates[i], rates[i-1])
		}
	}
	assert.Equal(t, []uint64{4, 5, 6, 7, 8, 9, 10, 12, 15}, bursts(4, 14))
	assert.Equal(t, []uint64{100, 120}, bursts(100, 101))
	s := whole(time.Minute, 100_000,
		func(r engine.Rate) step { return step{Numbers: limit.Numbers{Rate: r}} })
	assert.Equal(t, 100_000., s[len(s)-1].Rate.Tokens())
	assert.Equal(t, 1., s[0].Rate.Tokens())
}

// logs are the excerpt, and the whole log where WEIR_ACCESS_LOG names it.
func logs(t *testing.T, test func(t *testing.T, log string)) {
	for name, log := range map[string]string{
		"excerpt": "../replay/testdata/apache_access_excerpt.log", "whole": os.Getenv("WEIR_ACCESS_LOG"),
	} {
		t.Run(name, func(t *testing.T) {
			if log == "" {
				t.Skip("WEIR_ACCESS_LOG names no log")
			}
			test(t, log)
		})
	}
}

func run(t *testing.T, f *config.File, log string) *replay.RuleReport {
	t.Helper()
	source, err := accesslog.Open([]string{log}, "")
	require.NoError(t, err)
	defer source.Close()
	r, err := replay.RunRules(f, replay.RulesOptions{Trace: true}, source)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return &r.Rules[0]
}

// What is suggested for a log refuses at most the share of it, replayed through the whole program,
// and the next lower rate more; and every other algorithm keeps to that as well.
func TestASuggestionHoldsWhenTheLogIsReplayed(t *testing.T) {
	logs(t, func(t *testing.T, log string) {
		for _, settings := range []string{
			"rate: 1/s", "rate: 1/s, algorithm: batch-refill", "rate: 1/m, algorithm: fixed-window", "rate: 1/m, " +
				"algorithm: fixed-window, aligned: true",
			"rate: 1/m, algorithm: sliding-window", "rate: 1/m, algorithm: sliding-log",
		} {
			file, err := config.Parse("weir.yaml", []byte("rules: [{name: a, max_keys: 5000, "+settings+"}]"))
			require.NoError(t, err)
			report := run(t, file, log)
			for _, percent := range []float64{0.5, 5} {
				c, err := Find(&file.Rules[0], report.Trace, Goal{Percent: percent}, nil)
				require.NoError(t, err)
				require.GreaterOrEqual(t, c.Best, 0, settings)
				best := c.Points[c.Best]
				refused := func(rate engine.Rate) uint64 {
					base, _, _ := strings.Cut(strings.TrimPrefix(settings, "rate: "), ",")
					text := strings.Replace(settings, base, rate.String(), 1)
					if best.Burst > 0 {
						text += fmt.Sprintf(", burst: %d", best.Burst)
					}
					again, err := config.Parse("weir.yaml", []byte("rules: [{name: a, max_keys: 5000, "+text+"}]"))
					require.NoError(t, err)
					return run(t, again, log).Refused
				}
				allowed := percent / 100 * float64(c.Requests)
				assert.LessOrEqual(t, float64(best.Refused), allowed, "%s: %s", settings, best.Settings())
				assert.Equal(t, best.Refused, refused(best.Rate), "%s: %s", settings, best.Settings())
				if best.HasLower() {
					assert.Greater(t, float64(best.LowerRefused), allowed)
					assert.Equal(t, best.LowerRefused, refused(best.Lower))
				}
			}
		}
	})
}

// The lowest rate of a burst is the lowest of all: every lower one is tried.
func TestNoLowerRateWouldDo(t *testing.T) {
	file := config.Single(*rule(t, "rate: 1/s"))
	report := run(t, file, "../replay/testdata/apache_access_excerpt.log")
	c, err := Find(&file.Rules[0], report.Trace, Goal{Percent: 2}, nil)
	require.NoError(t, err)
	r, err := newRequests(report.Trace, false)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(c.Points), 3)
	var candidates []*candidate
	for _, p := range c.Points {
		for _, rate := range rates {
			if rate.PerSecond() >= p.Rate.PerSecond() {
				break
			}
			q, err := newCandidate(engine.TokenBucket(rate, p.Burst), all)
			require.NoError(t, err)
			candidates = append(candidates, q)
		}
	}
	require.NoError(t, r.try(candidates))
	for _, q := range candidates {
		assert.Greater(t, float64(q.refused), 0.02*float64(c.Requests), "%+v", q.quota)
	}
}

func TestTheKneeIsTheFarthestBelowTheLine(t *testing.T) {
	c := &Curve{Points: []Point{
		{Rate: engine.PerSecond(100), Burst: 1}, {Rate: engine.PerSecond(90), Burst: 2},
		{Rate: engine.PerSecond(2), Burst: 5}, {Rate: engine.PerSecond(1), Burst: 100, Lower: engine.PerSecond(0.5)},
	}}
	c.choose(0, 1000*time.Hour)
	assert.Equal(t, 2, c.Best)
	assert.Equal(t, "the knee of the curve: a burst of 2 needs 45.0 times the rate, a burst of 100 still needs 0.50 "+
		"of it", c.Reason)
}

// TestWhatTheLogDoesNotSupportIsNotRecommended: a limit is about a tenth of the time of the log at most, if there is
// such a one.
func TestWhatTheLogDoesNotSupportIsNotRecommended(t *testing.T) {
	var points []Point
	for burst, rate := range map[uint64]engine.Rate{1: engine.PerMinute(60), 3: engine.PerMinute(30), 100: engine.PerHour(60), 1000: engine.PerHour(50)} {
		points = append(points, Point{Rate: rate, Burst: burst, Policy: engine.TokenBucket(rate, burst), Lower: engine.PerDay(1)})
	}
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.Burst, b.Burst) })
	for span, want := range map[time.Duration]uint64{
		365 * 24 * time.Hour: 100, // the knee
		1000 * time.Minute:   100, // which come back in 100
		999 * time.Minute:    3,
		10 * time.Minute:     3,
		9 * time.Minute:      100, // none is supported: the rates are of minutes
	} {
		c := &Curve{Points: slices.Clone(points)}
		c.choose(0, span-time.Second)
		assert.Equal(t, want, c.Points[c.Best].Burst, span)
		assert.NotContains(t, c.Reason, "enough by itself")
	}
}

// TestKeysInPlaceOfRequests: one client that asks a lot is one.
func TestKeysInPlaceOfRequests(t *testing.T) {
	var requests []trace.Request
	for key := range uint32(10) {
		for second := range 1 + 49*int(key/9) { // the last one asks 50 times
			requests = append(requests, at(second)...)
			requests[len(requests)-1].Key = key
		}
	}
	requests = append(requests, at(100_000)...) // the first one again
	tiered := at(100_000)[0]
	tiered.Key, tiered.Tier = 10, 1
	requests = append(requests, tiered)
	for percent, want := range map[float64]string{10: "1/d/1 refuses 1", 9.9: "1/d/50 refuses 0"} {
		c, err := Find(rule(t, "rate: 1/s"), traceOf(t, requests...), Goal{percent, true}, nil)
		require.NoError(t, err)
		assert.Equal(t, []uint64{60, 10}, []uint64{c.Requests, c.Keys})
		assert.Contains(t, points(c), want)
		assert.LessOrEqual(t, c.Points[0].Share(c.Total()), percent)
		var out strings.Builder
		require.NoError(t, c.WriteTable(&out, "a"))
		assert.Contains(t, out.String(), fmt.Sprintf("a: at most %v %% of 10 keys refused any of their 60 requests\n", percent))
	}
	c, err := Find(rule(t, "rate: 1/s"), traceOf(t, requests...), Goal{10, false}, nil)
	require.NoError(t, err)
	assert.Equal(t, "1/d/50 refuses 0", points(c)[len(c.Points)-1])
	assert.NotContains(t, points(c), "1/d/1 refuses 1")
}
