package grpclimit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/grpclimit"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/rpclimit"
)

// inFlight returns a limit of n calls in flight for all clients together. The function left returns how many more calls
// may enter.
func inFlight(t testing.TB, n uint64) (set *rpclimit.Limits, left func() uint64) {
	l := testclock.New().Limiter(t, engine.Concurrency(n, time.Hour))
	return one(t, rpclimit.Limit{Limiter: l, Key: rpclimit.Everyone}), func() uint64 { return l.Peek(l.KeyUint64(0), 0).Remaining }
}

var ends = map[string]func() error{
	"well":    func() error { return nil },
	"badly":   func() error { return status.Error(codes.Unavailable, "as asked") },
	"a panic": func() error { panic("as asked") },
}

// quietly calls f and ignores a panic.
func quietly(f func()) {
	defer func() { _ = recover() }()
	f()
}

// TestACallIsInFlightUntilItsHandlerReturns: in a server, a unary call or a stream is in flight until its handler
// returns or panics.
func TestACallIsInFlightUntilItsHandlerReturns(t *testing.T) {
	for name, end := range ends {
		set, left := inFlight(t, 1)
		intercept, stream := grpclimit.UnaryServer(set), grpclimit.StreamServer(set)
		inside := func() error {
			assert.Zero(t, left(), name)
			_, err := intercept(incoming(), nil, info, answer)
			assert.Equal(t, codes.ResourceExhausted, status.Code(err), name)
			return end()
		}
		for range 2 {
			quietly(func() {
				_, _ = intercept(incoming(), nil, info, func(context.Context, any) (any, error) { return nil, inside() })
			})
			require.EqualValues(t, 1, left(), name)
			quietly(func() {
				_ = stream(set, &fakeStream{ctx: incoming()}, &grpc.StreamServerInfo{FullMethod: info.FullMethod},
					func(any, grpc.ServerStream) error { return inside() })
			})
			require.EqualValues(t, 1, left(), name)
		}
		broken := &scripted{recv: errors.New("gone"), send: errors.New("gone")}
		_ = stream(set, broken, &grpc.StreamServerInfo{FullMethod: info.FullMethod}, func(_ any, s grpc.ServerStream) error {
			assert.Zero(t, left())
			return s.RecvMsg(nil)
		})
		require.EqualValues(t, 1, left(), "the client has gone")
	}
}

// TestARefusalByALimitInFlight: the error names the limit. It does not say when to retry, because this is not known.
func TestARefusalByALimitInFlight(t *testing.T) {
	set, left := inFlight(t, 1)
	entered, leave := make(chan struct{}), make(chan struct{})
	client := limited(t, &service{onUnary: func(context.Context) error { close(entered); <-leave; return nil }}, set)
	first := make(chan codes.Code, 1)
	go func() { first <- call(within(t), client) }()
	<-entered
	var trailer metadata.MD
	_, err := client.UnaryCall(within(t), &pb.SimpleRequest{}, grpc.Trailer(&trailer))
	st := status.Convert(err)
	assert.Equal(t, codes.ResourceExhausted, st.Code())
	assert.Equal(t, "too many calls are in flight", st.Message())
	require.Len(t, st.Details(), 1)
	assert.Equal(t, "default", st.Details()[0].(*errdetails.QuotaFailure).GetViolations()[0].GetQuotaId())
	assert.Empty(t, trailer.Get("grpc-retry-pushback-ms"))
	close(leave)
	assert.Equal(t, codes.OK, <-first)
	assert.EqualValues(t, 1, left())
}

// TestAClientThatGoesIsNotInFlight: the place of a canceled stream is given back when the server's handler ends.
func TestAClientThatGoesIsNotInFlight(t *testing.T) {
	set, left := inFlight(t, 1)
	client := limited(t, &service{}, set)
	ctx, cancel := context.WithCancel(within(t))
	stream, err := client.FullDuplexCall(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(&pb.StreamingOutputCallRequest{}))
	_, err = stream.Recv()
	require.NoError(t, err)
	assert.Zero(t, left())
	cancel()
	require.Eventually(t, func() bool { return left() == 1 }, time.Minute, time.Millisecond)
}

