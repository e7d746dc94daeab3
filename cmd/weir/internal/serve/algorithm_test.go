package serve

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/weir/internal/limit"
	"github.com/weir-go/weir/engine"
)

// TestEveryAlgorithmOverHTTP asks at moments counted from a full minute, under a limit of three
// a minute.
func TestEveryAlgorithmOverHTTP(t *testing.T) {
	type moment struct {
		second     time.Duration
		passed     int    // before the first refusal
		retryAfter string // of that
	}
	for _, c := range []struct {
		algorithm string
		aligned   bool
		want      []moment
	}{
		{"token-bucket", false, []moment{{15, 3, "20"}, {34, 0, "1"}, {35, 1, "20"}, {95, 3, "20"}}},
		{"batch-refill", false, []moment{{15, 3, "45"}, {59, 0, "1"}, {60, 3, "60"}, {200, 3, "40"}}},
		{"fixed-window", false, []moment{{15, 3, "60"}, {74, 0, "1"}, {75, 3, "60"}, {200, 3, "60"}}},
		{"fixed-window", true, []moment{{15, 3, "45"}, {59, 0, "1"}, {60, 3, "60"}, {200, 3, "40"}}},
		// At second 60 all three of the previous minute count, at 61 two of them, rounded down.
		{"sliding-window", false, []moment{{15, 3, "46"}, {60, 0, "1"}, {61, 1, "20"}, {81, 1, "20"}, {300, 3, "61"}}},
		{"sliding-log", false, []moment{{15, 3, "60"}, {74, 0, "1"}, {75, 3, "60"}, {200, 3, "60"}}},
	} {
		name := c.algorithm
		if c.aligned {
			name += " aligned"
		}
		t.Run(name, func(t *testing.T) {
			burst := uint64(3)
			flags := limit.Flags{Algorithm: new(limit.Algorithm), Limit: limit.Rate{Rate: engine.PerMinute(3)}, Aligned: c.aligned}
			require.NoError(t, flags.Algorithm.UnmarshalText([]byte(c.algorithm)))
			if c.algorithm == "token-bucket" {
				flags.Burst = &burst
			}
			policy, err := flags.Policy()
			require.NoError(t, err)

			s := startAt(t, policy, "ip", "")
			begin := s.clock.now()
			for _, m := range c.want {
				s.clock.advance(begin.Add(m.second * time.Second).Sub(s.clock.now()))
				for i := range m.passed {
					got := s.get("/")
					assert.Equal(t, 200, got.status, "second %d, request %d", m.second, i+1)
					assert.Contains(t, got.body, " of 3 tokens\n")
				}
				body := fmt.Sprintf(`{"error":"Too many requests","retryAfter":%s}`+"\n", m.retryAfter)
				assert.Equal(t, answer{429, m.retryAfter, "application/json", body}, s.get("/"), "second %d", m.second)
			}
		})
	}
}

// TestTheSlidingLogForgetsRequestsOneByOne: three that were spread come back spread.
func TestTheSlidingLogForgetsRequestsOneByOne(t *testing.T) {
	s := startAt(t, engine.SlidingLog(3, time.Minute), "ip", "")
	for range 3 {
		assert.Equal(t, []int{200}, s.statuses(1))
		s.clock.advance(10 * time.Second)
	}
	assert.Equal(t, "30", s.get("/").retryAfter)
	s.clock.advance(30 * time.Second)
	assert.Equal(t, []int{200, 429}, s.statuses(2))
	assert.Equal(t, "10", s.get("/").retryAfter)
}
