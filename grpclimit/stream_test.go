package grpclimit_test

import (
	"bytes"
	"context"
	"io"
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

// exchange sends n messages on a stream, each after the answer to the previous one. It returns how many were answered,
// and the code at the end of the stream.
func exchange(t testing.TB, client pb.TestServiceClient, n int, last codes.Code) (answered int, code codes.Code) {
	t.Helper()
	stream, err := client.FullDuplexCall(within(t))
	if err != nil {
		return 0, status.Code(err)
	}
	for i := range n {
		req := &pb.StreamingOutputCallRequest{}
		if i == n-1 && last != codes.OK {
			req.ResponseStatus = &pb.EchoStatus{Code: int32(last)}
		}
		if err := stream.Send(req); err != nil && err != io.EOF {
			return answered, status.Code(err)
		}
		if _, err := stream.Recv(); err != nil {
			return answered, status.Code(err)
		}
		answered++
	}
	if err := stream.CloseSend(); err != nil {
		return answered, status.Code(err)
	}
	if _, err = stream.Recv(); err == io.EOF {
		return answered, codes.OK
	}
	return answered, status.Code(err)
}

func TestStreamsCountWhenTheyOpen(t *testing.T) {
	client := limited(t, &service{}, one(t, rpclimit.Limit{Limiter: burst(t, 2)}))
	for _, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
		_, code := exchange(t, client, 5, codes.OK)
		assert.Equal(t, want, code)
	}
	assert.Equal(t, codes.ResourceExhausted, call(within(t), client), "calls of both kinds have one bucket")
}

func TestEveryMessageOfAStreamCounts(t *testing.T) {
	seen := &counts{}
	s := &service{}
	set, err := rpclimit.New([]rpclimit.Limit{{Name: "streams", Limiter: burst(t, 10)}},
		rpclimit.Messages(rpclimit.Limit{Name: "messages", Limiter: burst(t, 3)}), rpclimit.ObserveWith(seen))
	require.NoError(t, err)
	client := limited(t, s, set)
	answered, code := exchange(t, client, 5, codes.OK)
	assert.Equal(t, 3, answered)
	assert.Equal(t, codes.ResourceExhausted, code)
	assert.Equal(t, int64(3), s.messages.Load(), "the refused message does not reach the handler")
	assert.Equal(t, 4, seen.of(limits.Allowed))
	assert.Equal(t, 1, seen.of(limits.Refused))
	assert.Equal(t, codes.ResourceExhausted, call(within(t), client), "a unary call is a message, too")

	output, err := client.StreamingOutputCall(within(t), &pb.StreamingOutputCallRequest{})
	require.NoError(t, err)
	_, err = output.Recv()
	assert.Equal(t, codes.ResourceExhausted, status.Code(err), "and so is the request of a stream of answers")
}

// TestAHandlerCannotHideARefusal: the client gets the refusal even if the handler treats Recv's error as the stream's
// normal end.
func TestAHandlerCannotHideARefusal(t *testing.T) {
	client := limited(t, &service{swallow: true}, onMessages(t, rpclimit.Limit{Limiter: burst(t, 1)}))
	stream, err := client.StreamingInputCall(within(t))
	require.NoError(t, err)
	for range 3 {
		if err := stream.Send(&pb.StreamingInputCallRequest{}); err != nil {
			break
		}
	}
	_, err = stream.CloseAndRecv()
	st := status.Convert(err)
	assert.Equal(t, codes.ResourceExhausted, st.Code())
	require.Len(t, st.Details(), 2)
	assert.Equal(t, time.Second, st.Details()[0].(*errdetails.RetryInfo).GetRetryDelay().AsDuration())
}

func TestRefundOfAStream(t *testing.T) {
	client := limited(t, &service{}, one(t, rpclimit.Limit{Limiter: burst(t, 1), Refund: rpclimit.RefundCodes(codes.Unavailable)}))
	for range 3 {
		_, code := exchange(t, client, 2, codes.Unavailable)
		assert.Equal(t, codes.Unavailable, code)
	}
	_, code := exchange(t, client, 1, codes.OK)
	assert.Equal(t, codes.OK, code)
	_, code = exchange(t, client, 1, codes.OK)
	assert.Equal(t, codes.ResourceExhausted, code)
}

// TestAServerThatWaitsForMessages: if messages wait for their tokens, the server reads messages no faster than the
// limit allows.
func TestAServerThatWaitsForMessages(t *testing.T) {
	limiter, err := engine.New(engine.TokenBucket(engine.Per(1, 10*time.Millisecond), 1), engine.MaxKeys(10))
	require.NoError(t, err)
	defer limiter.Close()
	s := &service{}
	client := limited(t, s, onMessages(t, rpclimit.Limit{Limiter: limiter, MaxWait: engine.Never}))
	begin := time.Now()
	stream, err := client.StreamingInputCall(within(t))
	require.NoError(t, err)
	for range 6 {
		require.NoError(t, stream.Send(&pb.StreamingInputCallRequest{}))
	}
	_, err = stream.CloseAndRecv()
	require.NoError(t, err)
	assert.Equal(t, int64(6), s.messages.Load())
	assert.GreaterOrEqual(t, time.Since(begin), 50*time.Millisecond)
}

