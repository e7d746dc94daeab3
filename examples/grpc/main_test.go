package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir/examples/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func client(t *testing.T, url string) grpc_health_v1.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient(strings.TrimPrefix(url, "grpc://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // no call is in progress
	return grpc_health_v1.NewHealthClient(conn)
}

// passes makes a call with metadata and reports whether the call is admitted. If it is refused, passes checks the
// refusal.
func passes(t *testing.T, c grpc_health_v1.HealthClient, forwarded ...string) bool {
	t.Helper()
	ctx := context.Background()
	for _, value := range forwarded {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-forwarded-for", value)
	}
	_, err := c.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err == nil {
		return true
	}
	require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
	var wait time.Duration
	var limits []string
	for _, detail := range status.Convert(err).Details() {
		switch d := detail.(type) {
		case *errdetails.RetryInfo:
			wait = d.GetRetryDelay().AsDuration()
		case *errdetails.QuotaFailure:
			for _, v := range d.GetViolations() {
				limits = append(limits, v.String())
			}
		}
	}
	assert.Positive(t, wait)
	assert.LessOrEqual(t, wait, 6*time.Second)
	require.Len(t, limits, 1)
	assert.Contains(t, limits[0], "tokens")
	return false
}

// TestClients: a client gets only its tokens, whatever it writes into x-forwarded-for.
func TestClients(t *testing.T) {
	law := exampletest.Law{Burst: 5, Every: 6 * time.Second}
	direct := client(t, exampletest.Start(t, "-calls", "0"))
	law.Holds(t, func(i int) bool { return passes(t, direct, fmt.Sprintf("203.0.113.%d", i)) })

	behind := client(t, exampletest.Start(t, "-calls", "0", "-trust", "127.0.0.1"))
	law.Holds(t, func(int) bool { return passes(t, behind, "203.0.113.1") })
	law.Holds(t, func(i int) bool { return passes(t, behind, fmt.Sprintf("192.0.2.%d, 203.0.113.2", i)) })
	law.Holds(t, func(i int) bool { return passes(t, behind, fmt.Sprintf("192.0.2.%d", i), "203.0.113.3") })
}

// TestCosts: a call of List takes three of the five tokens.
func TestCosts(t *testing.T) {
	c := client(t, exampletest.Start(t, "-calls", "0"))
	_, err := c.List(context.Background(), &grpc_health_v1.HealthListRequest{})
	require.NoError(t, err)
	_, err = c.List(context.Background(), &grpc_health_v1.HealthListRequest{})
	assert.Equal(t, codes.ResourceExhausted, status.Code(err))
	assert.True(t, passes(t, c), "two are left")
}

// TestItsOwnCalls: the command in README.md with which the program makes the calls prints what README.md shows.
func TestItsOwnCalls(t *testing.T) {
	wait := exampletest.Says(t, `Check: ResourceExhausted, again in (\S+)`)
	_, err := time.ParseDuration(wait)
	assert.NoError(t, err)
}
