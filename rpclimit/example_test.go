package rpclimit_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/rpclimit"
)

// stopped is a clock that stands still, so that the output of the examples is always the same. A program needs no such
// option: the default is the system's clock.
var stopped = engine.ClockFunc(func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) })

// A front for another framework checks a call against the limits, and ends the call.
func Example() {
	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 2), stopped)
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	set, err := rpclimit.New([]rpclimit.Limit{{Name: "default", Limiter: limiter}})
	if err != nil {
		panic(err)
	}
	call := rpclimit.Call{Context: context.Background(), Method: "/shop.Orders/Get", Peer: netip.MustParseAddr("203.0.113.7")}
	for range 3 {
		res := set.Decide(call)
		fmt.Println(res.Code(), res.Reason(), res.RetryAfter())
	}
	// Output:
	// 0  0s
	// 0  0s
	// 8 rate limit exceeded 1s
}

// Each API key has a bucket for each service. For a call without an API key, the key is the client's address. Proxies
// in 10.0.0.0/8 are trusted.
func ExampleJoin() {
	ip, err := httplimit.NewClientIP(httplimit.TrustProxies("10.0.0.0/8"))
	if err != nil {
		panic(err)
	}
	client, err := rpclimit.ClientAddr(ip)
	if err != nil {
		panic(err)
	}
	apiKey, err := rpclimit.MetadataValue("x-api-key", client)
	if err != nil {
		panic(err)
	}
	service, err := rpclimit.MethodOf("/shop.Orders/*", "/shop.Search/*")
	if err != nil {
		panic(err)
	}
	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), stopped)
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	set, err := rpclimit.New([]rpclimit.Limit{{Name: "client", Limiter: limiter, Key: rpclimit.Join(apiKey, service)}})
	if err != nil {
		panic(err)
	}
	for _, method := range []string{"/shop.Orders/Get", "/shop.Orders/List", "/shop.Search/Find"} {
		res := set.Decide(rpclimit.Call{Method: method, Peer: netip.MustParseAddr("203.0.113.7")})
		fmt.Println(method, res.Allowed())
	}
	// Output:
	// /shop.Orders/Get true
	// /shop.Orders/List false
	// /shop.Search/Find true
}

// Writes cost five tokens. If the server could not serve a call, the call gets its cost back.
func ExampleMethodCosts() {
	cost, err := rpclimit.MethodCosts(map[string]uint64{"/shop.Orders/Create": 5}, 1)
	if err != nil {
		panic(err)
	}
	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 10), stopped)
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	set, err := rpclimit.New([]rpclimit.Limit{{Name: "orders", Limiter: limiter, Cost: cost,
		Refund: rpclimit.RefundCodes(rpclimit.Unavailable)}})
	if err != nil {
		panic(err)
	}
	for _, code := range []rpclimit.Code{rpclimit.OK, rpclimit.Unavailable, rpclimit.OK, rpclimit.OK} {
		res := set.Decide(rpclimit.Call{Method: "/shop.Orders/Create"})
		fmt.Println(res.Allowed())
		res.Finish(code)
	}
	// Output:
	// true
	// true
	// true
	// false
}
