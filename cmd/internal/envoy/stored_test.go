package envoy

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/freeport"
	"github.com/weir-go/weir/redislimit"
)

type server struct {
	address string
	process *os.Process
}

func startRedis(t *testing.T) server {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("needs redis-server: ", err)
	}
	address := freeport.Address(t)
	_, port, _ := net.SplitHostPort(address)
	command := exec.Command(program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	soon(t, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return server{address, command.Process}
}

func soon(t *testing.T, is func() bool) {
	t.Helper()
	require.Eventually(t, is, time.Minute, time.Millisecond)
}

// connect opens a client of the server. The timeout should be long, unless the test stops the server.
func (s server) connect(t *testing.T, timeout time.Duration, options ...redislimit.ClientOption) *redislimit.Client {
	t.Helper()
	c, err := redislimit.Open(t.Context(), "redis://"+s.address, append(options, redislimit.Timeout(timeout))...)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// storedService returns a service with its counters in a store and the machine's clock.
func storedService(t *testing.T, file string, o Options) *Service {
	t.Helper()
	s, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	require.NoError(t, s.SetConfig(compile(t, file)))
	return s
}

const years = `
domain: d
descriptors:
  - {key: ten, rate_limit: {unit: year, requests_per_unit: 10}}
  - {key: two, rate_limit: {unit: year, requests_per_unit: 2}}
  - {key: months, rate_limit: {unit: month, requests_per_unit: 100}}
  - {key: shadow, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: bucket, rate_limit: {unit: hour, requests_per_unit: 6, algorithm: token-bucket}}
  - {key: over, rate_limit: {unit: hour, requests_per_unit: 6, algorithm: token-bucket, overdraw: true}}
  - {key: none, rate_limit: {unit: year, requests_per_unit: 0}}
`

var wholeYears = "all_or_nothing: true" + strings.ReplaceAll(years, ", overdraw: true", "")

// The function left returns how many hits remain for each status. For a status over the limit, it returns -1.
func left(r *rlsv3.RateLimitResponse) (all []int) {
	for _, s := range r.GetStatuses() {
		n := int(s.GetLimitRemaining())
		if s.GetCode() == rlsv3.RateLimitResponse_OVER_LIMIT {
			n = -1
		}
		all = append(all, n)
	}
	return all
}

// TestOneScriptForARequest: one call to the store decides all windows of a request and, with all_or_nothing, all its
// limits.
func TestOneScriptForARequest(t *testing.T) {
	client := startRedis(t).connect(t, 10*time.Second)
	s := storedService(t, years, Options{Store: client})
	calls := client.Health().Calls
	for i := range 3 {
		answer := ask1(t, s, "d: ten=a | two=a | months=a +3 | two=b | none=a")
		assert.Equal(t, []int{9 - i, []int{1, 0, -1}[i], 97 - 3*i, []int{1, 0, -1}[i], -1}, left(answer))
	}
	assert.EqualValues(t, 3, client.Health().Calls-calls)

	s = storedService(t, wholeYears, Options{Store: startRedis(t).connect(t, 10*time.Second)})
	client = s.options.Store
	calls = client.Health().Calls
	assert.Equal(t, []int{9, 1, 5, 9}, left(ask1(t, s, "d: ten=a | two=a | bucket=a | ten=b")))
	assert.EqualValues(t, 1, client.Health().Calls-calls)
}

// TestAllOrNothingInAStore: a refused request leaves every counter unchanged, even in two stores.
func TestAllOrNothingInAStore(t *testing.T) {
	server := startRedis(t)
	seconds := server.connect(t, 10*time.Second, redislimit.Prefix("seconds"))
	file := strings.Replace(wholeYears, "unit: month", "period: 1s", 1)
	s := storedService(t, file, Options{Store: server.connect(t, 10*time.Second), PerSecondStore: seconds})
	for _, q := range []string{
		"d: ten=a +2 | bucket=a +2 | two=a +3", "d: two=a +3 | ten=a +2 | bucket=a +2", "d: ten=a | none=a", "d: bucket=a +7 | ten=a",
		"d: months=a | two=a +3 | shadow=a +5", "d: two=a +3 | months=a", "d: two=a +1 | ten=a | two=a +2", "d: over=x +0 | two=a +3",
	} {
		for range 3 {
			assert.Equal(t, rlsv3.RateLimitResponse_OVER_LIMIT, ask1(t, s, q).GetOverallCode(), q)
		}
		assert.Equal(t, []int{10, 2, 6, 100, 1}, left(ask1(t, s, "d: ten=a +0 | two=a +0 | bucket=a +0 | months=a +0 | shadow=a +0")), q)
	}
	assert.Equal(t, []int{0, 8}, left(ask1(t, s, "d: shadow=a +5 | ten=a +2")), "a shadow refuses nothing")
	assert.Equal(t, []int{9, 7}, left(ask1(t, s, "d: ten=a -1 | ten=b +3")))
}

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

func counted(s *Service, name string) uint64 {
	for _, c := range s.Counters() {
		if c.Name == name {
			return c.Value
		}
	}
	return 0
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
