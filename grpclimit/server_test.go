package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/grpclimit"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/rpclimit"
)

func TestARefusedCallSaysWhenAndWhy(t *testing.T) {
	c := testclock.New()
	s := &service{}
	client := limited(t, s, one(t, rpclimit.Limit{Limiter: c.Limiter(t, engine.TokenBucket(engine.PerSecond(1), 2))}))
	require.Equal(t, codes.OK, call(within(t), client))
	require.Equal(t, codes.OK, call(within(t), client))
	c.Advance(250 * time.Millisecond)
	var trailer metadata.MD
	_, err := client.UnaryCall(within(t), &pb.SimpleRequest{}, grpc.Trailer(&trailer))
	st := status.Convert(err)
	assert.Equal(t, codes.ResourceExhausted, st.Code())
	assert.Equal(t, "rate limit exceeded", st.Message())
	require.Len(t, st.Details(), 2)
	assert.Equal(t, 750*time.Millisecond, st.Details()[0].(*errdetails.RetryInfo).GetRetryDelay().AsDuration())
	violations := st.Details()[1].(*errdetails.QuotaFailure).GetViolations()
	require.Len(t, violations, 1)
	assert.Equal(t, "limit:default", violations[0].GetSubject())
	assert.Equal(t, `limit "default" of 2: 1 asked for, 0 left`, violations[0].GetDescription())
	assert.Equal(t, int64(2), violations[0].GetQuotaValue())
	assert.Equal(t, []string{"750"}, trailer.Get("grpc-retry-pushback-ms"))
	assert.Equal(t, int64(2), s.unary.Load(), "the refused call does not reach the service")
	c.Advance(750 * time.Millisecond)
	assert.Equal(t, codes.OK, call(within(t), client))
}

func TestWhatCanNeverPassSaysSo(t *testing.T) {
	client := limited(t, &service{}, one(t, rpclimit.Limit{Limiter: burst(t, 2), Cost: func(rpclimit.Call) uint64 { return 3 }}))
	var trailer metadata.MD
	_, err := client.UnaryCall(within(t), &pb.SimpleRequest{}, grpc.Trailer(&trailer))
	st := status.Convert(err)
	assert.Equal(t, "the call costs more than the rate limit", st.Message())
	require.Len(t, st.Details(), 1, "no RetryInfo")
	assert.Equal(t, []string{"-1"}, trailer.Get("grpc-retry-pushback-ms"))
}

// TestALongWaitIsNoPushback: the trailer omits a long wait, because a client that retries automatically would hang.
func TestALongWaitIsNoPushback(t *testing.T) {
	client := limited(t, &service{}, one(t, rpclimit.Limit{Limiter: testclock.New().Limiter(t, engine.FixedWindow(1, time.Hour))}))
	call(within(t), client)
	var trailer metadata.MD
	_, err := client.UnaryCall(within(t), &pb.SimpleRequest{}, grpc.Trailer(&trailer))
	assert.Equal(t, time.Hour, status.Convert(err).Details()[0].(*errdetails.RetryInfo).GetRetryDelay().AsDuration())
	assert.Equal(t, []string{"-1"}, trailer.Get("grpc-retry-pushback-ms"))
}

// TestRetriesOfClientsBackOff: a client whose service configuration allows retries waits for the time in the trailer.
func TestRetriesOfClientsBackOff(t *testing.T) {
	limiter, err := engine.New(engine.TokenBucket(engine.Per(1, 200*time.Millisecond), 1), engine.MaxKeys(10))
	require.NoError(t, err)
	defer limiter.Close()
	seen := &counts{}
	set := one(t, rpclimit.Limit{Limiter: limiter}, rpclimit.ObserveWith(seen))
	// The client's own backoff would retry four times within some milliseconds.
	config := `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.001s",
		"maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`
	conn := dial(t, start(t, &service{}, grpclimit.ServerOptions(set)...), grpc.WithDefaultServiceConfig(config))
	client := pb.NewTestServiceClient(conn)
	for range 3 {
		assert.Equal(t, codes.OK, call(within(t), client))
	}
	assert.LessOrEqual(t, seen.of(limits.Refused), 2, "each waits for its token and asks a second time")
	assert.Equal(t, 3, seen.of(limits.Allowed))
}

