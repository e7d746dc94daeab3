package envoy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limits/live"
)

const bucket5 = "unit: hour, requests_per_unit: 5, algorithm: token-bucket"

// file returns a file with a rule for each text, such as "a: unit: hour, requests_per_unit: 5" for the key a.
func file(rules ...string) string {
	text := "domain: d\ndescriptors:\n"
	for _, rule := range rules {
		key, limit, _ := strings.Cut(rule, ": ")
		text += fmt.Sprintf("  - key: %s\n    rate_limit: {%s}\n", key, limit)
	}
	return text
}

func admitted(t *testing.T, s *Service, n int, descriptor string) (passed int) {
	t.Helper()
	for range n {
		response, err := s.ShouldRateLimit(context.Background(), asking(t, "d: "+descriptor))
		require.NoError(t, err)
		if strings.HasPrefix(told(response), "OK") {
			passed++
		}
	}
	return passed
}

// TestARuleKeepsItsCounts: counted hits still count under any new limit, and other rules in the same table are not
// affected.
func TestARuleKeepsItsCounts(t *testing.T) {
	limits := map[string]string{
		"bucket":         "unit: hour, requests_per_unit: 10, algorithm: token-bucket",
		"slower bucket":  "unit: day, requests_per_unit: 10, algorithm: token-bucket",
		"window":         "unit: hour, requests_per_unit: 10",
		"longer window":  "unit: day, requests_per_unit: 10",
		"sliding window": "unit: hour, requests_per_unit: 10, algorithm: sliding-window",
		"log":            "unit: hour, requests_per_unit: 10, algorithm: sliding-log",
		"month":          "unit: month, requests_per_unit: 10, zone: Europe/Berlin",
		"day":            "unit: day, requests_per_unit: 10, zone: UTC",
		"batch":          "unit: hour, requests_per_unit: 10, algorithm: batch-refill",
	}
	for from, before := range limits {
		for to, after := range limits {
			t.Run(from+" to "+to, func(t *testing.T) {
				s, _ := newService(t, file("a: "+before, "b: "+before), Options{})
				require.Equal(t, 7, admitted(t, s, 7, "a=x"))
				require.Equal(t, 6, admitted(t, s, 6, "b=x"))
				require.NoError(t, s.SetConfig(compile(t, file("a: "+after, "b: "+before))))
				assert.Equal(t, 2, admitted(t, s, 2, "a=x"))
				for _, limit := range []string{before, "unlimited: true", "unit: hour, requests_per_unit: 0, algorithm: token-bucket"} {
					require.NoError(t, s.SetConfig(compile(t, file("a: "+limit, "b: "+before))))
				}
				require.NoError(t, s.SetConfig(compile(t, file("b: "+before, "a: "+before))))
				assert.Equal(t, 1, admitted(t, s, 5, "a=x"), "and back")
				assert.Equal(t, 10, admitted(t, s, 15, "a=y"), "another counter")
				assert.Equal(t, 4, admitted(t, s, 9, "b=x"), "another rule")
			})
		}
	}
}

// TestPreviousTablesAreBounded: there is a bound on previous tables, per rule and in total. A rule forgets a table in
// which none of its keys can owe anything, even if another rule still counts there.
func TestPreviousTablesAreBounded(t *testing.T) {
	window := func(hours int) string {
		return fmt.Sprintf("unit: hour, unit_multiplier: %d, requests_per_unit: 5, algorithm: sliding-window", hours)
	}
	s, clock := newService(t, file("a: "+window(1), "others: "+window(1)), Options{MaxKeys: 64})
	require.Equal(t, 5, admitted(t, s, 9, "others=x"))
	for i := range live.MaxFormers + 1 {
		require.Equal(t, 1, admitted(t, s, 1, fmt.Sprintf("a=%d", i)))
		rules := []string{"a: " + window(i+2), "others: " + window(1)}
		for j := range i + 1 { // the rules share their previous tables
			rules = append(rules, fmt.Sprintf("other%d: %s", j, window(j+2)))
		}
		err := s.SetConfig(compile(t, file(rules...)))
		if i < live.MaxFormers {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "d.a: keys still owe tokens in 5 previous tables")
		require.Len(t, s.active.Load().rules[0].limiter.Formers().Limiters(), live.MaxFormers)
		clock.set(clock.read().Add(12 * 10 * time.Hour))
		require.Equal(t, 5, admitted(t, s, 9, "others=x"))
		require.NoError(t, s.SetConfig(compile(t, file(rules...))))
		require.Len(t, s.active.Load().rules[0].limiter.Formers().Limiters(), 1)
	}

	var before, after []string
	for i := range maxTables {
		before = append(before, fmt.Sprintf("k%d: %s", i, window(i+1)))
		after = append(after, fmt.Sprintf("k%d: %s, burst: %d", i, bucket5, 1000+i))
	}
	require.NoError(t, s.SetConfig(compile(t, file(before...))))
	for i := range maxTables {
		require.Equal(t, 1, admitted(t, s, 1, fmt.Sprintf("k%d=x", i)))
	}
	require.NoError(t, s.SetConfig(compile(t, file(after...))))
	for i := range maxTables {
		require.Equal(t, 1, admitted(t, s, 1, fmt.Sprintf("k%d=x", i)))
		after[i] += "0"
	}
	require.ErrorContains(t, s.SetConfig(compile(t, file(after...))), " previous tables still have counts: want at most 64")
	assert.Len(t, s.active.Load().rules, maxTables)
}

