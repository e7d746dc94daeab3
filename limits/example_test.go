package limits_test

import (
	"context"
	"fmt"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
)

// A Job is what a queue accepts.
type Job struct {
	Tenant uint64
	Bytes  uint64
}

// A queue accepts jobs per tenant and in all. A job that fails costs nothing.
func Example() {
	perTenant, _ := engine.New(engine.TokenBucket(engine.PerMinute(10), 2), engine.MaxKeys(1000))
	inAll, _ := engine.New(engine.TokenBucket(engine.PerMinute(1000), 5), engine.MaxKeys(1))
	defer perTenant.Close()
	defer inAll.Close()

	const failed = 1
	set, err := limits.New([]limits.Limit[Job]{
		{
			Name: "tenant", Limiter: perTenant,
			Key:    func(h limits.Hasher, j Job) (engine.Key, bool) { return h.KeyUint64(j.Tenant), true },
			Refund: func(_ Job, outcome int) bool { return outcome == failed },
		},
		{Name: "all", Limiter: inAll, Key: limits.Everyone[Job]},
	}, limits.Options[Job]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for range 3 {
		res := set.Decide(ctx, Job{Tenant: 7})
		tightest, _ := res.Tightest()
		fmt.Println(res.Allowed(), tightest.Name(), tightest.Decision.Remaining)
		if res.Allowed() {
			res.Finish(ctx, Job{Tenant: 7}, 0)
		}
	}
	fmt.Println(inAll.Peek(inAll.KeyUint64(0), 0).Remaining, "left in all")
	// Output:
	// true tenant 1
	// true tenant 0
	// false tenant 0
	// 3 left in all
}

// The handler of a request settles what its estimate was too high.
func ExampleHoldFrom() {
	tokens, _ := engine.New(engine.TokenBucket(engine.PerMinute(100), 100), engine.MaxKeys(1000))
	defer tokens.Close()
	set, err := limits.New([]limits.Limit[Job]{{
		Name: "tokens", Limiter: tokens, Key: limits.Everyone[Job],
		Hold: true, Cost: func(Job) uint64 { return 80 },
	}}, limits.Options[Job]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	handle := func(ctx context.Context) { limits.HoldFrom(ctx, "tokens").Settle(30) }

	res := set.Decide(context.Background(), Job{})
	handle(res.Context(context.Background()))
	fmt.Println(tokens.Peek(tokens.KeyUint64(0), 0).Remaining)
	// Output: 70
}
