package envoy

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWhatIsRefusedIsNeverSeen: under all_or_nothing, the hits of a refused request never cause the refusal of another
// request, not even of a concurrent one.
func TestWhatIsRefusedIsNeverSeen(t *testing.T) {
	const file = "all_or_nothing: true\ndomain: d\ndescriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: 10}}]"
	s, _ := newService(t, file, Options{})
	ask1(t, s, "d: k=a +9")
	tooMany, one, back := asking(t, "d: k=a +2"), asking(t, "d: k=a +1"), asking(t, "d: k=a -1")
	var stop atomic.Bool
	var flood sync.WaitGroup
	for range 4 {
		flood.Go(func() {
			for !stop.Load() {
				_, _ = s.ShouldRateLimit(context.Background(), tooMany)
			}
		})
	}
	defer flood.Wait()
	defer stop.Store(true)
	for i := range 20_000 {
		response, err := s.ShouldRateLimit(context.Background(), one)
		require.NoError(t, err)
		require.Equal(t, rlsv3.RateLimitResponse_OK, response.GetOverallCode(), "request %d", i)
		_, err = s.ShouldRateLimit(context.Background(), back)
		require.NoError(t, err)
	}
}

func TestAllOrNothingLeavesNoTrace(t *testing.T) {
	for _, order := range []string{"d: five=a +2 | bucket=a +2 | two=a +3", "d: two=a +3 | five=a +2 | bucket=a +2"} {
		s, _ := newService(t, "all_or_nothing: true\n"+rules, Options{})
		before := told(ask1(t, s, "d: five=a +0 | bucket=a +0 | two=a +0"))
		for range 10 {
			assert.Equal(t, rlsv3.RateLimitResponse_OVER_LIMIT, ask1(t, s, order).GetOverallCode())
		}
		assert.Equal(t, before, told(ask1(t, s, "d: five=a +0 | bucket=a +0 | two=a +0")), order)
	}
}