func TestAClientIsHeldBack(t *testing.T) {
	s := &service{}
	seen := &counts{}
	set := one(t, rpclimit.Limit{Limiter: burst(t, 2), Key: rpclimit.Target}, rpclimit.ObserveWith(seen))
	client := pb.NewTestServiceClient(dial(t, start(t, s), grpclimit.DialOptions(set)...))
	assert.Equal(t, codes.OK, call(within(t), client))
	_, code := exchange(t, client, 3, codes.OK)
	assert.Equal(t, codes.OK, code)
	assert.Equal(t, codes.ResourceExhausted, call(within(t), client))
	_, code = exchange(t, client, 1, codes.OK)
	assert.Equal(t, codes.ResourceExhausted, code)
	assert.Equal(t, int64(1), s.unary.Load(), "nothing was sent")
	assert.Equal(t, 2, seen.of(limits.Refused))
}

func TestAClientWaits(t *testing.T) {
	limiter, err := engine.New(engine.TokenBucket(engine.Per(1, 20*time.Millisecond), 1), engine.MaxKeys(10))
	require.NoError(t, err)
	defer limiter.Close()
	set := one(t, rpclimit.Limit{Limiter: limiter, MaxWait: engine.Never})
	client := pb.NewTestServiceClient(dial(t, start(t, &service{}), grpclimit.DialOptions(set)...))
	begin := time.Now()
	for range 4 {
		require.Equal(t, codes.OK, call(within(t), client))
	}
	assert.GreaterOrEqual(t, time.Since(begin), 60*time.Millisecond)

	slow, err := engine.New(engine.TokenBucket(engine.Per(1, time.Hour), 1), engine.MaxKeys(10))
	require.NoError(t, err)
	defer slow.Close()
	set = one(t, rpclimit.Limit{Limiter: slow, MaxWait: engine.Never})
	client = pb.NewTestServiceClient(dial(t, start(t, &service{}), grpclimit.DialOptions(set)...))
	require.Equal(t, codes.OK, call(within(t), client))
	assert.Equal(t, codes.ResourceExhausted, call(within(t), client), "the deadline would come first: it fails at once")
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	assert.Equal(t, codes.Canceled, call(ctx, client))
}

// TestAClientsMessagesAreHeldBack: a message that the client's limits refuse is not sent, and the stream ends on both
// sides.
func TestAClientsMessagesAreHeldBack(t *testing.T) {
	s := &service{}
	set := onMessages(t, rpclimit.Limit{Limiter: burst(t, 2), Key: rpclimit.Everyone})
	client := pb.NewTestServiceClient(dial(t, start(t, s), grpclimit.DialOptions(set)...))
	stream, err := client.StreamingInputCall(context.Background()) // only the refusal can cancel this context
	require.NoError(t, err)
	require.NoError(t, stream.Send(&pb.StreamingInputCallRequest{}))
	require.NoError(t, stream.Send(&pb.StreamingInputCallRequest{}))
	for range 2 {
		assert.Equal(t, codes.ResourceExhausted, status.Code(stream.Send(&pb.StreamingInputCallRequest{})))
	}
	_, err = stream.CloseAndRecv()
	assert.Equal(t, codes.ResourceExhausted, status.Code(err))
	assert.Len(t, status.Convert(err).Details(), 2)
	assert.Error(t, stream.Context().Err(), "the stream is over")
}

func TestAClientsRefunds(t *testing.T) {
	set := one(t, rpclimit.Limit{Limiter: burst(t, 1), Refund: rpclimit.RefundCodes(codes.Unavailable)})
	client := pb.NewTestServiceClient(dial(t, start(t, &service{}), grpclimit.DialOptions(set)...))
	for range 2 {
		_, err := client.UnaryCall(within(t), failing(codes.Unavailable))
		assert.Equal(t, codes.Unavailable, status.Code(err))
		_, code := exchange(t, client, 2, codes.Unavailable)
		assert.Equal(t, codes.Unavailable, code)
	}
	stream, err := client.StreamingInputCall(context.Background())
	require.NoError(t, err)
	_, err = stream.CloseAndRecv()
	require.NoError(t, err)
	assert.Error(t, stream.Context().Err(), "the answer was the end of the stream")
	assert.Equal(t, codes.ResourceExhausted, call(within(t), client))
}