// TestAResetIsOneInPreviousTables: a reset also clears the counter in previous tables. This includes hits beyond a
// lower new limit.
func TestAResetIsOneInPreviousTables(t *testing.T) {
	s, _ := newService(t, file("a: unit: hour, requests_per_unit: 100, algorithm: token-bucket"), Options{})
	require.Equal(t, 100, admitted(t, s, 100, "a=x"))
	require.NoError(t, s.SetConfig(compile(t, file("a: unit: hour, requests_per_unit: 2, algorithm: token-bucket"))))
	require.Equal(t, 0, admitted(t, s, 1, "a=x"))
	b, err := s.Bucket(s.Config().Rules()[0], asking(t, "d: a=x").GetDescriptors()[0])
	require.NoError(t, err)
	require.NoError(t, b.Reset(context.Background()))
	assert.Equal(t, 2, admitted(t, s, 5, "a=x"))
}

func limitOf(r *rand.Rand, n int) string {
	algorithms := []string{"fixed-window", "token-bucket", "sliding-window", "sliding-log", "batch-refill"}
	return fmt.Sprintf("unit: hour, requests_per_unit: %d, algorithm: %s", n, algorithms[r.IntN(len(algorithms))])
}

// TestChangesGiveNothingAway: however a rule changes, at one instant a key gets at most the largest limit that the rule
// has had. After enough time, the key owes nothing.
func TestChangesGiveNothingAway(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 40))
		most := 1 + r.IntN(40)
		course := []string{limitOf(r, most)}
		s, clock := newService(t, file("a: "+course[0]), Options{})
		passed := admitted(t, s, r.IntN(3*most), "a=x")
		for range 1 + r.IntN(8) {
			limit := r.IntN(40)
			next := limitOf(r, limit)
			if r.IntN(8) == 0 {
				next = "unlimited: true"
			} else {
				most = max(most, limit)
			}
			err := s.SetConfig(compile(t, file("a: "+next)))
			if err != nil { // there are too many previous tables
				require.ErrorContains(t, err, "previous tables")
				continue
			}
			course = append(course, next)
			if next != "unlimited: true" {
				passed += admitted(t, s, r.IntN(3*most), "a=x")
			}
			require.LessOrEqual(t, passed, most, "seed %d: %s", seed, strings.Join(course, "; "))
		}
		clock.set(clock.read().Add(2 * 40 * time.Hour))
		for err := s.SetConfig(compile(t, file("a: "+bucket5))); err != nil; err = s.SetConfig(compile(t, file("a: "+bucket5))) {
			require.ErrorContains(t, err, "previous tables")
			clock.set(clock.read().Add(400 * time.Hour)) // so that the previous tables are forgotten
		}
		require.Equal(t, 5, admitted(t, s, 9, "a=x"), "seed %d: %s", seed, strings.Join(course, "; "))
	}
}

// TestRefusedHitsAreNoDebt: refused hits count only in fixed windows. After a change to another algorithm, a key owes
// only the admitted hits. This holds even if the limit was lower in the meantime.
func TestRefusedHitsAreNoDebt(t *testing.T) {
	const window5 = "unit: hour, requests_per_unit: 5"
	for name, limits := range map[string][]string{
		"a window":                  {window5},
		"a lower one":               {window5, "unit: hour, requests_per_unit: 2"},
		"a shadow of one":           {window5 + "}\n    shadow_mode: true\n    detailed_metric: true # {"},
		"none, then one":            {"unit: hour, requests_per_unit: 0", window5},
		"another window":            {window5, "unit: day, requests_per_unit: 5"},
		"a bucket, a window, lower": {bucket5, "unit: hour, requests_per_unit: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s, clock := newService(t, file("a: "+limits[0]), Options{})
			admitted(t, s, 300, "a=x")
			for _, limit := range limits[1:] {
				require.NoError(t, s.SetConfig(compile(t, file("a: "+limit))))
				admitted(t, s, 300, "a=x")
			}
			require.NoError(t, s.SetConfig(compile(t, file("a: "+bucket5))))
			assert.Equal(t, 0, admitted(t, s, 9, "a=x"))
			clock.set(clock.read().Add(12 * time.Minute))
			assert.Equal(t, 1, admitted(t, s, 9, "a=x"), "after the time of one")
			clock.set(clock.read().Add(time.Hour))
			assert.Equal(t, 5, admitted(t, s, 9, "a=x"), "after the time of all")
		})
	}
}

// TestAMonthOfTheCalendar: a month with a time zone begins on the 1st in that zone, even for counters that count
// refused hits. A month without a zone has 30 days, even for the same descriptor.
func TestAMonthOfTheCalendar(t *testing.T) {
	s, clock := newService(t, file("a: unit: month, requests_per_unit: 2, zone: Europe/Berlin", "b: unit: month, requests_per_unit: 2"), Options{})
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for range 3 {
		now := clock.read()
		first := time.Date(now.In(berlin).Year(), now.In(berlin).Month()+1, 1, 0, 0, 0, 0, berlin)
		response, err := s.ShouldRateLimit(context.Background(), asking(t, "d: a=x"))
		require.NoError(t, err)
		assert.Equal(t, first.Sub(now), response.Statuses[0].DurationUntilReset.AsDuration())
		assert.Equal(t, 1, admitted(t, s, 5, "a=x"))
		clock.set(first.Add(-time.Nanosecond))
		assert.Equal(t, 0, admitted(t, s, 1, "a=x"))
		clock.set(first)
	}
	assert.Equal(t, 2, admitted(t, s, 3, "b=x"))
	assert.Equal(t, 2, admitted(t, s, 3, "a=x"))
	names := map[string]bool{}
	for _, table := range s.Tables() {
		names[table.Name] = true
	}
	assert.True(t, names["fixed window of month of Europe/Berlin"] && names["fixed window of 720h0m0s"], names)
}