func TestPeersBehindOtherTransports(t *testing.T) {
	set := func() *rpclimit.Limits { return one(t, rpclimit.Limit{Limiter: burst(t, 2)}) }
	t.Run("unix", func(t *testing.T) {
		l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		require.NoError(t, err)
		address := "unix:" + startAt(t, l, &service{}, grpclimit.ServerOptions(set())...)
		var got []codes.Code
		for range 3 {
			got = append(got, call(within(t), pb.NewTestServiceClient(dial(t, address))))
		}
		assert.Equal(t, []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted}, got, "all such peers have one key together")
	})
	t.Run("bufconn", func(t *testing.T) {
		l := bufconn.Listen(1 << 16)
		startAt(t, l, &service{}, grpclimit.ServerOptions(set())...)
		client := pb.NewTestServiceClient(dial(t, "passthrough:///x", grpc.WithContextDialer(
			func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) })))
		assert.Equal(t, []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted},
			[]codes.Code{call(within(t), client), call(within(t), client), call(within(t), client)})
	})
	t.Run("net/http", func(t *testing.T) {
		server := grpc.NewServer(grpclimit.ServerOptions(set())...)
		pb.RegisterTestServiceServer(server, &service{})
		address := serveHTTP(t, server)
		client := pb.NewTestServiceClient(dial(t, address))
		assert.Equal(t, []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted},
			[]codes.Code{call(within(t), client), call(within(t), client), call(within(t), client)})
	})
}

// serveHTTP starts a server of net/http without TLS, and returns its address.
func serveHTTP(t *testing.T, h http.Handler) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	protocols.SetHTTP1(true)
	server := &http.Server{Handler: h, Protocols: protocols}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	return l.Addr().String()
}

// TestTheHeaderOfAProxyIsTrusted: the key is the address that a trusted proxy appended, whatever the client has written
// before.
func TestTheHeaderOfAProxyIsTrusted(t *testing.T) {
	ip, err := httplimit.NewClientIP(httplimit.TrustProxies("127.0.0.0/8"))
	require.NoError(t, err)
	key, err := rpclimit.ClientAddr(ip)
	require.NoError(t, err)
	client := limited(t, &service{}, one(t, rpclimit.Limit{Limiter: burst(t, 1), Key: key}))
	assert.Equal(t, codes.OK, call(within(t, "x-forwarded-for", "203.0.113.7"), client))
	assert.Equal(t, codes.ResourceExhausted, call(within(t, "x-forwarded-for", "9.9.9.9, 203.0.113.7"), client))
	assert.Equal(t, codes.ResourceExhausted, call(within(t, "x-forwarded-for", "9.9.9.9", "x-forwarded-for", "203.0.113.7"), client))
	assert.Equal(t, codes.OK, call(within(t, "x-forwarded-for", "203.0.113.8"), client))

	strict := limited(t, &service{}, one(t, rpclimit.Limit{Limiter: burst(t, 1)}))
	assert.Equal(t, codes.OK, call(within(t), strict))
	assert.Equal(t, codes.ResourceExhausted, call(within(t, "x-forwarded-for", "203.0.113.7"), strict))
}

// TestKeysOfMetadata: a client cannot get a second bucket by writing a value differently.
func TestKeysOfMetadata(t *testing.T) {
	key, err := rpclimit.MetadataValue("x-api-key", rpclimit.Peer)
	require.NoError(t, err)
	client := limited(t, &service{}, one(t, rpclimit.Limit{Limiter: burst(t, 1), Key: key}))
	huge := strings.Repeat("k", 1<<20)
	for i, test := range []struct {
		pairs []string
		want  codes.Code
	}{
		{[]string{"x-api-key", "a"}, codes.OK},
		{[]string{"X-Api-Key", "a"}, codes.ResourceExhausted},
		{[]string{"x-api-key", "a", "x-api-key", "a"}, codes.ResourceExhausted},
		{nil, codes.OK},
		{[]string{"x-api-key", ""}, codes.ResourceExhausted},
		{[]string{"x-api-key", "a", "x-api-key", "b"}, codes.OK}, // all ambiguous calls share one bucket
		{[]string{"x-api-key", "c", "x-api-key", "a"}, codes.ResourceExhausted},
		{[]string{"x-api-key", huge}, codes.OK},
		{[]string{"x-api-key", huge}, codes.ResourceExhausted},
	} {
		assert.Equal(t, test.want, call(within(t, test.pairs...), client), i)
	}
}

func TestHealthIsExemptIfAsked(t *testing.T) {
	check := func(set *rpclimit.Limits) (got []codes.Code) {
		client := healthpb.NewHealthClient(dial(t, start(t, &service{}, grpclimit.ServerOptions(set)...)))
		for range 2 {
			_, err := client.Check(within(t), &healthpb.HealthCheckRequest{})
			got = append(got, status.Code(err))
		}
		return got
	}
	assert.Equal(t, []codes.Code{codes.OK, codes.ResourceExhausted}, check(one(t, rpclimit.Limit{Limiter: burst(t, 1)})))
	assert.Equal(t, []codes.Code{codes.OK, codes.OK},
		check(one(t, rpclimit.Limit{Limiter: burst(t, 1)}, rpclimit.Skip(rpclimit.HealthAndReflection))))
}

