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
func Register(registrar grpc.ServiceRegistrar, s Server) {
	registrar.RegisterService(&grpc.ServiceDesc{
		ServiceName: Name, HandlerType: (*Server)(nil), Metadata: "kuadrantrls.proto", Methods: []grpc.MethodDesc{
			method("CheckRateLimit", Server.CheckRateLimit), method("Report", Server.Report),
			method("Reserve", Server.Reserve), method("Commit", Server.Commit),
		},
	}, s)
}

func method[In, Out any](name string, call func(Server, context.Context, *In) (*Out, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(s any, ctx context.Context, decode func(any) error,
		intercept grpc.UnaryServerInterceptor) (any, error) {
		request := new(In)
		if err := decode(request); err != nil {
			return nil, err
		}
		handle := func(ctx context.Context, request any) (any, error) { return call(s.(Server), ctx, request.(*In)) }
		if intercept == nil {
			return handle(ctx, request)
		}
		return intercept(ctx, request, &grpc.UnaryServerInfo{Server: s, FullMethod: "/" + Name + "/" + name}, handle)
	}}
}
