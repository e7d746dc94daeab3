//go:build unix

package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weir-go/weir/redislimit"

	"github.com/weir-go/weir/cmd/internal/envoy"
	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

const ofTwoStores = `
domain: d
descriptors:
  - {key: second, rate_limit: {unit: second, requests_per_unit: 1000000}}
  - {key: day, rate_limit: {unit: year, requests_per_unit: 10}}
`

// TestStopping: after SIGTERM, health checks fail, and requests in progress are answered. Tokens that were admitted
// without the store are charged, even if the store returns only after SIGTERM.
func TestStopping(t *testing.T) {
	ports := freePorts(t, "port", "debug-port", "grpc-port", "lost", "slow")
	lost, slow := ports["lost"], ports["slow"]
	stopLost := runRedis(t, lost, "--port", fmt.Sprint(lost), "--save", "")
	_, slowly := startedRedis(t, slow, "--port", fmt.Sprint(slow), "--save", "")
	root := write(t, map[string]string{"a.yaml": ofTwoStores})
	p := launch(t, nil, "serve", "--runtime-root="+root, "--host=127.0.0.1", "--debug-host=127.0.0.1", "--grpc-host=127.0.0.1",
		fmt.Sprintf("--port=%d", ports["port"]), fmt.Sprintf("--debug-port=%d", ports["debug-port"]), "--log-level=info",
		fmt.Sprintf("--grpc-port=%d", ports["grpc-port"]), fmt.Sprintf("--redis-url=127.0.0.1:%d", lost), "--redis-persecond",
		fmt.Sprintf("--redis-persecond-url=127.0.0.1:%d", slow), "--redis-persecond-timeout=10s", "--redis-on-loss=share",
		"--replicas=2", "--drain=1m", "--use-statsd=false")
	until(t, "it answers", func() bool { return strings.Contains(p.log(), "weir-envoy answers") })
	connection, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", ports["grpc-port"]), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer connection.Close()
	health := healthv1.NewHealthClient(connection)
	watched, unwatch := context.WithCancel(t.Context())
	watch, err := health.Watch(watched, &healthv1.HealthCheckRequest{Service: healthService})
	require.NoError(t, err)
	status := func() healthv1.HealthCheckResponse_ServingStatus {
		answer, err := watch.Recv()
		require.NoError(t, err)
		return answer.GetStatus()
	}
	require.Equal(t, healthv1.HealthCheckResponse_SERVING, status())

	stopLost()
	passed := 0
	for range 20 {
		answer, err := rlsv3.NewRateLimitServiceClient(connection).ShouldRateLimit(t.Context(), request("d", "day", "x", 1))
		require.NoError(t, err)
		if answer.GetOverallCode() == rlsv3.RateLimitResponse_OK {
			passed++
		}
	}
	require.Equal(t, 5, passed)
	require.NoError(t, slowly.Signal(syscall.SIGSTOP))
	asked, err := connection.NewStream(t.Context(), &grpc.StreamDesc{}, rlsv3.RateLimitService_ShouldRateLimit_FullMethodName)
	require.NoError(t, err)
	require.NoError(t, asked.SendMsg(request("d", "second", "x", 1)))
	require.NoError(t, asked.CloseSend())
	_, err = health.Check(t.Context(), &healthv1.HealthCheckRequest{}) // by now, the program has received the request
	require.NoError(t, err)

	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, healthv1.HealthCheckResponse_NOT_SERVING, status())
	r := &running{t: t, ports: ports}
	code, _ := r.get("port", "/healthcheck")
	assert.Equal(t, 500, code)
	unwatch()
	runRedis(t, lost, "--port", fmt.Sprint(lost), "--save", "")
	require.NoError(t, slowly.Signal(syscall.SIGCONT))
	answer := new(rlsv3.RateLimitResponse)
	require.NoError(t, asked.RecvMsg(answer))
	assert.Equal(t, rlsv3.RateLimitResponse_OK, answer.GetOverallCode())
	assert.EqualValues(t, 999_999, answer.GetStatuses()[0].GetLimitRemaining(), "by the store, not by a share")
	require.NoError(t, p.end())
	assert.NotContains(t, p.log(), "not charged")
	other := start(t, nil, "--runtime-root="+root, fmt.Sprintf("--redis-url=127.0.0.1:%d", lost))
	assert.Equal(t, 4, other.left("day", "x"), "5 are charged")
}

// TestDrainIsForAll: after the time of DRAIN, the program waits for nothing, not even for a store.
func TestDrainIsForAll(t *testing.T) {
	store, err := redislimit.Open(t.Context(), "redis://127.0.0.1:1", redislimit.JoinLater())
	require.NoError(t, err)
	defer store.Close()
	service, err := envoy.New(envoy.Options{Store: store, OnLoss: envoy.Share, Replicas: 2})
	require.NoError(t, err)
	document, err := config.Parse("a.yaml", []byte(ofTwoStores))
	require.NoError(t, err)
	rules, err := config.Compile([]*config.Document{document}, config.Options{})
	require.NoError(t, err)
	require.NoError(t, service.SetConfig(rules))
	_, err = service.ShouldRateLimit(t.Context(), request("d", "day", "x", 1))
	require.NoError(t, err)
	said := &lines{}
	c := parse(t, "--drain=1h")
	p := &program{serveCommand: c, service: service, log: slog.New(slog.NewTextHandler(said, nil))}
	p.drainEnd = time.Now()
	p.close()
	assert.Contains(t, said.String(), "requests that were admitted without the store are not charged to it")
}