// TestMethodsThatAClientMakesUp: calls of made-up methods reach the handler for unknown methods, and share one bucket.
func TestMethodsThatAClientMakesUp(t *testing.T) {
	set := one(t, rpclimit.Limit{Limiter: burst(t, 1), Key: rpclimit.Method})
	unknown := grpc.UnknownServiceHandler(func(_ any, ss grpc.ServerStream) error {
		if err := ss.RecvMsg(&pb.Empty{}); err != nil {
			return err
		}
		return ss.SendMsg(&pb.Empty{})
	})
	conn := dial(t, start(t, &service{}, append(grpclimit.ServerOptions(set), unknown)...))
	var got []codes.Code
	for _, method := range []string{"/made.Up/One", "/made.Up/Two", "//grpc.testing.TestService/UnaryCall"} {
		got = append(got, status.Code(conn.Invoke(within(t), method, &pb.Empty{}, &pb.Empty{})))
	}
	assert.Equal(t, []codes.Code{codes.OK, codes.ResourceExhausted, codes.ResourceExhausted}, got)
	assert.Equal(t, codes.OK, call(within(t), pb.NewTestServiceClient(conn)), "those that the server has are others")
}

func TestRefundsByStatus(t *testing.T) {
	s := &service{}
	client := limited(t, s, one(t, rpclimit.Limit{Limiter: burst(t, 1), Refund: rpclimit.RefundCodes(codes.Unavailable, codes.Internal)}))
	for range 3 {
		_, err := client.UnaryCall(within(t), failing(codes.Unavailable))
		assert.Equal(t, codes.Unavailable, status.Code(err))
	}
	// A client that goes away while the server works gets nothing back, whatever code the server returns.
	ctx, cancel := context.WithCancel(within(t))
	done := make(chan struct{})
	s.onUnary = func(served context.Context) error {
		defer close(done)
		cancel()
		<-served.Done()
		return status.Error(codes.Unavailable, "the upstream has gone")
	}
	call(ctx, client)
	<-done
	s.onUnary = nil
	assert.Equal(t, codes.ResourceExhausted, call(within(t), client), "who goes away gets nothing back")
}

// TestOnlyFailuresCount: a refund depends on the client's code. An io.EOF from a handler is not a success.
func TestOnlyFailuresCount(t *testing.T) {
	s := &service{}
	client := limited(t, s, one(t, rpclimit.Limit{Limiter: burst(t, 1), Refund: rpclimit.RefundCodes(codes.OK)}))
	for range 3 {
		require.Equal(t, codes.OK, call(within(t), client))
	}
	s.onUnary = func(context.Context) error { return io.EOF }
	require.Equal(t, codes.Unknown, call(within(t), client))
	assert.Equal(t, codes.ResourceExhausted, call(within(t), client))
}

// TestAPanicOfTheHandlerGoesOn: if the handler panics, the panic continues, and Refund gets the code Internal.
func TestAPanicOfTheHandlerGoesOn(t *testing.T) {
	s := &service{onUnary: func(context.Context) error { panic("handler") }}
	recovering := grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = status.Errorf(codes.Internal, "%v", p)
			}
		}()
		return handler(ctx, req)
	})
	set := one(t, rpclimit.Limit{Limiter: burst(t, 1), Refund: rpclimit.RefundCodes(codes.Internal)})
	client := pb.NewTestServiceClient(dial(t, start(t, s, append([]grpc.ServerOption{recovering}, grpclimit.ServerOptions(set)...)...)))
	for range 3 {
		_, err := client.UnaryCall(within(t), &pb.SimpleRequest{})
		assert.Equal(t, "handler", status.Convert(err).Message())
	}
}

