package grpclimit_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/grpclimit"
	"github.com/weir-go/weir/rpclimit"
)

// stopped is a clock that stands still, so that the output is always the same. The default is the system's clock.
var stopped = engine.ClockFunc(func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) })

// Each client address may make one call per second, with a burst of two.
func ExampleServerOptions() {
	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 2), stopped)
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	set, err := rpclimit.New([]rpclimit.Limit{{Name: "default", Limiter: limiter}})
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(grpclimit.ServerOptions(set)...)
	healthpb.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go server.Serve(listener)
	defer server.Stop()

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	client := healthpb.NewHealthClient(conn)
	for range 3 {
		_, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{})
		fmt.Println(status.Code(err))
		for _, detail := range status.Convert(err).Details() {
			if info, ok := detail.(*errdetails.RetryInfo); ok {
				fmt.Println("again in", info.GetRetryDelay().AsDuration())
			}
		}
	}
	// Output:
	// OK
	// OK
	// ResourceExhausted
	// again in 1s
}

// In this example, a client waits before its calls, so that it stays within the limit of a server.
func ExampleDialOptions() {
	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(10), 1), stopped)
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	set, err := rpclimit.New([]rpclimit.Limit{{Name: "api", Limiter: limiter, Key: rpclimit.Target, MaxWait: engine.Never}})
	if err != nil {
		panic(err)
	}
	conn, err := grpc.NewClient("dns:///api.example.com", append(grpclimit.DialOptions(set),
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	// Every call on conn now waits for its token until its context is done.
}
