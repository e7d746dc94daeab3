// Package kuadrant has the messages of Kuadrant's rate limit service (kuadrantrls.proto), and registers
// implementations. kuadrantrls.pb.go is generated.
package kuadrant

import (
	"context"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
)

// Name is the name of the service.
const Name = "kuadrant.service.ratelimit.v1.RateLimitService"

// A Server implements the service.
type Server interface {
	CheckRateLimit(context.Context, *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error)
	Report(context.Context, *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error)
	Reserve(context.Context, *ReserveRequest) (*ReserveResponse, error)
	Commit(context.Context, *CommitRequest) (*CommitResponse, error)
}

// Register registers s with a gRPC server.
func Register(to grpc.ServiceRegistrar, s Server) {
	to.RegisterService(&grpc.ServiceDesc{
		ServiceName: Name, HandlerType: (*Server)(nil), Metadata: "kuadrantrls.proto", Methods: []grpc.MethodDesc{
			method("CheckRateLimit", Server.CheckRateLimit), method("Report", Server.Report),
			method("Reserve", Server.Reserve), method("Commit", Server.Commit),
		},
	}, s)
}

func method[In, Out any](name string, call func(Server, context.Context, *In) (*Out, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(s any, ctx context.Context, decode func(any) error,
		intercept grpc.UnaryServerInterceptor) (any, error) {
		in := new(In)
		if err := decode(in); err != nil {
			return nil, err
		}
		handle := func(ctx context.Context, in any) (any, error) { return call(s.(Server), ctx, in.(*In)) }
		if intercept == nil {
			return handle(ctx, in)
		}
		return intercept(ctx, in, &grpc.UnaryServerInfo{Server: s, FullMethod: "/" + Name + "/" + name}, handle)
	}}
}