// TestOutgoingMetadata: the limits of a client see the metadata that the client sends.
func TestOutgoingMetadata(t *testing.T) {
	key, err := rpclimit.MetadataValue("Tenant", rpclimit.Everyone)
	require.NoError(t, err)
	set := one(t, rpclimit.Limit{Limiter: burst(t, 1), Key: key})
	client := pb.NewTestServiceClient(dial(t, start(t, &service{}), grpclimit.DialOptions(set)...))
	assert.Equal(t, codes.OK, call(within(t, "tenant", "a"), client))
	assert.Equal(t, codes.ResourceExhausted, call(within(t, "tenant", "a"), client))
	assert.Equal(t, codes.OK, call(within(t, "tenant", "b"), client))
}

// TestABrokenStreamGetsNothingBack: a message that the server cannot read ends the stream with an error of the server.
// A client could cause this on purpose, so it must get nothing back.
func TestABrokenStreamGetsNothingBack(t *testing.T) {
	for name, options := range map[string][]grpc.CallOption{
		"malformed": {grpc.ForceCodec(garbage{})},
		"too large": {grpc.ForceCodec(garbage{size: 5 << 20}), grpc.MaxCallSendMsgSize(6 << 20)},
	} {
		t.Run(name, func(t *testing.T) {
			all := rpclimit.RefundCodes(codes.Internal, codes.ResourceExhausted, codes.Unavailable, codes.Unknown, codes.Canceled)
			server := grpc.NewServer(grpclimit.ServerOptions(one(t, rpclimit.Limit{Limiter: burst(t, 1), Refund: all}))...)
			pb.RegisterTestServiceServer(server, &service{})
			client := pb.NewTestServiceClient(dial(t, serveHTTP(t, server))) // its context ends later than the stream
			stream, err := client.StreamingInputCall(within(t), options...)
			require.NoError(t, err)
			require.NoError(t, stream.Send(&pb.StreamingInputCallRequest{}))
			_, err = stream.CloseAndRecv()
			require.Contains(t, []codes.Code{codes.Internal, codes.ResourceExhausted}, status.Code(err))
			_, code := exchange(t, client, 1, codes.OK)
			assert.Equal(t, codes.ResourceExhausted, code)
		})
	}
}

// garbage is a codec that writes bytes that are not a message.
type garbage struct{ size int }

func (garbage) Name() string { return "proto" }

func (g garbage) Marshal(any) ([]byte, error) {
	return bytes.Repeat([]byte{0xff}, max(g.size, 16)), nil
}

func (garbage) Unmarshal([]byte, any) error { return nil }

// A scripted is a stream whose RecvMsg and SendMsg return the results that the test has set.
type scripted struct {
	grpc.ServerStream
	recv, send error
	received   int
}

func (s *scripted) Context() context.Context { return context.Background() }

func (s *scripted) RecvMsg(any) error {
	s.received++
	return s.recv
}

func (s *scripted) SendMsg(any) error { return s.send }

func (s *scripted) SetTrailer(metadata.MD) {}

// TestARefusedStreamStaysRefused: a handler that continues after a refusal receives nothing more, even after tokens
// have come back.
func TestARefusedStreamStaysRefused(t *testing.T) {
	c := testclock.New()
	set := onMessages(t, rpclimit.Limit{Limiter: c.Limiter(t, engine.TokenBucket(engine.PerSecond(1), 1))})
	ss := &scripted{}
	err := grpclimit.StreamServer(set)(ss, ss, &grpc.StreamServerInfo{FullMethod: "/a.B/C"}, func(_ any, stream grpc.ServerStream) error {
		require.NoError(t, stream.RecvMsg(nil))
		for range 3 {
			assert.Equal(t, codes.ResourceExhausted, status.Code(stream.RecvMsg(nil)))
			c.Advance(time.Second)
		}
		return nil
	})
	assert.Equal(t, codes.ResourceExhausted, status.Code(err))
	assert.Equal(t, 2, ss.received)
}

// TestAStreamThatCannotBeSentGetsNothingBack: if the server cannot send, the client may have left on purpose, so it
// gets nothing back.
func TestAStreamThatCannotBeSentGetsNothingBack(t *testing.T) {
	set := one(t, rpclimit.Limit{Limiter: burst(t, 1), Refund: rpclimit.RefundCodes(codes.Unavailable)})
	ss := &scripted{send: status.Error(codes.Unavailable, "transport is closing")}
	for _, want := range []string{"transport is closing", "rate limit exceeded"} {
		err := grpclimit.StreamServer(set)(ss, ss, &grpc.StreamServerInfo{FullMethod: "/a.B/C"}, func(_ any, stream grpc.ServerStream) error {
			return stream.SendMsg(nil)
		})
		assert.Equal(t, want, status.Convert(err).Message())
	}
}

