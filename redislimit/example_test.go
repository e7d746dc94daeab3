package redislimit_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/redislimit"
)

// store starts a store in this process, and returns its address.
func store() (address string, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	server.SetTime(time.Unix(1_800_000_000, 0)) // this clock stands still, so no tokens come back
	return "redis://" + server.Addr(), server.Close
}

func Example() {
	address, stop := store()
	defer stop()

	ctx := context.Background()
	client, err := redislimit.Open(ctx, address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	logins, err := redislimit.New(client, "login", engine.TokenBucket(engine.Per(5, time.Minute), 2))
	if err != nil {
		log.Fatal(err)
	}
	defer logins.Close()

	for range 3 {
		decision, err := logins.Take(ctx, "192.0.2.1", 1)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(decision.Allowed, decision.Remaining, decision.RetryAfter)
	}
	// Output:
	// true 1 0s
	// true 0 0s
	// false 0 12s
}

// Two nodes, which would run on two machines, share one limit.
func ExampleNew() {
	address, stop := store()
	defer stop()

	ctx := context.Background()
	policy := engine.SlidingWindow(3, time.Minute)
	for node := range 2 {
		client, err := redislimit.Open(ctx, address)
		if err != nil {
			log.Fatal(err)
		}
		defer client.Close()
		limiter, err := redislimit.New(client, "uploads", policy, redislimit.OnLoss(redislimit.FailClosed))
		if err != nil {
			log.Fatal(err)
		}
		defer limiter.Close()
		decision, err := limiter.Take(ctx, "alice", 2)
		fmt.Println("node", node, decision.Allowed, err)
	}
	// Output:
	// node 0 true <nil>
	// node 1 false <nil>
}

// Check needs no store.
func ExampleCheck() {
	fmt.Println(redislimit.Check("api", engine.TokenBucket(engine.PerSecond(1000), 200)))
	fmt.Println(redislimit.Check("api", engine.SlidingLog(5000, time.Minute)))
	// Output:
	// <nil>
	// redislimit: api: sliding log 5000/1m0s: limit of 5000 tokens: want 1 to 4096
}

func ExampleLimiter_Mode() {
	address, stop := store()
	defer stop()

	client, err := redislimit.Open(context.Background(), address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for name, policy := range map[string]engine.Policy{
		"logins": engine.TokenBucket(engine.Per(5, time.Minute), 5),
		"api":    engine.TokenBucket(engine.PerSecond(1000), 200),
	} {
		limiter, err := redislimit.New(client, name, policy)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, limiter.Mode())
		limiter.Close()
	}
	// Unordered output:
	// logins strict
	// api leased
}

// The limit depends on the plan of the request's API key.
func ExampleLimiter_Quota() {
	address, stop := store()
	defer stop()

	client, err := redislimit.Open(context.Background(), address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	limiter, err := redislimit.New(client, "plans", engine.TokenBuckets(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	defer limiter.Close()

	trial, err := limiter.Quota(engine.TokenBucket(engine.Per(10, time.Hour), 10))
	if err != nil {
		log.Fatal(err)
	}
	d, err := trial.Take(context.Background(), "customer-7", 4)
	fmt.Println(d.Allowed, d.Remaining, err)

	bought, err := limiter.Quota(engine.TokenBucket(engine.Per(1000, time.Hour), 1000)) // the key still owes its tokens
	if err != nil {
		log.Fatal(err)
	}
	d, err = bought.Take(context.Background(), "customer-7", 100)
	fmt.Println(d.Allowed, d.Remaining, err)

	// In package httplimit:
	_ = httplimit.Limit{
		Name: "plan", Source: limiter.Source(),
		Quota: func(*http.Request) (engine.Policy, error) {
			return engine.TokenBucket(engine.Per(10, time.Hour), 10), nil
		},
	}
	// Output:
	// true 6 <nil>
	// true 896 <nil>
}
