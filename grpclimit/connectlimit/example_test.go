package connectlimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/grpclimit/connectlimit"
	"github.com/weir-go/weir/rpclimit"
)

// stopped is a clock that stands still, so that the output is always the same. The default is the system's clock.
var stopped = engine.ClockFunc(func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) })

// Each client address may make one call per second, with a burst of two.
func ExampleNew() {
	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 2), stopped)
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	set, err := rpclimit.New([]rpclimit.Limit{{Name: "default", Limiter: limiter}})
	if err != nil {
		panic(err)
	}
	const procedure = "/example.Numbers/Double"
	double := func(_ context.Context, r *connect.Request[wrapperspb.Int64Value]) (*connect.Response[wrapperspb.Int64Value], error) {
		return connect.NewResponse(wrapperspb.Int64(2 * r.Msg.GetValue())), nil
	}
	mux := http.NewServeMux()
	mux.Handle(procedure, connect.NewUnaryHandler(procedure, double, connect.WithInterceptors(connectlimit.New(set))))
	server := httptest.NewServer(mux)
	defer server.Close()

	client := connect.NewClient[wrapperspb.Int64Value, wrapperspb.Int64Value](server.Client(), server.URL+procedure)
	for i := range int64(3) {
		resp, err := client.CallUnary(context.Background(), connect.NewRequest(wrapperspb.Int64(i)))
		if err != nil {
			fmt.Println(connect.CodeOf(err))
			continue
		}
		fmt.Println(resp.Msg.GetValue())
	}
	// Output:
	// 0
	// 2
	// resource_exhausted
}
