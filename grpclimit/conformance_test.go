package grpclimit_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/weir-go/weir/grpclimit"
	"github.com/weir-go/weir/grpclimit/internal/promisetest"
	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/internal/conformance/rpcfront"
	"github.com/weir-go/weir/rpclimit"
)

// TestConformance runs the conformance cases without a store. Module redislimit runs the cases with a store.
func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Front{
		Name: "gRPC", Promise: promisetest.Promise(1, nil), Runs: rpcfront.Runs, InBubble: rpcfront.InBubble,
		Start: func(env *conformance.Env, c conformance.Config) (conformance.Server, error) {
			s := &conforming{env: env, limiters: conformance.Limiters{Env: env}}
			if err := s.Reload(c); err != nil {
				return nil, err
			}
			s.start()
			return s, nil
		},
	})
}

// conforming is a server whose limits can change, together with a client of this server.
type conforming struct {
	env      *conformance.Env
	limiters conformance.Limiters
	current  atomic.Pointer[inForce]
	server   *grpc.Server
	client   *grpc.ClientConn
	served   chan struct{}
}

type inForce struct {
	limits []conformance.Limit
	unary  grpc.UnaryServerInterceptor
}

func (s *conforming) Reload(c conformance.Config) error {
	limits, err := rpcfront.Limits(&s.limiters, c)
	if err == nil {
		s.current.Store(&inForce{c.Limits, grpclimit.UnaryServer(limits)})
	}
	return err
}

func (s *conforming) start() {
	desc := grpc.ServiceDesc{ServiceName: "conformance.Front", HandlerType: (*any)(nil)}
	for _, method := range rpcfront.Methods {
		desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: method[strings.LastIndex(method, "/")+1:],
			Handler: func(_ any, ctx context.Context, dec func(any) error, through grpc.UnaryServerInterceptor) (any, error) {
				request := &emptypb.Empty{}
				if err := dec(request); err != nil {
					return nil, err
				}
				return through(ctx, request, &grpc.UnaryServerInfo{FullMethod: method}, s.handle)
			}})
	}
	s.server = grpc.NewServer(grpc.ChainUnaryInterceptor(recovering, s.limited))
	s.server.RegisterService(&desc, nil)
	target := "passthrough:///pipe"
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	var l net.Listener
	if s.env.InBubble() {
		pipe := bufconn.Listen(1 << 16)
		l = pipe
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return pipe.DialContext(ctx)
		}))
	} else {
		var err error
		l, err = net.Listen("tcp", "127.0.0.1:0")
		require.NoError(s.env.T, err)
		target = l.Addr().String()
	}
	s.served = make(chan struct{})
	go func() {
		defer close(s.served)
		_ = s.server.Serve(l)
	}()
	var err error
	s.client, err = grpc.NewClient(target, options...)
	require.NoError(s.env.T, err)
}

// recovering is an interceptor that recovers from panics. Without it, a handler that panics would end the server.
func recovering(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer func() {
		if recover() != nil {
			err = status.Error(codes.Internal, "broken")
		}
	}()
	return next(ctx, req)
}

func (s *conforming) limited(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	return s.current.Load().unary(ctx, req, info, next)
}

func (s *conforming) handle(ctx context.Context, _ any) (any, error) {
	id := metadata.ValueFromIncomingContext(ctx, rpcfront.ID)
	code := rpcfront.Serve(ctx, s.env, id[0], s.current.Load().limits)
	return &emptypb.Empty{}, status.Error(codes.Code(code), "as asked")
}

func (s *conforming) Send(ctx context.Context, q conformance.Request) conformance.Answer {
	ctx = metadata.NewOutgoingContext(ctx, metadata.New(rpcfront.Metadata(q)))
	err := s.client.Invoke(ctx, rpcfront.Method(q.Path), &emptypb.Empty{}, &emptypb.Empty{})
	a := rpcfront.Code(rpclimit.Code(status.Code(err)), err)
	for _, detail := range status.Convert(err).Details() {
		switch detail := detail.(type) {
		case *errdetails.RetryInfo:
			a.RetryAfter = detail.GetRetryDelay().AsDuration()
		case *errdetails.QuotaFailure:
			for _, v := range detail.GetViolations() {
				a.Refused = append(a.Refused, v.GetQuotaId())
			}
		}
	}
	return a
}

func (s *conforming) Close() {
	_ = s.client.Close()
	s.server.Stop()
	<-s.served
}
