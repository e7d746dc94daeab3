//go:build unix

package envoy

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/redislimit"
)

// lose stops the server, and waits until the client knows that it is lost.
func (s server) lose(t *testing.T, client *redislimit.Client, service *Service) {
	t.Helper()
	require.NoError(t, s.process.Signal(syscall.SIGSTOP))
	soon(t, func() bool {
		_, _ = service.ShouldRateLimit(context.Background(), asking(t, "d: ten=elsewhere"))
		return client.Health().Lost > 0
	})
}

// TestALookAtABucket: a request without hits reports what a bucket has left, in a store and in memory.
func TestALookAtABucket(t *testing.T) {
	for _, o := range []Options{{}, {Store: startRedis(t).connect(t, 10*time.Second)}} {
		s := storedService(t, years, o)
		assert.Equal(t, []int{2}, left(ask1(t, s, "d: bucket=a +4")))
		assert.Equal(t, []int{2, 6}, left(ask1(t, s, "d: bucket=a +0 | bucket=b +0")))
	}
}

// TestAStoreThatIsLost: while the store is lost, OnLoss determines whether each replica admits its share, everything,
// or nothing. When the store returns, it is charged for the hits that the shares have admitted.
func TestAStoreThatIsLost(t *testing.T) {
	for _, stop := range []bool{false, true} {
		server := startRedis(t)
		client := server.connect(t, 50*time.Millisecond)
		s := storedService(t, years, Options{Store: client, OnLoss: Share, Replicas: 2, StopWhenOver: stop})
		soon(t, func() bool { _, err := s.ShouldRateLimit(t.Context(), asking(t, "d: ten=a +2")); return err == nil })
		server.lose(t, client, s)
		assert.Equal(t, []int{2, 0, 0}, left(ask1(t, s, "d: ten=a +3 | two=a | bucket=a +3")))
		assert.Equal(t, []int{-1, -1, -1}, left(ask1(t, s, "d: ten=a +3 | two=a | bucket=a")))
		assert.Equal(t, []int{2, 2}, left(ask1(t, s, "d: ten=a +0 | over=a +1")))
		assert.Equal(t, []int{2, 0, -1}, left(ask1(t, s, "d: over=a +0 | bucket=a +0 | none=a")))
		assert.Equal(t, []int{0}, left(ask1(t, s, "d: ten=a +2")))
		assert.Equal(t, []int{0}, left(ask1(t, s, "d: ten=a +0")), "a look at a window that is full, not over")
		assert.Equal(t, []int{-1}, left(ask1(t, s, "d: ten=a")))
		assert.Equal(t, []int{-1}, left(ask1(t, s, "d: over=a +4")))
		assert.Equal(t, []int{-1}, left(ask1(t, s, "d: over=a +0")), "hits after the fact count")
		assert.Equal(t, []int{-1}, left(ask1(t, s, "d: none=a +0 | none=a"))[1:])
		assert.Positive(t, counted(s, "ratelimit.service.without_store"))

		require.NoError(t, server.process.Signal(syscall.SIGCONT))
		require.NoError(t, s.Settle(t.Context()))
		assert.Eventually(t, func() bool {
			r, err := s.ShouldRateLimit(t.Context(), asking(t, "d: ten=a +0 | two=a +0 | bucket=a +0 | over=a +0"))
			// The server may also have charged a request that was in progress when it was stopped.
			return err == nil && r.GetStatuses()[0].GetLimitRemaining() <= 3 && left(r)[1] == 1 && left(r)[2] == 3 && left(r)[3] <= 1
		}, 5*time.Second, time.Millisecond)

	}
}

// TestAShareThatRefusesIsNoError: the share decides even before the store counts as lost. A refusal by the share must
// not become an error, because by default Envoy passes a request if there is an error.
func TestAShareThatRefusesIsNoError(t *testing.T) {
	server := startRedis(t)
	client := server.connect(t, 50*time.Millisecond, redislimit.BreakAfter(time.Minute))
	s := storedService(t, wholeYears, Options{Store: client, OnLoss: Share, Replicas: 2})
	soon(t, func() bool { _, err := s.ShouldRateLimit(t.Context(), asking(t, "d: ten=a +0")); return err == nil })
	require.NoError(t, server.process.Signal(syscall.SIGSTOP))
	assert.Equal(t, []int{2, 0}, left(ask1(t, s, "d: ten=a +3 | bucket=a +3")))
	for range 3 {
		assert.Equal(t, []int{2, -1}, left(ask1(t, s, "d: ten=a +2 | bucket=a")), "what the other share admits goes back")
	}
	assert.Equal(t, []int{0}, left(ask1(t, s, "d: ten=a +2")))
	assert.Zero(t, client.Health().Lost)
}

func TestAStoreThatIsLostAndOpen(t *testing.T) {
	server := startRedis(t)
	client := server.connect(t, 50*time.Millisecond)
	s := storedService(t, years, Options{Store: client, OnLoss: Open, StopWhenOver: true})
	server.lose(t, client, s)
	for range 20 {
		assert.Equal(t, []int{10, 6, 6}, left(ask1(t, s, "d: ten=a | bucket=a | over=a")))
	}
	assert.Equal(t, []int{-1, -1, -1}, left(ask1(t, s, "d: ten=a +11 | bucket=a +7 | none=a")), "what no limit would ever admit")
	assert.Equal(t, []int{10}, left(ask1(t, s, "d: ten=a -3")))
	both := storedService(t, wholeYears, Options{Store: client, OnLoss: Open})
	assert.Equal(t, []int{10, 6}, left(ask1(t, both, "d: ten=a | bucket=a")))
	closed := storedService(t, wholeYears, Options{Store: client})
	_, err := closed.ShouldRateLimit(t.Context(), asking(t, "d: ten=a | bucket=a"))
	assert.Error(t, err)
}

// TestNumbersThatChangeWhileAStoreIsLost: a limit changes its numbers while the store is lost. This cannot give a
// replica a second share. It cannot even if the limit is removed for a time, or if another limit had the new numbers
// before.
func TestNumbersThatChangeWhileAStoreIsLost(t *testing.T) {
	for _, algorithm := range []string{"token-bucket", "fixed-window", "sliding-window", "sliding-log"} {
		server := startRedis(t)
		client := server.connect(t, 50*time.Millisecond)
		of := func(n int) string {
			return fmt.Sprintf(`
domain: d
descriptors:
  - {key: ten, rate_limit: {unit: year, requests_per_unit: 10}}
  - {key: changed, rate_limit: {unit: hour, requests_per_unit: %d, algorithm: %s}}
  - {key: other, rate_limit: {unit: hour, requests_per_unit: 20, algorithm: %[2]s}}
`, n, algorithm)
		}
		s := storedService(t, of(10), Options{Store: client, OnLoss: Share, Replicas: 2})
		server.lose(t, client, s)
		admitted := func(n int) (passed int) {
			for range n {
				if ask1(t, s, "d: changed=a").GetOverallCode() == rlsv3.RateLimitResponse_OK {
					passed++
				}
			}
			return passed
		}
		require.Equal(t, 4, admitted(4))
		for _, change := range []struct{ limit, passes int }{{12, 2}, {10, 0}, {0, 0}, {20, 4}, {30, 5}, {10, 0}, {30, 0}} {
			require.NoError(t, s.SetConfig(compile(t, of(change.limit))))
			assert.Equal(t, change.passes, admitted(20), "%s: %d", algorithm, change.limit)
		}
		require.NoError(t, server.process.Signal(syscall.SIGCONT))
		require.NoError(t, s.Settle(t.Context()))
	}
}
