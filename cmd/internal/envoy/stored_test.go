package envoy

import (
	"net"
	"os"
	"os/exec"
	"strings"
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

func counted(s *Service, name string) uint64 {
	for _, c := range s.Counters() {
		if c.Name == name {
			return c.Value
		}
	}
	return 0
}
