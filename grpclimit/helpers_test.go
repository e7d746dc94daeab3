package grpclimit_test

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/grpclimit"
	"github.com/weir-go/weir/internal/leakcheck"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/rpclimit"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// burst returns a limiter with a burst of n tokens. One token comes back per second.
func burst(t testing.TB, n uint64) *engine.Limiter {
	return testclock.New().Burst(t, n)
}

// one returns limits with one limit.
func one(t testing.TB, l rpclimit.Limit, options ...rpclimit.Option) *rpclimit.Limits {
	t.Helper()
	if l.Name == "" {
		l.Name = "default"
	}
	set, err := rpclimit.New([]rpclimit.Limit{l}, options...)
	require.NoError(t, err)
	return set
}

// onMessages returns limits with one limit. The limit counts messages.
func onMessages(t testing.TB, l rpclimit.Limit, options ...rpclimit.Option) *rpclimit.Limits {
	t.Helper()
	l.Name = "default"
	set, err := rpclimit.New(nil, append(options, rpclimit.Messages(l))...)
	require.NoError(t, err)
	return set
}

// A service is a test server. If the request has an EchoStatus, the service ends the call with this status.
type service struct {
	pb.UnimplementedTestServiceServer
	unary    atomic.Int64 // number of unary calls so far
	messages atomic.Int64 // number of messages of streams so far
	swallow  bool         // the handler treats an error of Recv as a normal end
	onUnary  func(context.Context) error
}

func (s *service) EmptyCall(context.Context, *pb.Empty) (*pb.Empty, error) { return &pb.Empty{}, nil }

func (s *service) UnaryCall(ctx context.Context, req *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	s.unary.Add(1)
	if s.onUnary != nil {
		if err := s.onUnary(ctx); err != nil {
			return nil, err
		}
	}
	if e := req.GetResponseStatus(); e != nil {
		return nil, status.Error(codes.Code(e.GetCode()), e.GetMessage())
	}
	return &pb.SimpleResponse{}, nil
}

func (s *service) StreamingInputCall(stream pb.TestService_StreamingInputCallServer) error {
	for {
		_, err := stream.Recv()
		switch {
		case err == io.EOF || err != nil && s.swallow:
			return stream.SendAndClose(&pb.StreamingInputCallResponse{})
		case err != nil:
			return err
		}
		s.messages.Add(1)
	}
}

func (s *service) StreamingOutputCall(req *pb.StreamingOutputCallRequest, stream pb.TestService_StreamingOutputCallServer) error {
	for range req.GetResponseParameters() {
		if err := stream.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
	return nil
}

func (s *service) FullDuplexCall(stream pb.TestService_FullDuplexCallServer) error {
	for {
		req, err := stream.Recv()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		s.messages.Add(1)
		if e := req.GetResponseStatus(); e != nil {
			return status.Error(codes.Code(e.GetCode()), e.GetMessage())
		}
		if err := stream.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

// start starts a server on loopback, and returns its address.
func start(t testing.TB, s *service, options ...grpc.ServerOption) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return startAt(t, l, s, options...)
}

func startAt(t testing.TB, l net.Listener, s *service, options ...grpc.ServerOption) (address string) {
	t.Helper()
	server := grpc.NewServer(options...)
	pb.RegisterTestServiceServer(server, s)
	healthpb.RegisterHealthServer(server, health.NewServer())
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		<-served
	})
	return l.Addr().String()
}

// dial connects to a server.
func dial(t testing.TB, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func limited(t testing.TB, s *service, set *rpclimit.Limits) pb.TestServiceClient {
	t.Helper()
	return pb.NewTestServiceClient(dial(t, start(t, s, grpclimit.ServerOptions(set)...)))
}

// within returns a context with a deadline, so that a test that hangs fails.
func within(t testing.TB, pairs ...string) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

// call makes a call and returns its code.
func call(ctx context.Context, c pb.TestServiceClient) codes.Code {
	_, err := c.UnaryCall(ctx, &pb.SimpleRequest{})
	return status.Code(err)
}

// failing returns a request that fails with a code.
func failing(code codes.Code) *pb.SimpleRequest {
	return &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Code: int32(code), Message: "as asked"}}
}

// counts implements limits.Metrics and counts outcomes.
type counts struct{ seen [16]atomic.Int64 }

func (c *counts) Observe(_ string, o limits.Outcome) { c.seen[o].Add(1) }

func (c *counts) of(o limits.Outcome) int { return int(c.seen[o].Load()) }
