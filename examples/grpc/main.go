// A gRPC server. Each client gets ten tokens per minute, with a burst of five. The method List takes three tokens, and
// any other method takes one. README.md says how to try it.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/grpclimit"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/rpclimit"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:50051", "`address` to listen on")
	trust := flag.String("trust", "", "`addresses` of the proxies whose x-forwarded-for is trusted, such as 10.0.0.0/8")
	calls := flag.Int("calls", 7, "`number` of calls to make to itself, to show what a client sees")
	flag.Parse()

	var proxies []httplimit.IPOption
	if *trust != "" {
		proxies = append(proxies, httplimit.TrustProxies(strings.Split(*trust, ",")...))
	}
	ip := must(httplimit.NewClientIP(proxies...))
	tokens := must(engine.New(engine.TokenBucket(engine.Per(10, time.Minute), 5)))
	set := must(rpclimit.New([]rpclimit.Limit{{
		Name: "tokens", Limiter: tokens, Key: must(rpclimit.ClientAddr(ip)),
		Cost: must(rpclimit.MethodCosts(map[string]uint64{"/grpc.health.v1.Health/List": 3}, 1)),
	}}))

	server := grpc.NewServer(grpclimit.ServerOptions(set)...)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer()) // stands for your service

	listener := must(net.Listen("tcp", *listen))
	log.Printf("listening on grpc://%s", listener.Addr())
	go call(listener.Addr().String(), *calls)
	log.Fatal(server.Serve(listener))
}

func call(address string, calls int) {
	conn := must(grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())))
	defer conn.Close()
	client := grpc_health_v1.NewHealthClient(conn)
	for range calls {
		_, err := client.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
		wait := ""
		for _, detail := range status.Convert(err).Details() {
			if info, ok := detail.(*errdetails.RetryInfo); ok {
				wait = ", again in " + info.GetRetryDelay().AsDuration().String()
			}
		}
		log.Printf("Check: %v%s", status.Code(err), wait)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err) // the error names the value and the range
	}
	return v
}