// TestACallOfAClientIsInFlightUntilItEnds: a call may end in any way, and the client may or may not receive the end.
// Then the call is no longer in flight.
func TestACallOfAClientIsInFlightUntilItEnds(t *testing.T) {
	for name, end := range ends {
		set, left := inFlight(t, 1)
		quietly(func() {
			_ = grpclimit.UnaryClient(set)(t.Context(), "/a.B/C", nil, nil, nil,
				func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					assert.Zero(t, left(), name)
					return end()
				})
		})
		require.EqualValues(t, 1, left(), name)
		var stream grpc.ClientStream
		quietly(func() {
			stream, _ = grpclimit.StreamClient(set)(t.Context(), &grpc.StreamDesc{}, nil, "/a.B/C",
				func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
					assert.Zero(t, left(), name)
					return &unsent{}, end()
				})
		})
		if stream != nil {
			require.Zero(t, left(), "it is open")
			require.Error(t, stream.SendMsg(nil))
		}
		require.EqualValues(t, 1, left(), name)
	}

	set, left := inFlight(t, 1)
	client := pb.NewTestServiceClient(dial(t, start(t, &service{}), grpclimit.DialOptions(set)...))
	_, code := exchange(t, client, 3, codes.OK)
	require.Equal(t, codes.OK, code)
	require.EqualValues(t, 1, left(), "it has ended")
	ctx, cancel := context.WithCancel(within(t))
	stream, err := client.FullDuplexCall(ctx)
	require.NoError(t, err)
	_, err = client.FullDuplexCall(within(t))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.NoError(t, stream.Send(&pb.StreamingOutputCallRequest{}))
	cancel() // the client does not receive the end
	require.Eventually(t, func() bool { return left() == 1 }, time.Minute, time.Millisecond)
}

// TestACallOfAClientWhoseEndNobodyReceives: gRPC requires that a client receives until it gets an error, closes the
// connection, or calls Header until there is no header. In the last two cases, the place of the call is given back,
// too.
func TestACallOfAClientWhoseEndNobodyReceives(t *testing.T) {
	address := start(t, &service{})
	for name, end := range map[string]func(pb.TestService_FullDuplexCallClient, *grpc.ClientConn){
		"the connection is closed": func(_ pb.TestService_FullDuplexCallClient, conn *grpc.ClientConn) { conn.Close() },
		"there is no header": func(stream pb.TestService_FullDuplexCallClient, _ *grpc.ClientConn) {
			require.NoError(t, stream.CloseSend())
			_, _ = stream.Header()
		},
	} {
		set, left := inFlight(t, 1)
		conn := dial(t, address, grpclimit.DialOptions(set)...)
		stream, err := pb.NewTestServiceClient(conn).FullDuplexCall(t.Context())
		require.NoError(t, err)
		require.Zero(t, left(), name)
		end(stream, conn)
		assert.Eventually(t, func() bool { return left() == 1 }, 5*time.Second, time.Millisecond, name)
	}
}

// unsent is a stream on which nothing can be sent.
type unsent struct{ grpc.ClientStream }

func (*unsent) SendMsg(any) error { return errors.New("it cannot be encoded") }

// TestAMessageThatIsRefusedEndsTheCallInFlight: if a client's limits refuse a message, the call ends and gives its
// place in flight back.
func TestAMessageThatIsRefusedEndsTheCallInFlight(t *testing.T) {
	gate := testclock.New().Limiter(t, engine.Concurrency(1, time.Hour))
	set, err := rpclimit.New([]rpclimit.Limit{{Name: "gate", Limiter: gate, Key: rpclimit.Everyone}},
		rpclimit.Messages(rpclimit.Limit{Name: "messages", Limiter: burst(t, 1), Key: rpclimit.Everyone}))
	require.NoError(t, err)
	client := pb.NewTestServiceClient(dial(t, start(t, &service{}), grpclimit.DialOptions(set)...))
	stream, err := client.StreamingInputCall(within(t))
	require.NoError(t, err)
	require.NoError(t, stream.Send(&pb.StreamingInputCallRequest{}))
	require.Error(t, stream.Send(&pb.StreamingInputCallRequest{}))
	assert.EqualValues(t, 1, gate.Peek(gate.KeyUint64(0), 0).Remaining)
}

func TestHandlersSettle(t *testing.T) {
	tokens := testclock.New().Limiter(t, engine.FixedWindow(100, time.Hour))
	set := one(t, rpclimit.Limit{Limiter: tokens, Key: rpclimit.Everyone, Hold: true, Cost: func(rpclimit.Call) uint64 { return 40 }})
	left := func() uint64 { return tokens.Peek(tokens.KeyUint64(0), 0).Remaining }
	client := limited(t, &service{onUnary: func(ctx context.Context) error {
		limits.HoldFrom(ctx, "default").Settle(10)
		return nil
	}}, set)
	require.Equal(t, codes.OK, call(within(t), client))
	assert.EqualValues(t, 90, left())
	stream := &fakeStream{ctx: incoming()}
	require.NoError(t, grpclimit.StreamServer(set)(stream, stream, &grpc.StreamServerInfo{FullMethod: info.FullMethod},
		func(_ any, s grpc.ServerStream) error {
			limits.HoldFrom(s.Context(), "default").Settle(60)
			return nil
		}))
	assert.EqualValues(t, 30, left())
	assert.Equal(t, codes.ResourceExhausted, call(within(t), client))
}
