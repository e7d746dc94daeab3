// A server with a Connect handler, which answers clients of Connect, gRPC and gRPC-Web. Each client gets ten tokens per
// minute, with a burst of five. A call takes one token for each hundred bytes of its message, rounded up. README.md
// says how to try it.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/grpclimit/connectlimit"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/rpclimit"
)

// procedure stands for one of your procedures. It uses message types that come with Protocol Buffers.
const procedure = "/example.v1.Text/Upper"

func upper(_ context.Context, r *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
	return connect.NewResponse(wrapperspb.String(strings.ToUpper(r.Msg.GetValue()))), nil
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "`address` to listen on")
	trust := flag.String("trust", "", "`addresses` of the proxies whose X-Forwarded-For is trusted, such as 10.0.0.0/8")
	flag.Parse()

	var proxies []httplimit.IPOption
	if *trust != "" {
		proxies = append(proxies, httplimit.TrustProxies(strings.Split(*trust, ",")...))
	}
	ip := must(httplimit.NewClientIP(proxies...))
	tokens := must(engine.New(engine.TokenBucket(engine.Per(10, time.Minute), 5)))
	set := must(rpclimit.New([]rpclimit.Limit{{
		Name: "tokens", Limiter: tokens, Key: must(rpclimit.ClientAddr(ip)), Cost: byLength,
	}}))

	mux := http.NewServeMux()
	mux.Handle(procedure, connect.NewUnaryHandler(procedure, upper,
		connect.WithInterceptors(connectlimit.New(set)), connect.WithReadMaxBytes(1<<20)))

	listener := must(net.Listen("tcp", *listen))
	log.Printf("listening on http://%s", listener.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true) // for clients of gRPC
	log.Fatal(server.Serve(listener))
}

// byLength returns the cost of a call. A message of more than five hundred bytes costs more than the burst, so its call
// is always refused.
func byLength(c rpclimit.Call) uint64 {
	message, _ := c.Message.(proto.Message) // a nil message has no bytes
	return 1 + uint64(proto.Size(message))/100
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err) // the error names the value and the range
	}
	return v
}