func TestCountedDecisionsOfARealServer(t *testing.T) {
	seen := &counts{}
	s := &service{}
	set := one(t, rpclimit.Limit{Limiter: burst(t, 100)}, rpclimit.ObserveWith(seen))
	address := start(t, s, grpclimit.ServerOptions(set)...)
	var passed, refused atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		client := pb.NewTestServiceClient(dial(t, address))
		all.Go(func() {
			for range 50 {
				switch call(within(t), client) {
				case codes.OK:
					passed.Add(1)
				case codes.ResourceExhausted:
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	assert.Equal(t, int64(100), passed.Load())
	assert.Equal(t, int64(100), refused.Load())
	assert.Equal(t, int64(100), s.unary.Load())
	assert.Equal(t, 100, seen.of(limits.Allowed))
	assert.Equal(t, 100, seen.of(limits.Refused))
}

// TestLimitsThatAreMissing: if the limits are nil, all calls are refused, and nothing panics.
func TestLimitsThatAreMissing(t *testing.T) {
	client := limited(t, &service{}, nil)
	assert.Equal(t, codes.Internal, call(within(t), client))
	stream, err := client.FullDuplexCall(within(t))
	require.NoError(t, err)
	_, err = stream.Recv()
	assert.Equal(t, codes.Internal, status.Code(err))

	held := pb.NewTestServiceClient(dial(t, "127.0.0.1:1", grpclimit.DialOptions(nil)...))
	assert.Equal(t, codes.Internal, call(within(t), held))
	_, err = held.FullDuplexCall(within(t))
	assert.Equal(t, codes.Internal, status.Code(err))
}

// TestCalledOutsideOfAServer: an interceptor also works if a test calls it directly, without a peer, metadata or a
// stream.
func TestCalledOutsideOfAServer(t *testing.T) {
	interceptor := grpclimit.UnaryServer(one(t, rpclimit.Limit{Limiter: burst(t, 1)}))
	handler := func(context.Context, any) (any, error) { return "answer", nil }
	info := &grpc.UnaryServerInfo{FullMethod: "test.Service/Get"}
	resp, err := interceptor(context.Background(), nil, info, handler)
	require.NoError(t, err)
	assert.Equal(t, "answer", resp)
	_, err = interceptor(context.Background(), nil, info, handler)
	assert.Equal(t, codes.ResourceExhausted, status.Code(err))

	var method string
	named := grpclimit.UnaryServer(one(t, rpclimit.Limit{Limiter: burst(t, 1), Match: func(c rpclimit.Call) bool {
		method = c.Method
		return false
	}}))
	_, err = named(context.Background(), nil, info, func(context.Context, any) (any, error) { return nil, errors.New("x") })
	assert.EqualError(t, err, "x")
	assert.Equal(t, "/test.Service/Get", method)
}

// TestAUnixSocketIsNoAddress: the name of a client's end of a Unix socket does not count as its address.
func TestAUnixSocketIsNoAddress(t *testing.T) {
	ip, err := httplimit.NewClientIP(httplimit.TrustProxies("10.0.0.0/8"))
	require.NoError(t, err)
	key, err := rpclimit.ClientAddr(ip)
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	for _, test := range []struct {
		name  string
		serve func(*grpc.Server, net.Listener)
	}{
		{"grpc", func(s *grpc.Server, l net.Listener) { _ = s.Serve(l) }},
		{"http", func(s *grpc.Server, l net.Listener) {
			protocols := new(http.Protocols)
			protocols.SetUnencryptedHTTP2(true)
			_ = (&http.Server{Handler: s, Protocols: protocols}).Serve(l)
		}},
	} {
		l, err := net.Listen("unix", test.name)
		require.NoError(t, err)
		server := grpc.NewServer(grpclimit.ServerOptions(one(t, rpclimit.Limit{Limiter: burst(t, 1), Key: key}))...)
		pb.RegisterTestServiceServer(server, &service{})
		served := make(chan struct{})
		go func() {
			test.serve(server, l)
			close(served)
		}()
		var got []codes.Code
		for i, end := range []string{"10.0.0.1", "10.0.0.2:80", "203.0.113.7"} {
			conn := dial(t, "passthrough:///x", grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				d := net.Dialer{LocalAddr: &net.UnixAddr{Name: end, Net: "unix"}}
				return d.DialContext(ctx, "unix", test.name)
			}))
			got = append(got, call(within(t, "x-forwarded-for", "198.51.100."+string(rune('1'+i))), pb.NewTestServiceClient(conn)))
			conn.Close()
			os.Remove(end)
		}
		assert.Equal(t, []codes.Code{codes.OK, codes.ResourceExhausted, codes.ResourceExhausted}, got, test.name)
		server.Stop()
		l.Close()
		<-served
	}
}

// TestOnlyTheLimitsThatRefuseAreNamed: the details of an error name the limits that refused, and no others.
func TestOnlyTheLimitsThatRefuseAreNamed(t *testing.T) {
	set, err := rpclimit.New([]rpclimit.Limit{{Name: "wide", Limiter: burst(t, 5)}, {Name: "narrow", Limiter: burst(t, 1)},
		{Name: "tried", Limiter: burst(t, 1), Shadow: true}})
	require.NoError(t, err)
	client := limited(t, &service{}, set)
	require.Equal(t, codes.OK, call(within(t), client))
	_, err = client.UnaryCall(within(t), &pb.SimpleRequest{})
	require.Len(t, status.Convert(err).Details(), 2)
	violations := status.Convert(err).Details()[1].(*errdetails.QuotaFailure).GetViolations()
	require.Len(t, violations, 1)
	assert.Equal(t, "narrow", violations[0].GetQuotaId())
}
