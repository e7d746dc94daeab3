package grpclimit_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/grpclimit"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/internal/testrace"
	"github.com/weir-go/weir/rpclimit"
)

func plenty(t testing.TB, set ...rpclimit.Limit) *rpclimit.Limits {
	t.Helper()
	for i := range set {
		set[i].Name = string(rune('a' + i))
		set[i].Limiter = testclock.New().Limiter(t, engine.TokenBucket(engine.PerSecond(1), 1<<32))
	}
	l, err := rpclimit.New(set)
	require.NoError(t, err)
	return l
}

// An interception has the limits of an interceptor, and how many allocations an admitted call may cause in it.
type interception struct {
	name   string
	set    *rpclimit.Limits
	allocs float64
}

func interceptions(t testing.TB) []interception {
	t.Helper()
	ip, err := httplimit.NewClientIP(httplimit.TrustProxies("10.0.0.0/8"))
	require.NoError(t, err)
	client, err := rpclimit.ClientAddr(ip)
	require.NoError(t, err)
	apiKey, err := rpclimit.MetadataValue("x-api-key", rpclimit.Peer)
	require.NoError(t, err)
	return []interception{
		{"peer", plenty(t, rpclimit.Limit{}), 0},
		{"forwarded", plenty(t, rpclimit.Limit{Key: client}), 1}, // gRPC copies the values
		{"metadata", plenty(t, rpclimit.Limit{Key: apiKey}), 1},
		{"join", plenty(t, rpclimit.Limit{Key: rpclimit.Join(rpclimit.Peer, rpclimit.Method)}), 0},
		{"three", plenty(t, rpclimit.Limit{}, rpclimit.Limit{Key: rpclimit.Method}, rpclimit.Limit{Key: rpclimit.Everyone}), 0},
		{"refund", plenty(t, rpclimit.Limit{Refund: rpclimit.RefundCodes(rpclimit.Unavailable)}), 0},
	}
}

// incoming returns the context of a call over TCP.
func incoming() context.Context {
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1234}})
	return metadata.NewIncomingContext(ctx, metadata.Pairs("x-api-key", "0123456789abcdef", "x-forwarded-for", "203.0.113.7"))
}

var (
	info   = &grpc.UnaryServerInfo{FullMethod: "/grpc.testing.TestService/UnaryCall"}
	answer = func(context.Context, any) (any, error) { return nil, nil }
	noop   = func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return handler(ctx, req)
	}
)

func TestAnAdmittedCallAllocatesNothing(t *testing.T) {
	if testrace.Enabled {
		t.Skip("a sync.Pool drops things under the race detector")
	}
	ctx, req := incoming(), &pb.SimpleRequest{}
	for _, test := range interceptions(t) {
		intercept := grpclimit.UnaryServer(test.set)
		assert.Equal(t, test.allocs, testalloc.PerCall(func() { _, _ = intercept(ctx, req, info, answer) }), test.name)
	}
	intercept := grpclimit.StreamServer(plenty(t, rpclimit.Limit{}))
	stream := &fakeStream{ctx: ctx}
	streamInfo := &grpc.StreamServerInfo{FullMethod: info.FullMethod}
	assert.Zero(t, testalloc.PerCall(func() {
		_ = intercept(stream, stream, streamInfo, func(any, grpc.ServerStream) error { return nil })
	}), "stream")
	hold := grpclimit.UnaryClient(plenty(t, rpclimit.Limit{}))
	assert.Zero(t, testalloc.PerCall(func() {
		_ = hold(ctx, info.FullMethod, req, req, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil })
	}), "client")
}

// A fakeStream is a stream without a transport.
type fakeStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *fakeStream) Context() context.Context { return s.ctx }

// BenchmarkInterceptor measures only the interceptor. For comparison, it also measures an interceptor that does
// nothing.
func BenchmarkInterceptor(b *testing.B) {
	run := func(name string, intercept grpc.UnaryServerInterceptor) {
		ctx, req := incoming(), &pb.SimpleRequest{}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = intercept(ctx, req, info, answer)
			}
		})
	}
	run("noop", noop)
	for _, test := range interceptions(b) {
		run(test.name, grpclimit.UnaryServer(test.set))
	}
}

// BenchmarkCall measures calls over loopback with an interceptor that does nothing, and with a limit.
func BenchmarkCall(b *testing.B) {
	for _, test := range []struct {
		name    string
		options []grpc.ServerOption
	}{
		{"noop", []grpc.ServerOption{grpc.ChainUnaryInterceptor(noop)}},
		{"limited", grpclimit.ServerOptions(plenty(b, rpclimit.Limit{}))},
	} {
		b.Run(test.name, func(b *testing.B) {
			client := pb.NewTestServiceClient(dial(b, start(b, &service{}, test.options...)))
			ctx, req := within(b), &pb.SimpleRequest{}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.UnaryCall(ctx, req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
