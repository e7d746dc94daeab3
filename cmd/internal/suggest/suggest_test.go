package suggest

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/replay"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/trace"
)

func traceOf(t *testing.T, requests ...trace.Request) *trace.Trace {
	t.Helper()
	all := &trace.Trace{}
	t.Cleanup(func() { require.NoError(t, all.Close()) })
	for _, r := range requests {
		require.NoError(t, all.Add(r))
	}
	return all
}

func at(seconds ...int) (all []trace.Request) {
	for _, s := range seconds {
		all = append(all, trace.Request{UnixNano: int64(1_700_000_000+s) * 1e9, Cost: 1})
	}
	return all
}

func rule(t *testing.T, settings string) *rulefile.Rule {
	t.Helper()
	f, err := rulefile.Parse("weir.yaml", []byte("rules: [{name: a, "+settings+"}]"))
	require.NoError(t, err)
	return &f.Rules[0]
}

func find(t *testing.T, settings string, goal Goal, requests ...trace.Request) *Suggestion {
	t.Helper()
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint("key", i)
	}
	s, err := Find(rule(t, settings), traceOf(t, requests...), names, goal, nil)
	require.NoError(t, err)
	return s
}

// crowd returns requests of keys within 20 minutes. Each key has three requests within a second. The first key has one
// more at the end. The last key is different: it has as many requests as last says, one per second from the start.
func crowd(keys, last int) (all []trace.Request) {
	for i := range 1200 {
		if i%10 == 0 && i/10 < keys-1 {
			for range 3 {
				all = append(all, at(i)...)
				all[len(all)-1].Key = uint32(i / 10)
			}
		}
		if i < last {
			all = append(all, at(i)...)
			all[len(all)-1].Key = uint32(keys - 1)
		}
	}
	return append(all, at(1199)...)
}

// TestAbusiveKeys: a limit of three tokens at once is enough for 99 of 100 keys. The suggested limit is twice that
// limit.
func TestAbusiveKeys(t *testing.T) {
	s := find(t, "rate: 1/s", Goal{Abusive: true}, crowd(101, 100)...)
	require.NotNil(t, s.Point())
	assert.Equal(t, "rate: 6/m, burst: 6", s.Point().Settings())
	assert.Equal(t, "2 times 3/m, which is enough for 99 of 100 keys of a day", s.Reason)
	// Six requests pass at once, and then one passes every ten seconds. So in 100 seconds, 15 requests pass.
	assert.Equal(t, uint64(85), s.Refused)
	start := time.Unix(1_700_000_000, 0).UTC()
	assert.Equal(t, []Affected{{"key100", 100, 85, 9 * time.Second, start.Add(6 * time.Second)}}, round(s.Affected))

	s = find(t, "rate: 1/s", Goal{Abusive: true}, crowd(101, 5)...)
	assert.Equal(t, "rate: 6/m, burst: 6", s.Point().Settings(), "whether anyone is abusive or not")
	assert.Empty(t, s.Affected)
}

func round(all []Affected) []Affected {
	for i := range all {
		all[i].LongestWait = all[i].LongestWait.Round(time.Second)
	}
	return all
}

// TestAShareOfKeys: Find returns the lowest limit that refuses at most the given percentage of keys. A key with many
// requests counts as one key.
func TestAShareOfKeys(t *testing.T) {
	for percent, want := range map[float64]string{0: "rate: 40/m, burst: 40", 1: "rate: 3/m, burst: 3", 50: "rate: 3/m, burst: 3"} {
		s := find(t, "rate: 1/s", Goal{Percent: percent}, crowd(101, 100)...)
		require.NotNil(t, s.Point())
		assert.Equal(t, want, s.Point().Settings(), percent)
		assert.LessOrEqual(t, float64(s.Point().Refused), percent/100*101)
		if best := s.Curves[s.Best].Best; best > 0 {
			assert.Greater(t, float64(s.Curves[s.Best].Points[best-1].Refused), percent/100*101)
		}
	}
	all := find(t, "rate: 1/s", Goal{Percent: 99.5}, crowd(101, 100)...)
	assert.Equal(t, "rate: 3/m, burst: 3", all.Point().Settings(), "100 may be refused, and less would refuse all")
	tiered := crowd(101, 100)
	for i := range tiered {
		if tiered[i].Key == 100 {
			tiered[i].Tier = 1
		}
	}
	s := find(t, "rate: 1/s", Goal{}, tiered...)
	assert.Equal(t, "rate: 3/m, burst: 3", s.Point().Settings(), "tier 1 has a limit of its own")
	assert.Equal(t, uint64(100), s.Keys)
}

