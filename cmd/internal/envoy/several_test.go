package envoy

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const severalLimits = `
domain: d
descriptors:
  - key: account
    metadata: {plan: free}
    rate_limits:
      - {unit: hour, requests_per_unit: 4, name: hourly}
      - {unit: day, requests_per_unit: 6}
      - {unit: month, requests_per_unit: 100, algorithm: token-bucket}
      - {unit: year, requests_per_unit: 7, algorithm: token-bucket}
  - key: paid
    rate_limit: {unit: day, requests_per_unit: 1000, replaces: [{name: hourly}]}
`

// TestSeveralLimits: in memory and in a store, each limit of a descriptor counts, and the tightest limit gives the
// status.
func TestSeveralLimits(t *testing.T) {
	for _, stored := range []bool{false, true} {
		o := Options{DynamicMetadata: true, ResponseHeaders: Headers{"Limit", "Remaining", "Reset"}}
		if stored {
			o.Store = startRedis(t).connect(t, 10*time.Second)
		}
		s := storedService(t, severalLimits, o)
		answer := ask1(t, s, "d: account=a +3 | account=b +5 | other=x")
		require.Len(t, answer.GetStatuses(), 3)
		assert.Equal(t, []int{1, -1, 0}, left(answer))
		assert.EqualValues(t, 4, answer.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit())
		assert.Equal(t, "hourly", answer.GetStatuses()[1].GetCurrentLimit().GetName())
		assert.Equal(t, "4", answer.GetResponseHeadersToAdd()[0].GetValue())
		assert.Equal(t, "free", answer.GetDynamicMetadata().AsMap()["metadata"].(map[string]any)["plan"])
		answer = ask1(t, s, "d: account=b")
		assert.Nil(t, answer.GetDynamicMetadata().AsMap()["metadata"], "one of its limits refuses")
		assert.Equal(t, []int{2, 999}, left(ask1(t, s, "d: account=a | paid=a")), "the day has 2 left, and the hour is replaced")
		answer = ask1(t, s, "d: account=a +2 | paid=a")
		assert.Equal(t, []int{0, 998}, left(answer), "the year has 1, and the day 0")
		assert.EqualValues(t, 6, answer.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit(), "as the day is left with nothing")
		assert.Equal(t, []int{-1, 997}, left(ask1(t, s, "d: account=a | paid=a")))
		assert.Equal(t, []int{1}, left(ask1(t, s, "d: account=c limit=2/day")), "a limit of the request's own is the only one")
		assert.EqualValues(t, 13, counted(s, "ratelimit.service.rate_limit.d.account_per_month.total_hits"))
		assert.EqualValues(t, 9, counted(s, "ratelimit.service.rate_limit.d.account_per_hour.total_hits"), "where it is not replaced")
	}
}

// TestSeveralLimitsAllOrNothing: with all_or_nothing, if one limit refuses the hits, no limit of the descriptor counts
// them.
func TestSeveralLimitsAllOrNothing(t *testing.T) {
	for _, stored := range []bool{false, true} {
		o := Options{}
		if stored {
			o.Store = startRedis(t).connect(t, 10*time.Second)
		}
		s := storedService(t, "all_or_nothing: true"+severalLimits, o)
		for range 9 {
			assert.Equal(t, []int{-1}, left(ask1(t, s, "d: account=a +5")))
		}
		assert.Equal(t, []int{0}, left(ask1(t, s, "d: account=a +4")))
	}
}

// TestSeveralLimitsKeepTheirCounts: counts survive if numbers or the order of limits change, or if a limit is added or
// removed.
func TestSeveralLimitsKeepTheirCounts(t *testing.T) {
	const hour, day = "{unit: hour, requests_per_unit: 4, algorithm: token-bucket}", "{unit: day, requests_per_unit: %d, algorithm: token-bucket}"
	of := func(limits ...string) string {
		return "all_or_nothing: true\ndomain: d\ndescriptors: [{key: k, rate_limits: [" + strings.Join(limits, ", ") + "]}]"
	}
	ten, twelve := fmt.Sprintf(day, 10), fmt.Sprintf(day, 12)
	change := func(s *Service) {
		require.Equal(t, 3, admitted(t, s, 3, "k=x"))
		for _, limits := range [][]string{{ten, hour}, {hour, ten}, {ten, hour}, {twelve, hour}, {hour, twelve}, {hour, ten}} {
			require.NoError(t, s.SetConfig(compile(t, of(limits...))))
		}
		assert.Equal(t, 4, admitted(t, s, 9, "k=x"), "an hour")
	}
	s, clock := newService(t, of(ten), Options{})
	change(s)
	clock.set(clock.read().Add(time.Hour))
	assert.Equal(t, 3, admitted(t, s, 9, "k=x"), "what the day has left")

	s = storedService(t, of(ten), Options{Store: startRedis(t).connect(t, 10*time.Second)})
	change(s)
	require.NoError(t, s.SetConfig(compile(t, of(ten))))
	assert.Equal(t, 3, admitted(t, s, 9, "k=x"), "what the day has left")
}

// TestHeadersOfSeveralLimits: headers report the nearest limit of a descriptor. It need not be the first in the file.
func TestHeadersOfSeveralLimits(t *testing.T) {
	s, _ := newService(t, `
domain: d
descriptors: [{key: k, rate_limits: [{unit: day, requests_per_unit: 9}, {unit: hour, requests_per_unit: 5}]}]`,
		Options{ResponseHeaders: Headers{"Limit", "Remaining", "Reset"}, StopWhenOver: true})
	assert.Equal(t, "5", ask1(t, s, "d: k=x").GetResponseHeadersToAdd()[0].GetValue())
	assert.Equal(t, rlsv3.RateLimitResponse_OVER_LIMIT, ask1(t, s, "d: k=x +5").GetOverallCode())
	assert.EqualValues(t, 6, counted(s, "ratelimit.service.rate_limit.d.k_per_hour.total_hits"))
	assert.Equal(t, []int{-1}, left(ask1(t, s, "d: k=x +9")))
	assert.Equal(t, []int{-1}, left(ask1(t, s, "d: k=x")))
}

// TestTheStatusOfSeveralLimits: a limit that counts gives the status, and not an unlimited one beside it. Of two limits
// that refuse, it is the one under which the hits can never pass.
func TestTheStatusOfSeveralLimits(t *testing.T) {
	folder := t.TempDir()
	writePlans(t, folder, "vip,unlimited\n")
	s, _ := newService(t, fmt.Sprintf(`domain: d
descriptors:
  - key: a
    rate_limits:
      - {unit: minute, requests_per_unit: 1, quotas: {file: %q}}
      - {unit: day, requests_per_unit: 4}
`, filepath.Join(folder, "plans.csv")), Options{})
	answer := ask1(t, s, "d: a=vip")
	assert.Equal(t, []int{3}, left(answer))
	assert.EqualValues(t, 4, answer.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit())

	s, _ = newService(t, `domain: d
descriptors:
  - key: a
    rate_limits:
      - {unit: day, requests_per_unit: 2}
      - {unit: minute, requests_per_unit: 3, algorithm: token-bucket}
`, Options{})
	answer = ask1(t, s, "d: a=x +9")
	assert.Equal(t, []int{-1}, left(answer))
	assert.EqualValues(t, 3, answer.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit())
}