func TestPushbackOfStreams(t *testing.T) {
	for on, set := range map[string]*rpclimit.Limits{
		"calls": one(t, rpclimit.Limit{Limiter: burst(t, 1)}), "messages": onMessages(t, rpclimit.Limit{Limiter: burst(t, 2)}),
	} {
		client, tokens := limited(t, &service{}, set), 1
		if set.CountMessages() {
			tokens = 2
		}
		_, code := exchange(t, client, tokens, codes.OK)
		require.Equal(t, codes.OK, code)
		stream, err := client.FullDuplexCall(within(t))
		require.NoError(t, err)
		require.NoError(t, stream.Send(&pb.StreamingOutputCallRequest{}))
		_, err = stream.Recv()
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		assert.Equal(t, []string{"1000"}, stream.Trailer().Get("grpc-retry-pushback-ms"), on)
	}
}

// TestCostsByMessage: the functions of a limit get the message, for unary calls and for streams.
func TestCostsByMessage(t *testing.T) {
	size := func(c rpclimit.Call) uint64 {
		switch m := c.Message.(type) {
		case *pb.SimpleRequest:
			return uint64(m.GetResponseSize())
		case *pb.StreamingInputCallRequest:
			return uint64(len(m.GetPayload().GetBody()))
		}
		return 100
	}
	for name, side := range map[string]func(*rpclimit.Limits) pb.TestServiceClient{
		"server": func(l *rpclimit.Limits) pb.TestServiceClient { return limited(t, &service{}, l) },
		"client": func(l *rpclimit.Limits) pb.TestServiceClient {
			return pb.NewTestServiceClient(dial(t, start(t, &service{}), grpclimit.DialOptions(l)...))
		},
	} {
		limiter := burst(t, 10)
		client := side(onMessages(t, rpclimit.Limit{Limiter: limiter, Cost: size, Key: rpclimit.Everyone}))
		_, err := client.UnaryCall(within(t), &pb.SimpleRequest{ResponseSize: 4})
		require.NoError(t, err, name)
		stream, err := client.StreamingInputCall(within(t))
		require.NoError(t, err)
		require.NoError(t, stream.Send(&pb.StreamingInputCallRequest{Payload: &pb.Payload{Body: make([]byte, 5)}}))
		_, err = stream.CloseAndRecv()
		require.NoError(t, err, name)
		assert.Equal(t, uint64(1), limiter.Peek(limiter.KeyUint64(0), 1).Remaining, name)
	}
}

// TestAClientsStreamThatDoesNotOpen: a stream that cannot be opened ends with the code of the error. A stream with a
// single reply ends with the code of the reply.
func TestAClientsStreamThatDoesNotOpen(t *testing.T) {
	set := one(t, rpclimit.Limit{Limiter: burst(t, 1), Refund: rpclimit.RefundCodes(codes.Unavailable, codes.OK)})
	intercept := grpclimit.StreamClient(set)
	for range 2 {
		_, err := intercept(context.Background(), &grpc.StreamDesc{}, nil, "/a.B/C",
			func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
				return nil, status.Error(codes.Unavailable, "no connection")
			})
		assert.Equal(t, codes.Unavailable, status.Code(err))
	}
	client := pb.NewTestServiceClient(dial(t, start(t, &service{}), grpclimit.DialOptions(set)...))
	for range 2 {
		stream, err := client.StreamingInputCall(context.Background())
		require.NoError(t, err)
		_, err = stream.CloseAndRecv()
		require.NoError(t, err)
	}
}

// TestAClientsRefusedStreamStaysRefused: after a refused message, further messages are refused, even if tokens came
// back.
func TestAClientsRefusedStreamStaysRefused(t *testing.T) {
	c := testclock.New()
	set := onMessages(t, rpclimit.Limit{Limiter: c.Limiter(t, engine.TokenBucket(engine.PerSecond(1), 1))})
	client := pb.NewTestServiceClient(dial(t, start(t, &service{}), grpclimit.DialOptions(set)...))
	stream, err := client.StreamingInputCall(context.Background())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&pb.StreamingInputCallRequest{}))
	require.Error(t, stream.Send(&pb.StreamingInputCallRequest{}))
	c.Advance(time.Second)
	assert.Equal(t, codes.ResourceExhausted, status.Code(stream.Send(&pb.StreamingInputCallRequest{})))
}

// TestTargets: with [rpclimit.Target] as the key, each server has its own bucket.
func TestTargets(t *testing.T) {
	set := one(t, rpclimit.Limit{Limiter: burst(t, 1), Key: rpclimit.Target})
	for range 2 {
		client := pb.NewTestServiceClient(dial(t, start(t, &service{}), grpclimit.DialOptions(set)...))
		assert.Equal(t, codes.OK, call(within(t), client))
		assert.Equal(t, codes.ResourceExhausted, call(within(t), client))
	}
}