// TestAKeyCountsOnceADay: if the same requests are repeated on more days, the result does not change.
func TestAKeyCountsOnceADay(t *testing.T) {
	var requests []trace.Request
	for day := range 9 {
		for _, q := range crowd(50, 100) {
			q.UnixNano += int64(day) * 86_400e9
			requests = append(requests, q)
		}
	}
	s := find(t, "rate: 1/s", Goal{Percent: 2}, requests...)
	assert.Equal(t, []uint64{50, 9 * 50}, []uint64{s.Keys, s.KeyDays})
	assert.Equal(t, "rate: 3/m, burst: 3", s.Point().Settings())
	assert.Equal(t, uint64(9), s.Point().Refused, "one key on each day")
	assert.Len(t, s.Affected, 1)
}

// TestPeriods: a period is at most a tenth of the length of the log. The rule's own period is one of the periods.
func TestPeriods(t *testing.T) {
	of := func(settings string, span int) (all []string, s *Suggestion) {
		s = find(t, settings, Goal{}, append(at(0, 0), at(span)...)...)
		for i := range s.Curves {
			all = append(all, s.Curves[i].Point().Settings())
		}
		return all, s
	}
	all, s := of("rate: 1/s", 24*3600*10)
	assert.Equal(t, []string{"rate: 2/10s, burst: 2", "rate: 2/m, burst: 2", "rate: 2/10m0s, burst: 2", "rate: 2/h, burst: 2",
		"rate: 2/d, burst: 2"}, all)
	assert.Equal(t, time.Minute, s.Curves[s.Best].Period)
	all, s = of("rate: 1/s", 598)
	assert.Equal(t, []string{"rate: 2/10s, burst: 2"}, all, "a minute is not a tenth of that")
	assert.Equal(t, 10*time.Second, s.Curves[s.Best].Period)
	_, s = of("rate: 1/s", 98)
	assert.Nil(t, s.Point())
	assert.Equal(t, "the log covers 1m38s: no period is a tenth of that", s.Reason)
	_, s = of("rate: 9/h, algorithm: fixed-window", 599)
	assert.Nil(t, s.Point())
	assert.Equal(t, "the log covers 9m59s: a limit for 1h0m0s needs ten times its period", s.Reason)
	all, s = of("rate: 9/2m, algorithm: sliding-log", 5999)
	assert.Equal(t, []string{"rate: 2/10s", "rate: 2/m", "rate: 2/2m0s", "rate: 2/10m0s"}[:len(all)], all)
	assert.Equal(t, "rate: 2/2m0s", s.Point().Settings())
	_, s = of("rate: 9/2m, algorithm: batch-refill", 5999)
	assert.Equal(t, "rate: 2/2m0s, burst: 2", s.Point().Settings())
}

func TestWhereThereIsNothingToSuggest(t *testing.T) {
	s := find(t, "rate: 1/s", Goal{Abusive: true})
	assert.Equal(t, "the rule counts no request of this log", s.Reason)
	assert.Nil(t, s.Point())
	var out strings.Builder
	require.NoError(t, s.WriteTable(&out, "a"))
	assert.Equal(t, "\na: limits that refuse abusive keys only\n0 requests of 0 keys; 0 if each counts once for each day (UTC) on "+
		"which it came\n\nno suggestion for a: the rule counts no request of this log\n", out.String())

	s = find(t, "rate: 1/s", Goal{Abusive: true}, crowd(99, 3)...)
	assert.Equal(t, "1 % of the 99 keys of a day are less than one: a log of 100 or more is needed", s.Reason)
	for _, percent := range []float64{-1, 100, 1e9} {
		_, err := Find(rule(t, "rate: 1/s"), traceOf(t, at(0)...), nil, Goal{Percent: percent}, nil)
		assert.ErrorContains(t, err, "want 0 up to, not including, 100")
	}
	s = find(t, "rate: 1/d, algorithm: sliding-log", Goal{}, append(at(make([]int, 5000)...), at(864_000)...)...)
	assert.Equal(t, "the engine has no limit of this kind for 24h0m0s that reaches the goal", s.Reason, "it ends at 4,096")
	assert.Empty(t, s.Curves)
}

func TestCostsAndRefunds(t *testing.T) {
	requests := at(0, 0, 0, 600)
	for i := range requests {
		requests[i].Cost = 3
	}
	assert.Equal(t, "rate: 9/m, burst: 9", find(t, "rate: 1/s, burst: 3, cost: 3", Goal{}, requests...).Point().Settings())
	for i := range requests {
		requests[i].Refund = true
	}
	assert.Equal(t, "rate: 3/m, burst: 3", find(t, "rate: 1/s, burst: 3, cost: 3", Goal{}, requests...).Point().Settings())
}

