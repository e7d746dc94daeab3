package serve

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir/internal/freeport"
)

type healthServer struct {
	health.UnimplementedHealthServer
	check func(context.Context) error
}

func (h *healthServer) Check(ctx context.Context, _ *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	return &health.HealthCheckResponse{Status: health.HealthCheckResponse_SERVING}, h.check(ctx)
}

func startGRPC(t *testing.T, check func(context.Context) error) (*running, health.HealthClient) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	upstream := grpc.NewServer()
	health.RegisterHealthServer(upstream, &healthServer{check: check})
	go func() { _ = upstream.Serve(listener) }()
	t.Cleanup(upstream.Stop)
	s := start(t, "listen: {address: \"127.0.0.1:0\", h2c: true}\n"+
		"upstream: {url: \"http://"+listener.Addr().String()+"\", h2c: true}\n"+one)
	conn, err := grpc.NewClient(s.address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return s, health.NewHealthClient(conn)
}

// TestRefusedGRPC: a refused gRPC client gets ResourceExhausted and a time to wait. After the HTTP status 429, it would
// retry at once.
func TestRefusedGRPC(t *testing.T) {
	s, client := startGRPC(t, func(context.Context) error { return nil })
	for range 5 {
		got, err := client.Check(t.Context(), &health.HealthCheckRequest{})
		require.NoError(t, err)
		assert.Equal(t, health.HealthCheckResponse_SERVING, got.GetStatus())
	}
	_, err := client.Check(t.Context(), &health.HealthCheckRequest{})
	refusal := status.Convert(err)
	assert.Equal(t, codes.ResourceExhausted, refusal.Code(), err)
	assert.Equal(t, "rate limit exceeded", refusal.Message())
	require.Len(t, refusal.Details(), 1)
	info, is := refusal.Details()[0].(*errdetails.RetryInfo)
	require.True(t, is)
	assert.Equal(t, time.Hour, info.GetRetryDelay().AsDuration())
	s.stop()
	assert.Contains(t, s.log.String(), "msg=stopped requests=6 allowed=5 refused=1 upstream_failures=0\n")
}

// TestTheDeadlineOfAClientIsNoUpstreamFailure: if an upstream ends a call at the client's deadline, it has not failed.
func TestTheDeadlineOfAClientIsNoUpstreamFailure(t *testing.T) {
	s, client := startGRPC(t, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := client.Check(ctx, &health.HealthCheckRequest{})
		assert.Equal(t, codes.DeadlineExceeded, status.Code(err))
		cancel()
	}
	s.stop()
	assert.Contains(t, s.log.String(), "upstream_failures=0\n")
	assert.NotContains(t, s.log.String(), "upstream failed")
}

func TestGRPCWithoutAnUpstream(t *testing.T) {
	for upstream, want := range map[string]string{
		"upstream: {url: \"http://" + freeport.Address(t) + "\", h2c: true}": "Unavailable: The upstream server did not answer",
		"routes: [{match: {path: /x}, upstream: \"http://127.0.0.1:1\"}]": "Unimplemented: " +
			"There is no upstream for this request",
	} {
		s := start(t, "listen: {address: \"127.0.0.1:0\", h2c: true}\n"+upstream+"\n"+one)
		conn, err := grpc.NewClient(s.address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		_, err = health.NewHealthClient(conn).Check(t.Context(), &health.HealthCheckRequest{})
		assert.Equal(t, want, status.Code(err).String()+": "+status.Convert(err).Message())
		require.NoError(t, conn.Close())
	}
}

// TestAGRPCRequestThatAnotherProxyAsksAbout: if a proxy asks about a gRPC request, /decide refuses it with an HTTP
// status. As gRPC it would answer 200, and the proxy would let the request pass.
func TestAGRPCRequestThatAnotherProxyAsksAbout(t *testing.T) {
	_, ask := startDecide(t, strings.Replace(one, "burst: 5", "burst: 1", 1))
	header := append([]string{"Content-Type: application/grpc", "Te: trailers"}, traefik...)
	assert.Equal(t, 200, ask("/decide", header...).StatusCode)
	assert.Equal(t, 429, ask("/decide", header...).StatusCode)
}