func TestAmounts(t *testing.T) {
	assert.Equal(t, []uint64{4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30}, amounts(4, 14))
	assert.Equal(t, []uint64{100, 120, 150, 200, 250}, amounts(100, 101))
	assert.Equal(t, []uint64{1, 2}, amounts(1, 1))
	assert.NotPanics(t, func() { amounts(1, math.MaxUint64) })
}

// logs runs a test with the excerpt of a log. WEIR_ACCESS_LOG may name the complete log; the test then runs with this
// log, too.
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

func run(t *testing.T, f *rulefile.File, log string) *replay.RuleReport {
	t.Helper()
	source, err := accesslog.Open([]string{log}, "")
	require.NoError(t, err)
	defer source.Close()
	r, err := replay.RunRules(f, replay.RulesOptions{Trace: true}, source)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return &r.Rules[0]
}

// TestASuggestionHoldsWhenTheLogIsReplayed: a replay of the log under the suggested limit refuses as many requests as
// the suggestion predicts. This is tested with the complete program and every algorithm.
func TestASuggestionHoldsWhenTheLogIsReplayed(t *testing.T) {
	logs(t, func(t *testing.T, log string) {
		for _, settings := range []string{
			"rate: 1/s", "rate: 1/m, algorithm: batch-refill", "rate: 1/m, algorithm: fixed-window", "rate: 1/m, " +
				"algorithm: fixed-window, aligned: true",
			"rate: 1/m, algorithm: sliding-window", "rate: 1/m, algorithm: sliding-log",
		} {
			file, err := rulefile.Parse("weir.yaml", []byte("rules: [{name: a, max_keys: 5000, "+settings+"}]"))
			require.NoError(t, err)
			report := run(t, file, log)
			for _, goal := range []Goal{{Percent: 1}, {Percent: 5}, {Abusive: true}} {
				s, err := Find(&file.Rules[0], report.Trace, report.Names, goal, nil)
				require.NoError(t, err)
				best := s.Point()
				require.NotNil(t, best, settings)
				_, rest, _ := strings.Cut(settings, ",")
				again, err := rulefile.Parse("weir.yaml", []byte("rules: [{name: a, max_keys: 5000, "+best.Settings()+","+rest+"}]"))
				require.NoError(t, err)
				r := run(t, again, log)
				assert.Equal(t, s.Refused, r.Refused, "%s: %s", settings, best.Settings())
				assert.GreaterOrEqual(t, best.Refused, uint64(len(r.RefusedKeys)), "a key counts for each day")
				assert.Len(t, s.Affected, min(maxAffected, len(r.RefusedKeys)))
				for i, a := range s.Affected {
					assert.Equal(t, r.RefusedKeys[i], replay.Key{Name: a.Key, Requests: a.Requests, Refused: a.Refused})
				}
			}
		}
	})
}

// TestASuggestionIsThatOfHalfOfTheLog: half of the log, and a quarter of it, give the same suggestion as the complete
// log. The excerpt is too short for this test.
func TestASuggestionIsThatOfHalfOfTheLog(t *testing.T) {
	logs(t, func(t *testing.T, log string) {
		if log != os.Getenv("WEIR_ACCESS_LOG") {
			t.Skip("an excerpt")
		}
		source, err := accesslog.Open([]string{log}, "")
		require.NoError(t, err)
		defer source.Close()
		file := rulefile.Single(*rule(t, "rate: 1/s"))
		r, err := replay.RunRules(file, replay.RulesOptions{Trace: true}, source)
		require.NoError(t, err)
		defer r.Close()
		all := r.Rules[0].Trace
		for _, goal := range []Goal{{Abusive: true}, {Percent: 1}} {
			want, err := Find(&file.Rules[0], all, r.Rules[0].Names, goal, nil)
			require.NoError(t, err)
			for parts := uint64(2); parts <= 4; parts++ {
				for i := range parts {
					part := &trace.Trace{}
					reader, q := all.Read(), trace.Request{}
					for n := uint64(0); reader.Next(&q); n++ {
						if n*parts/all.Requests == i {
							require.NoError(t, part.Add(q))
						}
					}
					got, err := Find(&file.Rules[0], part, r.Rules[0].Names, goal, nil)
					require.NoError(t, err)
					assert.Equal(t, want.Point().Settings(), got.Point().Settings(), "%v: %d of %d", goal, i+1, parts)
				}
			}
		}
	})
}
